package cataloghooks

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/cataloghook"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/catalogs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/intenttest"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

var fleet = catalog.Name{Name: "fleet"}

// service has the catalogs fleet and other.
func service(t *testing.T) (*intenttest.Env, *Service) {
	t.Helper()
	e := intenttest.New(t)
	secrets, err := store.NewCatalogSecrets("")
	if err != nil {
		t.Fatal(err)
	}
	c := &catalogs.Service{Units: e.Units, Secrets: secrets, Slog: e.Units.Slog}
	for _, name := range []string{"fleet", "other"} {
		in := model.AddCatalog{Name: name, Source: model.CatalogSource{Type: "directory", Path: "/" + name}}
		if _, err := c.Add(t.Context(), intenttest.Ann, in, model.ValidateDefault); err != nil {
			t.Fatal(err)
		}
	}
	list, err := cataloghook.ParseKeys(strings.Repeat("k", cataloghook.MinKey))
	if err != nil {
		t.Fatal(err)
	}
	return e, &Service{
		Units: e.Units, Keys: list, Catalogs: c, Slog: e.Units.Slog,
	}
}

// idOf is the id of the hook in its address.
func idOf(t *testing.T, h model.CatalogHook) string {
	t.Helper()
	u, err := url.Parse(h.Path)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("hook")
}

