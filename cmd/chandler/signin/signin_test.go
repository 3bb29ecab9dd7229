package signin_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/cmd/chandler/signin"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// What a provider says of itself has no secret sent, and no page opened, where somebody in between could answer, and
// has no other program than a browser opened.
func TestHostileProvider(t *testing.T) {
	t.Parallel()
	for field, address := range map[string]string{
		"jwks_uri":                      "http://login.example.org/keys",
		"authorization_endpoint":        "file:///etc/passwd",
		"token_endpoint":                "http://login.example.org/token",
		"device_authorization_endpoint": "http://login.example.org/device",
		"verification_uri":              "ms-settings:network",
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			var server *httptest.Server
			server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				said := map[string]any{
					"issuer": server.URL, "jwks_uri": server.URL, "authorization_endpoint": server.URL,
					"token_endpoint": server.URL, "device_authorization_endpoint": server.URL,
					"device_code": "d", "user_code": "u", "verification_uri": server.URL, "expires_in": 60,
				}
				said[field] = address
				w.Header().Set("Content-Type", "application/json")
				if err := json.NewEncoder(w).Encode(said); err != nil {
					t.Errorf("answer: %v", err)
				}
			}))
			defer server.Close()
			l := signin.Login{
				With: model.LoginProvider{Name: "house", Issuer: server.URL, ClientID: "chandler"}, Now: time.Now,
				Show: func(address, _ string) error {
					t.Errorf("%s was shown", address)
					return http.ErrAbortHandler
				},
			}
			if _, err := l.Device(t.Context()); err == nil || !strings.Contains(err.Error(), address) {
				t.Errorf("signing in: %v, want that %s is refused", err, address)
			}
		})
	}
}
