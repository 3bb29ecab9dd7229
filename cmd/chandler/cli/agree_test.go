package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Chandler names the provider and then gets the token: whoever answers at its address wants one of the house's own,
// with which they would be let in elsewhere. So a person agrees to both, once, and again after a change.
func TestLoginWantsAgreement(t *testing.T) { //nolint:tparallel // the cases ask one provider, one after the other
	t.Parallel()
	asked := make(chan string, 1)
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.URL.Path:
		default:
		}
		http.NotFound(w, r)
	}))
	defer issuer.Close()
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, model.AuthConfig{Providers: []model.LoginProvider{{
			Name: "house", Issuer: issuer.URL, ClientID: "chandler", Scopes: []string{"openid"},
		}}})
	}))
	defer gateway.Close()
	const question = `(client "chandler") for Chandler at `
	agreed := func(client string) string {
		return "agreed:\n  " + gateway.URL + ":\n    clientID: " + client + "\n    issuer: " + issuer.URL + "\n"
	}
	for name, c := range map[string]struct {
		url, file, args, typed, says string
		asks                         bool // the provider, in the end
	}{
		"nobody to ask":             {says: "use --issuer " + issuer.URL},
		"asked, and no":             {typed: "\n", says: question},
		"asked, and yes":            {typed: "y\n", says: question, asks: true},
		"named":                     {args: " --issuer " + issuer.URL, asks: true},
		"another one named":         {args: " --issuer https://login.example.org", says: "and not at https://"},
		"agreed before":             {file: agreed("chandler"), asks: true},
		"agreed to another client":  {file: agreed("other"), says: `(client "other")`},
		"plain HTTP to other hosts": {url: "http://chandler.example.org", says: "is not https"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			if err := os.Mkdir(filepath.Join(home, "chandler"), 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(home, "chandler", "credentials.yaml")
			if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			url := c.url
			if url == "" {
				url = gateway.URL
			}
			var out, errOut strings.Builder
			s := command.Streams{
				In: strings.NewReader(c.typed), Terminal: c.typed != "", Out: &out, Err: &errOut, Now: time.Now,
				Env: func(name string) (string, bool) { return home, name == "XDG_CONFIG_HOME" },
			}
			if status := Main(t.Context(), s, strings.Fields("--url "+url+" login --no-browser"+c.args)); status == 0 {
				t.Error("it signed somebody in")
			}
			if !strings.Contains(errOut.String(), c.says) {
				t.Errorf("said %q, want %q", errOut.String(), c.says)
			}
			select {
			case <-asked:
				if !c.asks {
					t.Error("the provider was asked")
				}
			default:
				if c.asks {
					t.Errorf("the provider was not asked: %s", errOut.String())
				}
			}
		})
	}
}
