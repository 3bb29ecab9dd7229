package signin_test

import (
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/oauth2-proxy/mockoidc"

	"github.com/chandler-fleet/chandler/cmd/chandler/signin"
	"github.com/chandler-fleet/chandler/services/gateway/oidctest"
)

const address = "https://chandler.example.org"

// signedIn starts a provider that counts how often it is asked for tokens, and keeps a credential of it that has ended.
func signedIn(t *testing.T, subject string) (store signin.Store, asked func() int) {
	t.Helper()
	var mu sync.Mutex
	n := 0
	m := oidctest.Start(t, func(_ *mockoidc.MockOIDC, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				mu.Lock()
				n++
				mu.Unlock()
				if id, password, ok := r.BasicAuth(); ok && r.ParseForm() == nil {
					r.Form.Set("client_id", id)
					r.Form.Set("client_secret", password)
				}
			}
			next.ServeHTTP(w, r)
		})
	})
	session, err := m.SessionStore.NewSession("openid", "", mockoidc.DefaultUser(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	refresh, err := session.RefreshToken(m.Config(), m.Keypair, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	store = signin.Store{Path: filepath.Join(t.TempDir(), "credentials.yaml")}
	err = store.Put(address, &signin.Credential{
		Provider: "house", Issuer: m.Issuer(), ClientID: m.ClientID, ClientSecret: m.ClientSecret,
		Subject: subject, Token: "old", Refresh: refresh,
	})
	if err != nil {
		t.Fatal(err)
	}
	return store, func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

// Of commands that run at once one replaces the token: a provider that takes a refresh token once would sign the person
// out at the second.
func TestCommandsAtOnceRefreshOnce(t *testing.T) {
	t.Parallel()
	store, asked := signedIn(t, mockoidc.DefaultUser().Subject)
	var commands sync.WaitGroup
	for range 8 {
		commands.Go(func() {
			token, err := signin.Token(t.Context(), store, address, time.Now)
			if err != nil || token == "" || token == "old" {
				t.Errorf("the token is %q, %v", token, err)
			}
		})
	}
	commands.Wait()
	if n := asked(); n != 1 {
		t.Errorf("the provider was asked %d times, want once", n)
	}
}

// Commands that change the file at once lose nothing of each other.
func TestCommandsAtOnceKeepAll(t *testing.T) {
	t.Parallel()
	store := signin.Store{Path: filepath.Join(t.TempDir(), "credentials.yaml")}
	var commands sync.WaitGroup
	names := []string{"https://a", "https://b", "https://c", "https://d", "https://e", "https://f"}
	for _, name := range names {
		commands.Go(func() {
			if err := store.Put(name, &signin.Credential{Token: name}); err != nil {
				t.Error(err)
			}
		})
	}
	commands.Wait()
	for _, name := range names {
		if c, found, err := store.Get(name); err != nil || !found || c.Token != name {
			t.Errorf("%s has %+v, %v", name, c, err)
		}
	}
}

// A refreshed token is the same person's (OpenID Connect Core 12.2).
func TestRefreshIsOfTheSamePerson(t *testing.T) {
	t.Parallel()
	store, _ := signedIn(t, "somebody-else")
	if token, err := signin.Token(t.Context(), store, address, time.Now); err == nil {
		t.Errorf("the token is %q, want that it is refused", token)
	}
	if c, _, err := store.Get(address); err != nil || c.Token != "old" {
		t.Errorf("kept is %+v, %v", c, err)
	}
}
