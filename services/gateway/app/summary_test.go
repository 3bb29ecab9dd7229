package app_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/operators"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/summary"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestSummaryFollowsTheFleet: issue 13, section 5, the roll-up of a fleet: after each event a summary says what the
// read models say (minPosition), although it is counted in a copy; and where an event could not be taken it is not.
func TestSummaryFollowsTheFleet(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stored := &summary.Reader{Pool: b.db.Pool(t, "gateway-api", pg.WithSearchPath(view.Places(view.Projections())...),
		pg.WithoutTenant())}
	ann := model.Caller{Tenant: events.DefaultTenant, Actor: "ann", Rights: access.Everything()}
	asked := func(by string) model.FleetSummary {
		t.Helper()
		return must[model.FleetSummary](b, 200, b.do("GET", b.seen("/api/v1/summary")+"&by="+by, nil))
	}
	counted := func(by string) (s model.FleetSummary) {
		t.Helper()
		var err error
		f := model.SummaryFilter{By: by, Page: model.Page{Limit: 100}}
		s.Total, s.Items, _, err = stored.List(t.Context(), ann, f)
		if err != nil {
			t.Fatal(err)
		}
		if s.Items == nil {
			s.Items = []model.Summary{}
		}
		return s
	}
	same := func(step string, want model.SummaryCounts) {
		t.Helper()
		for _, by := range []string{model.ByCluster, model.ByNamespace, model.ByPackage, model.ByCatalog} {
			got := asked(by) // it waits for the read models
			if diff := cmp.Diff(counted(by), got); diff != "" {
				t.Errorf("%s, by %s: %s", step, by, diff)
			}
		}
		if want.Phases == nil {
			want.Phases = map[string]int{}
		}
		if diff := cmp.Diff(want, asked(model.ByCluster).Total); diff != "" {
			t.Errorf("%s: %s", step, diff)
		}
	}
	const csv = "spoke/ops/tidegauge.v1.0.0"
	phase := func(p string) {
		b.fact(events.Installer, events.KindCSV, csv, csv, events.CSVPhaseChanged{
			Cluster: "spoke", Namespace: "ops", Name: "tidegauge.v1.0.0", Package: "tidegauge", Version: "1.0.0",
			Phase: p,
		})
	}
	b.cluster("spoke")
	same("nothing", model.SummaryCounts{})
	b.position = b.do("POST", subscriptions, subscribe("done", "tidegauge")).header.Get("Chandler-Position")
	same("subscribed", model.SummaryCounts{Subscriptions: 1})
	b.fact(events.Resolver, events.KindSubscription, "spoke/ops/done", "spoke/ops/done",
		events.ResolutionSucceeded{Outcome: "AtLatestKnown", CSV: "tidegauge.v1.0.0"})
	phase("Installing")
	same("installed", model.SummaryCounts{Subscriptions: 1, Operators: 1, Phases: map[string]int{"Installing": 1}})
	if got := asked(model.ByCatalog).Items; len(got) != 1 || got[0].Catalog != "fleet" || got[0].Operators != 1 {
		t.Errorf("the operator is not of the catalog of its subscription: %+v", got)
	}
	phase("Failed")
	b.fact(events.Installer, events.KindCSV, csv, csv,
		events.CSVDrifted{Objects: 2, Diff: "sha256:d", Policy: "report"})
	b.fact(events.Resolver, events.KindSubscription, "spoke/ops/done", "spoke/ops/done",
		events.ResolutionFailed{Reason: "ConstraintsNotSatisfiable"})
	failing := model.SummaryCounts{
		Subscriptions: 1, Operators: 1, Drifted: 1, Failing: 1, Phases: map[string]int{"Failed": 1},
	}
	same("failed", failing)
	b.fact(events.Gateway, events.KindCatalog, "fleet", "fleet", events.CatalogAdded{Name: "fleet"})
	b.fact(events.Indexer, events.KindCatalog, "fleet", "fleet", events.CatalogRevisionPublished{
		Revision: "sha256:" + strings.Repeat("2", 64), Packages: 1, Bundles: 1, Changes: []events.PackageChange{{
			Package: "tidegauge", Change: "changed", Deprecated: []string{"olm.bundle/tidegauge.v1.0.0"},
		}},
	})
	deprecated := failing
	deprecated.Deprecated = 1
	same("deprecated", deprecated)
	b.position = b.do("POST", subscriptions, subscribe("other", "buoy")).header.Get("Chandler-Position")
	deprecated.Subscriptions = 2
	same("two subscriptions", deprecated)

	// Two namespaces change at once; others have the cluster of one and the name of the other.
	b.cluster("berth")
	for range 2 {
		for _, place := range []string{"berth/namespaces/ops", "spoke/namespaces/else", "berth/namespaces/else"} {
			deprecated.Subscriptions++
			name := fmt.Sprint("more-", deprecated.Subscriptions)
			b.position = b.do("POST", "/api/v1/clusters/"+place+"/subscriptions", subscribe(name, "tidegauge")).
				header.Get("Chandler-Position")
		}
		same("several namespaces", deprecated)
	}
	b.position = b.do("POST", subscriptions, subscribe("more", "buoy")).header.Get("Chandler-Position")
	b.position = b.do("POST", "/api/v1/clusters/berth/namespaces/else/subscriptions", subscribe("more", "buoy")).
		header.Get("Chandler-Position")
	deprecated.Subscriptions += 2
	same("two namespaces of four", deprecated)

	// What no event tells does not reach the copy: so a copy it is that was asked.
	table := operators.Projection().Live().Name("operators")
	b.exec("admin", "update "+table+" set phase = 'Pending'")
	if got := asked(model.ByCluster).Total; got.Phases["Failed"] != 1 {
		t.Errorf("the summary is not counted in a copy: %+v", got)
	}
	parked := events.StreamID{
		Kind: events.KindCSV, Key: events.Key(events.DefaultTenant, events.KindCSV, "spoke/ops/x"), Incarnation: 1,
	}
	b.exec("admin", `insert into eventlog.parked (tenant, consumer, stream, version, epoch, position, type, reason,
			next_retry) values ($1, $2, $3, 1, 1, 1, 'csv.phase-changed.v1', 'a test', now() + interval '1 day')`,
		events.DefaultTenant, operators.Projection().Consumer(), parked.String())
	b.position = b.do("POST", subscriptions, subscribe("third", "buoy")).header.Get("Chandler-Position")
	got := asked(model.ByCluster).Total
	if got.Phases["Pending"] != 1 || got.Subscriptions != deprecated.Subscriptions+1 {
		t.Errorf("a copy is used while an event is parked: %+v", got)
	}
}
