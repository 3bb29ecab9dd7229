package subscriptions_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	libcatalog "github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/cluster"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/operatorgroups"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/subscriptions"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

var ann = model.Caller{Tenant: events.DefaultTenant, Actor: "ann", Rights: access.Everything()}

// reads are read models as a test has them.
type reads struct {
	offers map[string]catalog.Offer // by the subject of the catalog
	past   model.Past
}

func (r reads) Offer(_ context.Context, _ pg.Querier, _, subject, _, _ string) (catalog.Offer, error) {
	return r.offers[subject], nil
}

func (reads) Observed(context.Context, pg.Querier, string, string) (events.ClusterObserved, error) {
	return events.ClusterObserved{}, nil
}

func (r reads) Past(context.Context, pg.Querier, string, subscription.Name) (model.Past, error) {
	return r.past, nil
}

func service(t *testing.T, r reads) *subscriptions.Service {
	t.Helper()
	pool := pgtest.DB(t).Pool(t, "gateway")
	units := &unit.Runner{
		Pool: pool, Log: eventlog.New(pool), Clock: time.Now, NewID: uuid.New, Slog: slog.New(slog.DiscardHandler),
	}
	s := &subscriptions.Service{
		Units: units, Groups: &operatorgroups.Service{Units: units, GlobalNamespaces: []string{"operators"}}, Offers: r,
		Clusters: r, History: r,
	}
	write(t, s, unit.Aggregate[cluster.State, cluster.Command]{
		Kind: events.KindCluster, Subject: func(s cluster.State) string { return s.Name }, Decide: cluster.Decide,
		Evolve: unit.ByPayload(cluster.Evolve),
	}, "harbour", cluster.State{Name: "harbour"}, cluster.Command(cluster.Register{
		Name: "harbour", Credential: "c1:00",
	}))
	return s
}

