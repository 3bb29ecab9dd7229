package httpserver_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chandler-fleet/chandler/libs/certtest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/libs/renewed"
)

const (
	waiting  = "waits for NATS at nats.example:4222"
	opsToken = "a-token-of-metrics"
)

func opsChecks() []httpserver.Check {
	return []httpserver.Check{
		{Name: "postgres", Check: func(context.Context) error { return nil }},
		{Name: "nats", Check: func(context.Context) error { return errors.New(waiting) }},
	}
}

// serveOps serves health, readiness and metrics with this access until the test ends, and returns their address.
func serveOps(t *testing.T, access httpserver.OpsAccess) string {
	t.Helper()
	ln, err := httpserver.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := io.WriteString(w, "chandler_lag 7"); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() {
		done <- httpserver.Serve(ctx, access.Listener(ln), httpserver.Ops(access, metrics, opsChecks()...), 0)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// ask returns status and body of an answer; header is the Authorization, "" for none.
func ask(t *testing.T, client *http.Client, url, header string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if header != "" {
		req.Header.Set("Authorization", header)
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, string(body), errors.Join(err, res.Body.Close())
}

// Metrics, and the reasons of readiness, are for who has the token; probes need none. With a certificate nothing is
// said in the clear (issue 12, 1.10).
func TestOpsAccess(t *testing.T) {
	t.Parallel()
	authority := certtest.NewAuthority(t)
	certificate, key := authority.Issue(t, "127.0.0.1")
	access, err := httpserver.NewOpsAccess(renewed.Of(certificate), renewed.Of(key), opsToken, nil)
	if err != nil {
		t.Fatal(err)
	}
	address := serveOps(t, access)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(authority.PEM()))
	secure := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
	}}
	const metric, secrets = "chandler_lag 7", "nats"
	for name, c := range map[string]struct {
		path, header string
		status       int
		says, never  string
	}{
		"health":                   {"/healthz", "", 200, `"healthy":true`, secrets},
		"readiness":                {"/readyz", "", 503, `{"ready":false}`, secrets},
		"readiness with the token": {"/readyz", "Bearer " + opsToken, 503, waiting, "token"},
		"metrics":                  {"/metrics", "", 401, "ops-token", metric},
		"metrics, another token":   {"/metrics", "Bearer another-token-of-it", 401, "ops-token", metric},
		"metrics, no token":        {"/metrics", "Bearer ", 401, "ops-token", metric},
		"metrics, a password":      {"/metrics", "Basic " + opsToken, 401, "ops-token", metric},
		"metrics with the token":   {"/metrics", "Bearer " + opsToken, 200, metric, "error"},
	} {
		status, body, err := ask(t, secure, "https://"+address+c.path, c.header)
		if err != nil || status != c.status || !strings.Contains(body, c.says) || strings.Contains(body, c.never) {
			t.Errorf("%s: %d %s, %v", name, status, body, err)
		}
	}
	plain := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if status, body, err := ask(t, plain, "http://"+address+"/metrics", "Bearer "+opsToken); err == nil &&
		(status != http.StatusBadRequest || strings.Contains(body, metric)) {
		t.Errorf("in the clear: %d %s", status, body)
	}
}

// What is wrong with the settings is one sentence that names them, and quotes no key.
func TestOpsAccessRefuses(t *testing.T) {
	t.Parallel()
	authority := certtest.NewAuthority(t)
	certificate, key := authority.Issue(t, "127.0.0.1")
	_, other := authority.Issue(t, "127.0.0.1")
	for name, c := range map[string]struct{ certificate, key, token, want string }{
		"no key":         {certificate, "", "", "ops-certificate is given without ops-key"},
		"no certificate": {"", key, "", "ops-key is given without ops-certificate"},
		"another's key":  {certificate, other, "", "ops-certificate and ops-key"},
		"no PEM":         {"certificate", key, "", "ops-certificate and ops-key"},
		"short token":    {"", "", opsToken[:httpserver.MinOpsTokenChars-1], "ops-token"},
	} {
		_, err := httpserver.NewOpsAccess(renewed.Of(c.certificate), renewed.Of(c.key), c.token, nil)
		if !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The certificate is renewed in its file while the service runs: the next connection is shown the new one. One that
// does not fit its key is told, and not shown.
func TestOpsCertificateIsRenewed(t *testing.T) {
	t.Parallel()
	authority, dir := certtest.NewAuthority(t), t.TempDir()
	renew := func(name, text string) renewed.Setting {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return renewed.Setting{Text: text, File: file}
	}
	certificate, key := authority.Issue(t, "127.0.0.1")
	var told atomic.Int64
	access, err := httpserver.NewOpsAccess(renew("tls.crt", certificate), renew("tls.key", key), "",
		func(error) { told.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	address := serveOps(t, access)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(authority.PEM()))
	shown := func() string {
		t.Helper()
		d := tls.Dialer{Config: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
		c, err := d.DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close() //nolint:errcheck // it was only looked at
		raw := c.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
	}
	if shown() != certificate {
		t.Error("another certificate is shown than the one that was given")
	}
	newer, newerKey := authority.Issue(t, "127.0.0.1")
	renew("tls.crt", newer)
	if shown() != certificate || told.Load() != 1 {
		t.Errorf("without its key the new certificate is shown, or it was told %d times", told.Load())
	}
	renew("tls.key", newerKey)
	if shown() != newer {
		t.Error("the new certificate is not shown")
	}
}
