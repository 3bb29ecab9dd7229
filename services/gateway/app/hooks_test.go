package app_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// push sends a notification with these headers and returns the status.
func (b *bench) push(path, body string, header http.Header) int {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header = header
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		b.t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		b.t.Fatal(err)
	}
	return res.StatusCode
}

func signed(secret, body string) http.Header {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return http.Header{"X-Hub-Signature-256": {"sha256=" + hex.EncodeToString(mac.Sum(nil))}}
}

// TestPushes: whoever holds the secret of a hook can ask for a look at that catalog and do nothing else;
// pushes of one moment are one look.
func TestPushes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	in := model.CatalogSource{Type: source.Directory, Path: "/a"}
	must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs", model.AddCatalog{Name: "fleet", Source: in}))
	must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs", model.AddCatalog{Name: "fleet", Cluster: "spoke", Namespace: "olm", Source: in}))
	const path = "/api/v1/hooks/catalogs/fleet"
	must[problem](b, 404, b.do("GET", "/api/v1/catalogs/fleet/hook", nil))
	before := must[model.CatalogHook](b, 200, b.do("POST", "/api/v1/catalogs/fleet/hook", nil))
	hook := must[model.CatalogHook](b, 200, b.do("POST", "/api/v1/catalogs/fleet/hook", nil))
	own := must[model.CatalogHook](b, 200, b.do("POST", "/api/v1/catalogs/fleet/hook?cluster=spoke&namespace=olm", nil))
	if got := must[model.CatalogHook](b, 200, b.do("GET", "/api/v1/catalogs/fleet/hook", nil)); got.Secret != "" || got.Path != path {
		t.Errorf("got %+v", got)
	}
	if n := b.count(`select count(*) from gateway.catalog_hooks where position(convert_to('chh_', 'UTF8') in nonce) > 0`); n != 0 {
		t.Error("a secret is stored")
	}
	bearer := func(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }
	for name, c := range map[string]struct {
		path   string
		header http.Header
	}{
		"nothing":                {path, http.Header{}},
		"the administrator":      {path, bearer(token)},
		"the secret before":      {path, bearer(before.Secret)},
		"another catalog's":      {path, bearer(own.Secret)},
		"a signature of another": {path, signed(own.Secret, "{}")},
		"another body's":         {path, signed(hook.Secret, "{ }")},
		"no signature":           {path, http.Header{"X-Hub-Signature-256": {"sha256=zz"}}},
		"no such catalog":        {"/api/v1/hooks/catalogs/none", bearer(hook.Secret)},
		"a token and a wrong signature": {path, http.Header{
			"Authorization": {"Bearer " + hook.Secret}, "X-Hub-Signature-256": signed(own.Secret, "{}")["X-Hub-Signature-256"],
		}},
	} {
		if got := b.push(c.path, "{}", c.header); got != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, got)
		}
	}
	// The secret of a hook opens no other door.
	must[problem](b, 401, b.as(hook.Secret, "GET", "/api/v1/catalogs", nil))

	s := b.stream("type=catalog.refresh-requested.v1", "")
	defer s.close()
	for range 5 {
		if got := b.push(path, "{}", signed(hook.Secret, "{}")); got != http.StatusAccepted {
			t.Errorf("signed: %d", got)
		}
	}
	if got := b.push(path, "", http.Header{"X-Gitlab-Token": {hook.Secret}}); got != http.StatusAccepted {
		t.Errorf("token: %d", got)
	}
	if got := b.push(path+"?cluster=spoke&namespace=olm", "", bearer(own.Secret)); got != http.StatusAccepted {
		t.Errorf("a cluster's catalog: %d", got)
	}
	for range 2 { // one for each catalog
		if _, _, ok := s.next(); !ok {
			t.Fatal("the stream ended")
		}
	}
	got := must[struct{ Items []model.Event }](b, 200, b.do("GET", "/api/v1/events?type=catalog.refresh-requested.v1", nil)).Items
	if len(got) != 2 || got[0].Subject == got[1].Subject {
		t.Errorf("want one look for each catalog: %+v", got)
	}
	// Another push waits, since the last look was just now, and is not lost.
	if got := b.push(path, "{}", signed(hook.Secret, "{}")); got != http.StatusAccepted {
		t.Errorf("again: %d", got)
	}
	if n := b.count(`select count(*) from gateway.catalog_hooks where subject = 'fleet' and due > last + interval '9 seconds'`); n != 1 {
		t.Error("the next look is not put off to where it may be")
	}

	if a := b.do("DELETE", "/api/v1/catalogs/fleet/hook", nil); a.status != http.StatusNoContent {
		t.Errorf("end: %d %s", a.status, a.body)
	}
	if got := b.push(path, "{}", signed(hook.Secret, "{}")); got != http.StatusUnauthorized {
		t.Errorf("an ended hook: %d", got)
	}
	must[model.Removed](b, 200, b.do("DELETE", "/api/v1/catalogs/fleet?cluster=spoke&namespace=olm", nil))
	if n := b.count(`select count(*) from gateway.catalog_hooks`); n != 0 {
		t.Error("a hook outlives its catalog")
	}
}
