// Package oidctest runs an identity provider (oauth2-proxy/mockoidc over HTTP) beside a test.
package oidctest

import (
	"net"
	"net/http"
	"testing"

	"github.com/oauth2-proxy/mockoidc"
)

// Start runs a provider on loopback until the test ends. Its requests go through around, if that is given: it gets the
// provider and what answers, and returns what answers instead.
func Start(t *testing.T, around func(*mockoidc.MockOIDC, http.Handler) http.Handler) *mockoidc.MockOIDC {
	t.Helper()
	m, err := mockoidc.NewServer(nil)
	if err != nil {
		t.Fatal(err)
	}
	// It is computed at its first use, without a lock, by requests and by the tests that sign.
	if _, err := m.Keypair.KeyID(); err != nil {
		t.Fatal(err)
	}
	if around != nil {
		err := m.AddMiddleware(func(next http.Handler) http.Handler { return around(m, next) })
		if err != nil {
			t.Fatal(err)
		}
	}
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(ln, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Shutdown(); err != nil {
			t.Errorf("stop the provider: %v", err)
		}
	})
	return m
}
