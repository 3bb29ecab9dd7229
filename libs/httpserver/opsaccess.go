package httpserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"net"
	"net/http"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/renewed"
)

// MinOpsTokenChars is the least length of a token; a shorter one can be guessed.
const MinOpsTokenChars = 16

// OpsAccess says how health, readiness and metrics are protected. The zero value shows everything, in the clear, to
// whoever reaches the listener.
type OpsAccess struct {
	token  string
	config *tls.Config // nil without TLS
}

// NewOpsAccess takes the settings ops-certificate and ops-key (see NewTLS), and ops-token: what /metrics and the
// reasons of /readyz ask for, "" for none. It refuses with an errs.Invalid that names the setting.
func NewOpsAccess(
	certificate, key renewed.Setting, token string, trouble func(error),
) (a OpsAccess, err error) {
	a.token = token
	if n := len(token); n > 0 && n < MinOpsTokenChars {
		return a, errs.New(errs.Invalid, "setting ops-token: it has %d characters, at least %d are wanted", n,
			MinOpsTokenChars)
	}
	a.config, err = NewTLS("ops", certificate, key, trouble)
	return a, err
}

// Listener is ln with TLS, where there is a certificate.
func (a OpsAccess) Listener(ln net.Listener) net.Listener {
	if a.config == nil {
		return ln
	}
	return tls.NewListener(ln, a.config)
}

// trusts reports whether a request may see everything.
func (a OpsAccess) trusts(r *http.Request) bool {
	if a.token == "" {
		return true
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	// Digests have one length, so that the comparison takes one time.
	is, want := sha256.Sum256([]byte(strings.TrimSpace(given))), sha256.Sum256([]byte(a.token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(is[:], want[:]) == 1
}

// guard lets only those who have the token through to h.
func (a OpsAccess) guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.trusts(r) {
			Problem(w, r, errs.New(errs.Unauthenticated, "%s asks for the token of the setting ops-token", r.URL.Path))
			return
		}
		h.ServeHTTP(w, r)
	})
}
