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

// NewOpsAccess takes the settings ops-certificate (with those of its authorities where clients need them) and ops-key,
// both in PEM or neither, and ops-token: what /metrics and the reasons of /readyz ask for, "" for none. It refuses with
// an errs.Invalid that names the setting. Certificate and key that come from files are read again for each connection;
// trouble with newer ones is told to trouble, and those before stay.
func NewOpsAccess(certificate, key renewed.Setting, token string, trouble func(error)) (OpsAccess, error) {
	a := OpsAccess{token: token}
	if n := len(token); n > 0 && n < MinOpsTokenChars {
		return a, errs.New(errs.Invalid, "setting ops-token: it has %d characters, at least %d are wanted", n,
			MinOpsTokenChars)
	}
	switch {
	case !certificate.Given() && !key.Given():
		return a, nil
	case !key.Given():
		return a, errs.New(errs.Invalid, "setting ops-certificate is given without ops-key")
	case !certificate.Given():
		return a, errs.New(errs.Invalid, "setting ops-key is given without ops-certificate")
	}
	pair, err := renewed.New(keyPair, trouble, certificate, key)
	if err != nil {
		return a, err
	}
	a.config = &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.Get(), nil },
	}
	return a, nil
}

func keyPair(texts []string) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair([]byte(texts[0]), []byte(texts[1]))
	return &pair, errs.Wrap(errs.Invalid, err, "settings ops-certificate and ops-key")
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
