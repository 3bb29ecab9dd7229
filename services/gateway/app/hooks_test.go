package app_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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
	must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs",
		model.AddCatalog{Name: "fleet", Cluster: "spoke", Namespace: "olm", Source: in}))
	must[problem](b, 404, b.do("GET", "/api/v1/catalogs/fleet/hook", nil))
	before := must[model.CatalogHook](b, 200, b.do("POST", "/api/v1/catalogs/fleet/hook", nil))
	hook := must[model.CatalogHook](b, 200, b.do("POST", "/api/v1/catalogs/fleet/hook", nil))
	path := hook.Path
	own := must[model.CatalogHook](b, 200, b.do("POST", "/api/v1/catalogs/fleet/hook?cluster=spoke&namespace=olm", nil))
	if got := must[model.CatalogHook](b, 200, b.do("GET", "/api/v1/catalogs/fleet/hook", nil)); got.Secret != "" ||
		got.Path != path {
		t.Errorf("got %+v", got)
	}
	if n := b.count(
		`select count(*) from gateway.catalog_hooks where position(convert_to('chh_', 'UTF8') in nonce) > 0`); n != 0 {
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
		"a signature, no hook":   {"/api/v1/hooks/catalogs/fleet", signed(hook.Secret, "{}")},
		"another hook's address": {own.Path, signed(hook.Secret, "{}")},
		"a token and a wrong signature": {path, http.Header{
			"Authorization": {"Bearer " + hook.Secret}, "X-Hub-Signature-256": signed(
				own.Secret, "{}")["X-Hub-Signature-256"],
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
	if got := b.push("/api/v1/hooks/catalogs/fleet", "",
		http.Header{"X-Gitlab-Token": {hook.Secret}}); got != http.StatusAccepted {
		t.Errorf("token: %d", got)
	}
	if got := b.push(own.Path, "", bearer(own.Secret)); got != http.StatusAccepted {
		t.Errorf("a cluster's catalog: %d", got)
	}
	for range 2 { // one for each catalog
		if _, _, ok := s.next(); !ok {
			t.Fatal("the stream ended")
		}
	}
	got := must[struct{ Items []model.Event }](b, 200, b.do("GET", "/api/v1/events?type=catalog.refresh-requested.v1",
		nil)).Items
	if len(got) != 2 || got[0].Subject == got[1].Subject {
		t.Errorf("want one look for each catalog: %+v", got)
	}
	// Another push waits, since the last look was just now, and is not lost.
	if got := b.push(path, "{}", signed(hook.Secret, "{}")); got != http.StatusAccepted {
		t.Errorf("again: %d", got)
	}
	if n := b.count(
		`select count(*) from gateway.catalog_hooks where subject = 'fleet' and due > last + interval '9 seconds'`); n != 1 {
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

// streamed sends a body in pieces, without its length.
func (b *bench) streamed(path string, body io.Reader, header http.Header) (status int, err error) {
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.url+path, body)
	if err != nil {
		return 0, err
	}
	req.Header = header
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

// TestPushesTellNothing: whoever has no secret learns from no answer which catalogs there are and which of them
// have a hook, whatever is sent.
func TestPushesTellNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs",
		model.AddCatalog{Name: "fleet", Source: model.CatalogSource{Type: source.Directory, Path: "/a"}}))
	hook := must[model.CatalogHook](b, 200, b.do("POST", "/api/v1/catalogs/fleet/hook", nil))
	large := strings.Repeat("a", 1<<20+1)
	for _, path := range []string{
		hook.Path, "/api/v1/hooks/catalogs/fleet", "/api/v1/hooks/catalogs/none",
		strings.Replace(hook.Path, "fleet", "none", 1),
	} {
		for what, header := range map[string]http.Header{
			"signature": signed("guessed", large), "token": {"Authorization": {"Bearer guessed"}},
			"gitlab": {"X-Gitlab-Token": {"chh_guessed"}},
		} {
			if got, err := b.streamed(path, io.MultiReader(strings.NewReader(large)), header); err != nil ||
				got != http.StatusUnauthorized {
				t.Errorf("%s of a large body to %s: %d %v", what, path, got, err)
			}
		}
	}
	// A token is held against the secret before the body is looked at: this one never comes.
	never, end := io.Pipe()
	defer func() { _ = end.CloseWithError(errors.New("the test is over")) }()
	both := http.Header{
		"Authorization":       {"Bearer guessed"},
		"X-Hub-Signature-256": signed("guessed", "")["X-Hub-Signature-256"],
	}
	if got, err := b.streamed(hook.Path, never, both); err != nil || got != http.StatusUnauthorized {
		t.Errorf("a wrong token with a body that does not come: %d %v", got, err)
	}
}

// TestSlowPushesHoldUpNobodyElse: senders that dawdle at one hook take no place of another.
func TestSlowPushesHoldUpNobodyElse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	hooks := map[string]model.CatalogHook{}
	for _, name := range []string{"slow", "other"} {
		must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs",
			model.AddCatalog{Name: name, Source: model.CatalogSource{Type: source.Directory, Path: "/a"}}))
		hooks[name] = must[model.CatalogHook](b, 200, b.do("POST", "/api/v1/catalogs/"+name+"/hook", nil))
	}
	const senders, turnedAway = 20, 4
	answers := make(chan int, senders)
	for range senders {
		body, end := io.Pipe()
		t.Cleanup(func() { _ = end.CloseWithError(errors.New("the test is over")) })
		go func() {
			status, _ := b.streamed(hooks["slow"].Path, body, signed("guessed", "")) // its end is the test's
			answers <- status
		}()
	}
	// Some are told to come again at once, so all places are taken that there are.
	for range turnedAway {
		if got := <-answers; got != http.StatusServiceUnavailable {
			t.Fatalf("got %d", got)
		}
	}
	if got := b.push(hooks["other"].Path, "{}", signed(hooks["other"].Secret, "{}")); got != http.StatusAccepted {
		t.Errorf("a push to another hook: %d", got)
	}
}
