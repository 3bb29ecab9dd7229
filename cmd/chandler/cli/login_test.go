package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oauth2-proxy/mockoidc"

	"github.com/chandler-fleet/chandler/services/gateway/oidctest"
)

// browse is the browser of scripts: it goes where it is sent.
func browse() {
	answer, err := http.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = answer.Body.Close()
}

// identityProvider starts a provider (oauth2-proxy/mockoidc over HTTP), which signs in whoever comes, and returns the
// file of settings with it, and its address.
// It knows no device codes by itself: those are given here, and its own tokens for them.
func identityProvider(t *testing.T) (path, issuer string) {
	t.Helper()
	m := oidctest.Start(t, deviceCodes)
	path = filepath.Join(t.TempDir(), "providers.yaml")
	text := fmt.Sprintf("providers:\n- name: house\n  issuer: %s\n  audiences: [%s]\n"+
		"  login: {clientID: %s, clientSecret: %s, scopes: [openid, profile, groups]}\n", m.Issuer(), m.ClientID,
		m.ClientID, m.ClientSecret)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, m.Issuer()
}

const (
	deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"
	devicePath  = "/oidc/device"
)

// deviceCodes adds the device flow (RFC 8628): the first question for the token is told to wait, the second gets one.
func deviceCodes(m *mockoidc.MockOIDC, next http.Handler) http.Handler {
	asked := 0
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "openid-configuration"):
			said := httptest.NewRecorder()
			next.ServeHTTP(said, r)
			var all map[string]any
			if err := json.Unmarshal(said.Body.Bytes(), &all); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			all["device_authorization_endpoint"] = m.AuthorizationEndpoint() + "?device=yes"
			answer(w, http.StatusOK, all)
		case r.URL.Query().Get("device") == "yes":
			answer(w, http.StatusOK, map[string]any{
				"device_code": "d", "user_code": "TIDE-GAUGE", "verification_uri": m.Addr() + devicePath,
				"expires_in": 60, "interval": 1,
			})
		case r.FormValue("grant_type") == deviceGrant:
			asked++
			if asked == 1 {
				answer(w, http.StatusBadRequest, map[string]any{"error": "authorization_pending"})
				return
			}
			s, err := m.SessionStore.NewSession("openid profile groups", "", mockoidc.DefaultUser(), "", "")
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			r.Form.Set("grant_type", "authorization_code")
			r.Form.Set("code", s.SessionID)
			secret(m, r)
			next.ServeHTTP(w, r)
		default:
			secret(m, r)
			next.ServeHTTP(w, r)
		}
	})
}

// secret puts a client's secret where mockoidc looks for it, which programs may send as a header, too.
func secret(m *mockoidc.MockOIDC, r *http.Request) {
	if id, password, ok := r.BasicAuth(); ok && r.ParseForm() == nil && password == m.ClientSecret {
		r.Form.Set("client_id", id)
		r.Form.Set("client_secret", password)
	}
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // whoever asked may have gone
}