// TestFind: a hook is found by its id and its secret together, for its own catalog alone; everything else is the same
// refusal, so that nobody can tell what exists.
func TestFind(t *testing.T) {
	t.Parallel()
	e, s := service(t)
	if _, err := s.Make(t.Context(), intenttest.Ann, catalog.Name{Name: "none"}); !errs.Is(err, errs.NotFound) {
		t.Errorf("a hook of no catalog: %v", err)
	}
	if _, err := s.Make(t.Context(), intenttest.Eve, fleet); !errs.Is(err, errs.NotFound) {
		t.Errorf("a hook of another tenant's catalog: %v", err)
	}
	keyless := *s
	keyless.Keys = nil
	if _, err := keyless.Make(t.Context(), intenttest.Ann, fleet); !errs.Is(err, errs.Unprocessable) {
		t.Errorf("an installation without a key: %v", err)
	}
	made, err := s.Make(t.Context(), intenttest.Ann, fleet)
	if err != nil {
		t.Fatal(err)
	}
	id, good := idOf(t, made), cataloghook.Proof{Token: made.Secret}
	for _, c := range []struct {
		name  string
		s     *Service
		at    catalog.Name
		id    string
		proof cataloghook.Proof
		found bool
	}{
		{"the secret", s, fleet, id, good, true},
		{"a signature, which the body decides", s, fleet, id, cataloghook.Proof{Signature: "sha256=00"}, true},
		{"another secret", s, fleet, id, cataloghook.Proof{Token: made.Secret + "x"}, false},
		{"nothing", s, fleet, id, cataloghook.Proof{}, false},
		{"another catalog", s, catalog.Name{Name: "other"}, id, good, false},
		{"another id", s, fleet, cataloghook.Hook{Nonce: make([]byte, cataloghook.NonceBytes)}.ID(), good, false},
		{"an id that is none", s, fleet, "x", good, false},
		{"without a key", &keyless, fleet, id, good, false},
	} {
		_, err := c.s.Find(t.Context(), c.at, c.id, c.proof)
		if found := err == nil; found != c.found || !found && !errs.Is(err, errs.Unauthenticated) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	again, err := s.Make(t.Context(), intenttest.Ann, fleet)
	if err != nil || again.Secret == made.Secret {
		t.Errorf("another secret: %v, the same: %v", err, again.Secret == made.Secret)
	}
	if _, err := s.Find(t.Context(), fleet, id, good); !errs.Is(err, errs.Unauthenticated) {
		t.Errorf("the secret before still works: %v", err)
	}
	if got, err := s.Get(t.Context(), intenttest.Ann, fleet); err != nil || got.Secret != "" || got.Path != again.Path {
		t.Errorf("read %+v, %v: want the address without the secret", got, err)
	}
	if err := s.Delete(t.Context(), intenttest.Eve, fleet); err != nil {
		t.Error(err)
	}
	if _, err := s.Get(t.Context(), intenttest.Ann, fleet); err != nil {
		t.Errorf("another tenant deleted the hook: %v", err)
	}
	if err := s.Delete(t.Context(), intenttest.Ann, fleet); err != nil {
		t.Error(err)
	}
	if _, err := s.Get(t.Context(), intenttest.Ann, fleet); !errs.Is(err, errs.NotFound) {
		t.Errorf("a deleted hook is read: %v", err)
	}
	got := e.Events(intenttest.Ann, events.KindAccess, store.HookStream("fleet"))
	if len(got) != 3 || got[0] != (events.HookCreated{}).EventType() || got[2] != (events.HookRevoked{}).EventType() {
		t.Errorf("events about the hook: %v, want that it was created twice and revoked once", got)
	}
	if n := len(e.Events(intenttest.Ann, events.KindCatalog, "fleet")); n != 1 {
		t.Errorf("%d events of the catalog: hooks stand outside the log", n)
	}
}

// TestPush: several pushes of one moment are one poll, after a delay; what comes soon after a poll waits; a
// push with a wrong signature asks for nothing; a catalog that is disabled is not polled, and its push ends.
func TestPush(t *testing.T) {
	t.Parallel()
	e, s := service(t)
	made, err := s.Make(t.Context(), intenttest.Ann, fleet)
	if err != nil {
		t.Fatal(err)
	}
	good := cataloghook.Proof{Token: made.Secret}
	h, err := s.Find(t.Context(), fleet, idOf(t, made), good)
	if err != nil {
		t.Fatal(err)
	}
	polls := func() (n int) {
		t.Helper()
		if err := s.takePushes(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, typ := range e.Events(intenttest.Ann, events.KindCatalog, "fleet") {
			if typ == (events.CatalogRefreshRequested{}).EventType() {
				n++
			}
		}
		return n
	}
	push := func() {
		t.Helper()
		if err := s.Push(t.Context(), h, good, nil); err != nil {
			t.Fatal(err)
		}
	}
	forged := cataloghook.Proof{Signature: "sha256=" + strings.Repeat("00", 32)}
	if err := s.Push(t.Context(), h, forged, []byte("{}")); !errs.Is(err, errs.Unauthenticated) {
		t.Errorf("a wrong signature: %v", err)
	}
	e.Now = e.Now.Add(delay)
	if n := polls(); n != 0 {
		t.Errorf("%d polls after a push that was refused", n)
	}
	push()
	push()
	if n := polls(); n != 0 {
		t.Errorf("%d polls before the delay is over", n)
	}
	e.Now = e.Now.Add(delay)
	if n := polls(); n != 1 || polls() != 1 {
		t.Errorf("%d polls after two pushes, want 1, and no more when they are taken again", n)
	}
	push()
	e.Now = e.Now.Add(delay)
	if n := polls(); n != 1 {
		t.Errorf("%d polls soon after the one before", n)
	}
	e.Now = e.Now.Add(quiet)
	if n := polls(); n != 2 {
		t.Errorf("%d polls once the pause is over, want 2", n)
	}
	push()
	off := model.ChangeCatalog{Source: model.CatalogSource{Type: "directory", Path: "/fleet"}, Disabled: true}
	if _, err := s.Catalogs.Change(t.Context(), intenttest.Ann, fleet, off, model.ValidateDefault); err != nil {
		t.Fatal(err)
	}
	e.Now = e.Now.Add(quiet)
	if n := polls(); n != 2 {
		t.Errorf("%d polls, the last one of a disabled catalog", n)
	}
	if n := e.Count(`select count(*) from gateway.catalog_hooks where due is not null`); n != 0 {
		t.Error("the push to a disabled catalog is tried for ever")
	}
}