func write[S, C any](t *testing.T, s *subscriptions.Service, a unit.Aggregate[S, C], key string, initial S, c C) {
	t.Helper()
	err := s.Units.Run(t.Context(), ann, "test", func(ctx context.Context, u *unit.Work) error {
		_, err := unit.Decide(ctx, u, a, key, initial, func(S) (C, error) { return c, nil })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// offer adds a catalog.
func offer(t *testing.T, s *subscriptions.Service, name catalog.Name, visibility events.CatalogVisibility) {
	t.Helper()
	write(t, s, unit.Aggregate[catalog.State, catalog.Command]{
		Kind: events.KindCatalog, Subject: func(s catalog.State) string { return s.Name.Subject() },
		Decide: catalog.Decide, Evolve: unit.ByPayload(catalog.Evolve),
	}, name.Subject(), catalog.State{Name: name}, catalog.Command(catalog.Add{
		Name: name, Spec: catalog.Spec{SourceType: "directory", Settings: "c1:00", Visibility: visibility},
	}))
}

func ready(pkg string) catalog.Offer {
	return catalog.Offer{
		Ready: true, Package: &libcatalog.Package{Name: pkg, Channels: []libcatalog.Channel{{Name: "stable"}}},
	}
}

func etcd(catalogName, namespace string) model.ChangeSubscription {
	return model.ChangeSubscription{
		SubscriptionSpec: model.SubscriptionSpec{Package: "etcd", Catalog: catalogName, CatalogNamespace: namespace},
	}
}

// TestCatalogOfASubscription: which catalog a subscription means (R-CAT-85), and what comes of one that is not there or
// not
// ready with each way of validating.
func TestCatalogOfASubscription(t *testing.T) {
	t.Parallel()
	s := service(t, reads{offers: map[string]catalog.Offer{
		"fleet": ready("etcd"), "harbour/ops/own": ready("etcd"), "harbour/olm/shared": ready("etcd"),
		"harbour/other/private": ready("etcd"), "empty": {Ready: true, Packages: []string{"vault"}},
	}})
	in := func(ns string) events.CatalogVisibility {
		return events.CatalogVisibility{Cluster: "harbour", Namespace: ns}
	}
	offer(t, s, catalog.Name{Name: "fleet"}, events.CatalogVisibility{})
	offer(t, s, catalog.Name{Name: "empty"}, events.CatalogVisibility{})
	offer(t, s, catalog.Name{Name: "loading"}, events.CatalogVisibility{})
	offer(t, s, catalog.Name{Cluster: "harbour", Namespace: "ops", Name: "own"}, in("ops"))
	offer(t, s, catalog.Name{Cluster: "harbour", Namespace: "olm", Name: "shared"}, in(""))
	offer(t, s, catalog.Name{Cluster: "harbour", Namespace: "other", Name: "private"}, in("other"))
	for i, c := range []struct {
		name    string
		change  model.ChangeSubscription
		how     model.Validate
		refused errs.Kind // "" for none
		warning string
	}{
		{"the hub's", etcd("fleet", ""), "", "", ""},
		{"its own namespace's", etcd("own", "ops"), model.ValidateStrict, "", ""},
		{"one that the whole cluster sees", etcd("shared", "olm"), model.ValidateStrict, "", ""},
		{
			"one that another namespace alone sees", etcd("private", "other"), "", "",
			`no catalog "harbour/other/private" is known`,
		},
		{"the hub's where the namespace has none of the name", etcd("fleet", "olm"), model.ValidateStrict, "", ""},
		{"none", etcd("nothing", ""), "", "", `no catalog "nothing" is known`},
		{"none, strictly", etcd("nothing", ""), model.ValidateStrict, errs.Unprocessable, ""},
		{"none, leniently", etcd("nothing", ""), model.ValidateLenient, "", ""},
		{"one that is not ready", etcd("loading", ""), "", "", `catalog "loading" is not ready yet`},
		{"one that is not ready, strictly", etcd("loading", ""), model.ValidateStrict, errs.Unprocessable, ""},
		{"one without the package", etcd("empty", ""), "", errs.Unprocessable, ""},
		{"one without the package, leniently", etcd("empty", ""), model.ValidateLenient, "", ""},
	} {
		name := subscription.Name{Cluster: "harbour", Namespace: "ops", Name: "s" + string(rune('a'+i))}
		got, err := s.Create(t.Context(), ann, name, c.change, c.how)
		warnings := strings.Join(got.Warnings, "; ")
		if c.refused != "" && !errs.Is(err, c.refused) || c.refused == "" && err != nil || !strings.Contains(warnings,
			c.warning) || c.warning == "" && warnings != "" {
			t.Errorf("%s: %v with warnings %q; want kind %q and %q", c.name, err, warnings, c.refused, c.warning)
		}
	}
}

// TestFirstSubscriptionOfAGlobalNamespace makes its operator group once, in the name of the configuration (R-OG-5).
func TestFirstSubscriptionOfAGlobalNamespace(t *testing.T) {
	t.Parallel()
	s := service(t, reads{})
	for _, c := range []struct {
		namespace, name string
		made            bool
	}{{"operators", "first", true}, {"operators", "second", false}, {"ops", "third", false}} {
		got, err := s.Create(t.Context(), ann, subscription.Name{
			Cluster: "harbour", Namespace: c.namespace,
			Name: c.name,
		}, etcd("fleet", ""), model.ValidateLenient)
		if err != nil || strings.Contains(strings.Join(got.Warnings, ";"), "global-operators") != c.made {
			t.Errorf("%s/%s: warnings %q, %v; want a group made: %v", c.namespace, c.name, got.Warnings, err, c.made)
		}
	}
}

// TestRefusedSubscriptionLeavesNothing: a subscription that is refused takes the group that was made for it with it.
func TestRefusedSubscriptionLeavesNothing(t *testing.T) {
	t.Parallel()
	s := service(t, reads{})
	name := subscription.Name{Cluster: "harbour", Namespace: "operators", Name: "etcd"}
	if _, err := s.Create(t.Context(), ann, name, etcd("nothing", ""), model.ValidateStrict); !errs.Is(err,
		errs.Unprocessable) {
		t.Fatalf("created: %v", err)
	}
	err := s.Units.Once(t.Context(), ann, func(u *unit.Work) error {
		open, err := u.AnyOpen(t.Context(), events.KindOperatorGroup, "harbour/operators/")
		if open {
			t.Error("the operator group stayed")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRollback answers with where it leads, and refuses what is not there.
func TestRollback(t *testing.T) {
	t.Parallel()
	s := service(t, reads{past: model.Past{CSV: "etcd.v2", Before: []string{"etcd.v1"}}})
	name := subscription.Name{Cluster: "harbour", Namespace: "ops", Name: "etcd"}
	if _, err := s.Rollback(t.Context(), ann, name, model.RollBack{}); !errs.Is(err, errs.NotFound) {
		t.Errorf("of no subscription: %v", err)
	}
	if _, err := s.Create(t.Context(), ann, name, etcd("fleet", ""), model.ValidateLenient); err != nil {
		t.Fatal(err)
	}
	got, err := s.Rollback(t.Context(), ann, name, model.RollBack{})
	if err != nil || got.Status.Rollback == nil ||
		*got.Status.Rollback != (model.Rollback{From: "etcd.v2", To: "etcd.v1"}) {
		t.Errorf("leads to %+v, %v", got.Status.Rollback, err)
	}
	if err := s.Units.Once(t.Context(), ann, func(u *unit.Work) error {
		return s.DeleteIn(
			t.Context(), u, name)
	}); err != nil {
		t.Errorf("delete: %v", err)
	}
	if _, err := s.Delete(t.Context(), ann, name); !errs.Is(err, errs.NotFound) {
		t.Errorf("deleted twice: %v", err)
	}
}
