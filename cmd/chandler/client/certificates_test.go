package client_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/certtest"
	restclient "github.com/chandler-fleet/chandler/libs/client"
)

// TestCertificates (issue 13, section 1): the client trusts the authority that is named and shows the certificate of
// the machine, one that was renewed meanwhile on the next connection; half a pair is refused.
func TestCertificates(t *testing.T) {
	t.Parallel()
	server, machines, dir := certtest.NewAuthority(t), certtest.NewAuthority(t), t.TempDir()
	certificate, key := server.Issue(t, "127.0.0.1")
	own, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	known := x509.NewCertPool()
	known.AppendCertsFromPEM([]byte(machines.PEM()))
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, `{"tenant":"default","actor":"`+r.TLS.PeerCertificates[0].Subject.CommonName+
			r.Header.Get("Authorization")+`","kind":"ServiceAccount","permissions":[]}`)
	}))
	s.TLS = &tls.Config{
		Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: known,
		MinVersion: tls.VersionTLS12,
	}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	issue := func(name string) (string, string) {
		c, k := machines.IssueAs(t, func(c *x509.Certificate) { c.Subject = pkix.Name{CommonName: name} })
		return file("tls.crt", c), file("tls.key", k)
	}
	with := restclient.Certificates{Authority: file("ca.crt", server.PEM())}
	with.Client, with.Key = issue("first")
	c, err := restclient.New(restclient.Config{URL: s.URL, Certificates: with})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "renewed"} {
		issue(name)
		if me, err := c.WhoAmI(t.Context()); err != nil || me.Actor != name {
			t.Errorf("want %s, got %+v, %v", name, me, err)
		}
	}
	for want, wrong := range map[string]restclient.Certificates{
		"go together":    {Client: with.Client},
		"no certificate": {Authority: with.Key},
		"nowhere":        {Authority: "nowhere"},
		"read the client": {
			Client: with.Key, Key: with.Key,
		},
	} {
		if _, err := restclient.New(restclient.Config{URL: s.URL, Certificates: wrong}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", wrong, err, want)
		}
	}
}
