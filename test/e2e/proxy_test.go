package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// behind puts a registry behind TLS under names of hosts that documents use, and returns the environment by which a
// process finds it there: a proxy, and the certificates that it trusts.
func (r *registryOf) behind(names ...string) []string {
	r.t.Helper()
	certificate, authority := certified(r.t, names)
	target, err := url.Parse("http://" + r.host)
	r.must(err)
	server := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(target))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	r.t.Cleanup(server.Close)
	proxy := httptest.NewServer(tunnels(server.Listener.Addr().String()))
	r.t.Cleanup(proxy.Close)
	return []string{"HTTPS_PROXY=" + proxy.URL, "SSL_CERT_FILE=" + authority}
}

// tunnels lead to one place, whatever host is asked for.
func tunnels(to string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodConnect {
			http.Error(w, "CONNECT alone is known here", http.StatusMethodNotAllowed)
			return
		}
		there, err := new(net.Dialer).DialContext(req.Context(), "tcp", to)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		here, rest, err := http.NewResponseController(w).Hijack()
		if err != nil {
			_ = there.Close()
			return
		}
		if _, err := io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
			_ = here.Close()
		}
		go func() {
			_, _ = io.Copy(there, rest)
			_ = there.Close()
		}()
		go func() {
			_, _ = io.Copy(here, there)
			_ = here.Close()
		}()
	})
}

// certified makes a certificate for names, and a file by which it is trusted.
func certified(t *testing.T, names []string) (certificate tls.Certificate, authority string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	authority = filepath.Join(t.TempDir(), "authority.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, authority
}
