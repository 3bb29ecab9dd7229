package catalogs_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/catalogs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

var (
	ann   = model.Caller{Tenant: events.DefaultTenant, Actor: "ann", Rights: access.Everything()}
	fleet = catalog.Name{Name: "fleet"}
)

func directory(path string) model.CatalogSource {
	return model.CatalogSource{Type: "directory", Path: path}
}

// service has the default catalog fleet, for a tenant that exists.
func service(t *testing.T) *catalogs.Service {
	t.Helper()
	pool := pgtest.DB(t).Pool(t, "gateway")
	tokens := store.NewTokens(pool)
	if err := pool.Tx(t.Context(), func(tx pgx.Tx) error {
		_, err := tokens.EnsureAdmin(t.Context(), tx, "")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	secrets, err := store.NewCatalogSecrets("")
	if err != nil {
		t.Fatal(err)
	}
	return &catalogs.Service{
		Units: &unit.Runner{
			Pool: pool, Log: eventlog.New(pool), Clock: time.Now, NewID: uuid.New, Slog: quiet,
			Bodies: store.Bodies{Keys: bodiestest.Keys(t)},
		},
		Secrets: secrets, Tenants: tokens, Slog: quiet,
		Defaults: []model.AddCatalog{{Name: "fleet", Source: directory("/catalogs/fleet")}},
	}
}

// state is a catalog as its events say it is.
func state(t *testing.T, s *catalogs.Service, name catalog.Name) (now catalog.State) {
	t.Helper()
	err := s.Units.Once(t.Context(), ann, func(u *unit.Work) (err error) {
		now, _, err = catalogs.Load(t.Context(), u, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// TestDefaultCatalogIsOnlySwitched: a catalog that comes with the installation can be disabled, and neither changed nor
// removed
// (R-CAT-110); a restart leaves it as it was switched.
func TestDefaultCatalogIsOnlySwitched(t *testing.T) {
	t.Parallel()
	s := service(t)
	if err := s.EnsureDefaults(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := state(t, s, fleet); !now.Added || !now.Configured || now.Spec.Disabled {
		t.Fatalf("the default catalog is %+v", now)
	}
	_, err := s.Change(t.Context(), ann, fleet, model.ChangeCatalog{Source: directory("/elsewhere")}, "")
	if !errs.Is(err, errs.Conflict) {
		t.Errorf("another source: %v", err)
	}
	if _, err := s.Remove(t.Context(), ann, fleet); !errs.Is(err, errs.Conflict) {
		t.Errorf("removed: %v", err)
	}
	c, err := s.Change(t.Context(), ann, fleet, model.ChangeCatalog{
		Source:   directory("/catalogs/fleet"),
		Disabled: true,
	}, "")
	if err != nil || !c.Disabled || !c.Default {
		t.Errorf("disabled: %+v, %v", c, err)
	}
	hub, err := s.GetHub(t.Context(), ann)
	if err != nil || len(hub.Sources) != 1 || !hub.Sources[0].Disabled {
		t.Errorf("the hub is %+v, %v: want fleet disabled", hub, err)
	}
	restarted := &catalogs.Service{
		Units: s.Units, Secrets: s.Secrets, Tenants: s.Tenants, Slog: s.Slog, Defaults: s.Defaults,
	}
	if err := restarted.EnsureDefaults(t.Context()); err != nil || !state(t, s, fleet).Spec.Disabled {
		t.Errorf("after a restart the catalog is %+v, %v: want it disabled", state(t, s, fleet), err)
	}
}

// TestHubSwitchesAll: the hub disables all default catalogs but those that it names, and names that none has are errors
// in its
// status (R-CFG-10).
func TestHubSwitchesAll(t *testing.T) {
	t.Parallel()
	s := service(t)
	hub, err := s.SetHub(t.Context(), ann, model.SetOperatorHub{
		DisableAllDefaultSources: true, Sources: []model.HubSource{{Name: "unheard", Disabled: false}},
	})
	if err != nil || !state(t, s, fleet).Spec.Disabled {
		t.Fatalf("the hub is %+v, %v", hub, err)
	}
	status := map[string]string{}
	for _, x := range hub.Status {
		status[x.Name] = x.Status
	}
	if status["fleet"] != "Success" || status["unheard"] != "Error" {
		t.Errorf("status %v", status)
	}
	_, err = s.SetHub(t.Context(), ann, model.SetOperatorHub{
		Sources: []model.HubSource{{Name: "fleet"}, {Name: "fleet"}},
	})
	if !errs.Is(err, errs.Invalid) {
		t.Errorf("one name twice: %v", err)
	}
}

// TestOwnCatalogOfADefaultName: a catalog that a tenant had before stays as it is, and is no default one.
func TestOwnCatalogOfADefaultName(t *testing.T) {
	t.Parallel()
	s := service(t)
	own := &catalogs.Service{Units: s.Units, Secrets: s.Secrets, Tenants: s.Tenants, Slog: s.Slog}
	in := model.AddCatalog{Name: "fleet", Source: directory("/own")}
	if _, err := own.Add(t.Context(), ann, in, ""); err != nil {
		t.Fatal(err)
	}
	before := state(t, s, fleet).Spec
	if err := s.EnsureDefaults(t.Context()); err != nil || state(t, s, fleet).Spec != before {
		t.Errorf("it became %+v, %v; want %+v", state(t, s, fleet).Spec, err, before)
	}
	if _, err := s.Remove(t.Context(), ann, fleet); err != nil {
		t.Errorf("remove it: %v", err)
	}
}

// TestUnknownSecret: a credential that is not there is accepted, since it may come later, unless the caller is strict.
func TestUnknownSecret(t *testing.T) {
	t.Parallel()
	s := service(t)
	in := model.AddCatalog{
		Name:   "git",
		Source: model.CatalogSource{Type: "git", URL: "https://git.example.org/fleet", Secrets: []string{"pull"}},
	}
	if _, err := s.Add(t.Context(), ann, in, model.ValidateStrict); !errs.Is(err, errs.Unprocessable) {
		t.Errorf("strict: %v", err)
	}
	if _, err := s.Add(t.Context(), ann, in, ""); err != nil {
		t.Errorf("by default: %v", err)
	}
}
