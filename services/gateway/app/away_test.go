package app_test

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pglocal"
	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// protectOps gives health and metrics a certificate and a token, and returns a client that trusts the certificate.
func protectOps(t *testing.T, cfg *app.Config) *http.Client {
	t.Helper()
	s := httptest.NewTLSServer(nil) // for its certificate alone
	t.Cleanup(s.Close)
	pair := s.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cfg.OpsCertificate.Text = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))
	cfg.OpsKey.Text = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	cfg.OpsToken = "a-token-of-metrics"
	return s.Client()
}

// TestPostgresAndNATSAreAway: without NATS everything goes on; without Postgres requests are refused as
// unavailable and readiness says why; when it is back, the gateway goes on by itself.
func TestPostgresAndNATSAreAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := pglocal.Start(t.Context(), pglocal.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pglocal.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	if err := migrate.Up(t.Context(), db.AdminURL(), migrate.Options{}); err != nil {
		t.Fatal(err)
	}
	nats := bustest.Start(t)
	cfg := config(t, db.RoleURL("chandler_gateway"), nats, token, io.Discard)
	client := protectOps(t, &cfg)
	url, ops := runBoth(t, cfg)
	b := &bench{t: t, url: url, pools: map[string]*pg.Pool{}}
	ready := func(token string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+ops+"/readyz", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var state struct{ Checks map[string]string }
		if err := json.NewDecoder(res.Body).Decode(&state); err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, state.Checks["postgres"]
	}
	b.cluster("before")

	nats.Server.Stop()
	b.cluster("without-nats")
	must[model.Cluster](b, 200, b.do("GET", b.seen("/api/v1/clusters/without-nats"), nil))
	if status, _ := ready(cfg.OpsToken); status != http.StatusOK {
		t.Errorf("without NATS the gateway answers all the same: readiness %d", status)
	}

	if err := db.Stop(); err != nil {
		t.Fatal(err)
	}
	a := b.do("GET", "/api/v1/clusters", nil)
	if p := must[problem](b, http.StatusServiceUnavailable, a); p.Kind != "unavailable" ||
		strings.Contains(p.Detail, "chandler_gateway") {
		t.Errorf("got %v", p)
	}
	if status, why := ready(cfg.OpsToken); status != http.StatusServiceUnavailable || why == "ok" || why == "" {
		t.Errorf("readiness %d %q", status, why)
	}
	if status, why := ready(""); status != http.StatusServiceUnavailable || why != "" {
		t.Errorf("readiness without the token: %d %q", status, why)
	}

	if _, err := pglocal.Start(t.Context(), pglocal.Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if err := nats.Server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.until(func() bool {
		a := b.do("POST", "/api/v1/clusters", model.RegisterCluster{Name: "after", Kubeconfig: kubeconfig})
		return a.status == http.StatusCreated || a.status == http.StatusConflict
	})
	b.until(func() bool { return b.do("GET", "/api/v1/clusters/after", nil).status == http.StatusOK })
	b.until(func() bool { status, _ := ready(cfg.OpsToken); return status == http.StatusOK })
}
