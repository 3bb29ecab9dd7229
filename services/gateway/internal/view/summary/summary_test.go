package summary_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/clusters"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/operators"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/subscriptions"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/summary"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/viewtest"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// pick is one of some.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// sql writes a row of a table.
func sql(table, columns string, values ...any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = "'" + strings.ReplaceAll(fmt.Sprint(v), "'", "''") + "'"
	}
	return "insert into " + table + " (" + columns + ") values (" + strings.Join(texts, ", ") +
		") on conflict do nothing;\n"
}

// randomFleet is rows of the read models of a tenant, in every combination that is counted apart.
func randomFleet(r *rand.Rand, tenant string) string {
	var out strings.Builder
	for c := range 4 {
		out.WriteString(sql("clusters",
			"tenant, name, labels, state, reason, kubernetes_version, holder_epoch, registered, updated, stream, version",
			tenant, fmt.Sprint("c", c), fmt.Sprintf(`{"tier": "%d"}`, c%2), "Connected", "",
			pick(r, "v1.33.1", "v1.34.0", ""), 1, "2031-01-01", "2031-01-01", "s", 1))
	}
	for _, subject := range []string{"fleet", "spare", "c1/n0/own", "c2/n1/fleet"} {
		for _, variant := range []string{"", "1.34"} {
			out.WriteString(sql("subscription_catalogs", "tenant, subject, variant, state, reason, event_id, since",
				tenant, subject, variant, pick(r, "Ready", "Failed", "Gone"), "", "e", "2031-01-01"))
			for _, element := range []string{"olm.package", "olm.channel/stable", "olm.bundle/p1.v1"} {
				if r.IntN(3) == 0 {
					out.WriteString(sql("subscription_deprecations",
						"tenant, subject, variant, package, element, event_id, since", tenant, subject, variant, pick(r, "p1", "p2"), element, "e", "2031-01-01"))
				}
			}
		}
	}
	csv := func() string { return pick(r, "p1.v1", "p1.v2", "p2.v1", "") }
	for range 150 {
		cluster, namespace := fmt.Sprint("c", r.IntN(5)), fmt.Sprint("n", r.IntN(3)) // c4 is registered no more
		state, err := json.Marshal(map[string]any{
			"Proposed": map[string]any{"approval": pick(r, "Manual", "Automatic")},
			"Begun":    pick(r, true, false),
			"Approval": map[string]any{"Expires": pick(r, "2001-01-01T00:00:00.5Z", "2131-01-01T00:00:00Z")},
		})
		if err != nil {
			panic(err)
		}
		out.WriteString(sql("subscriptions", `tenant, cluster, namespace, name, package, channel, catalog, catalog_namespace,
			starting_csv, approval, config, generated, current_csv, installed_csv, plan_id, plan_name, plan_generation,
			plan_phase, plan_state, plan_event, failed_reason, failed_document, failed_event, created, updated, stream, version,
			rollback_to`, tenant, cluster, namespace, fmt.Sprint("s-", r.IntN(9)), pick(r, "p1", "p2", "p3"),
			pick(r, "stable", "beta"),
			pick(r, "fleet", "spare", "own"), pick(r, "", "", "n0", "n1"), "", "", "", false, csv(), csv(), "", "", 0,
			pick(r, "", "RequiresApproval", "Installing", "Failed", "Complete"), string(state), "",
			pick(r, "", "", "BundleUnpacking", "ConstraintsNotSatisfiable"), "", "", "2031-01-01", "2031-01-01", "s", 1,
			csv()))
		out.WriteString(sql("operators", `tenant, cluster, namespace, name, package, csv_version, phase, reason, content,
			plan, flapping, history, installed, updated, stream, version, drifted`, tenant, cluster, namespace,
			pick(r, "p1.v1", "p1.v2", "p2.v1", "p3.v1"), pick(r, "p1", "p2", "p3"), "1.0.0",
			pick(r, "Succeeded", "Failed", "Pending"), "", "", "", false, "[]", "2031-01-01", "2031-01-01", "s", 1,
			pick(r, 0, 0, 2)))
	}
	return out.String()
}

// randomScope limits some of clusters, namespaces and catalogs.
func randomScope(r *rand.Rand) (s events.AccessScope) {
	some := func(of ...string) []string {
		if r.IntN(2) == 0 {
			return nil
		}
		return []string{pick(r, of...), pick(r, of...)}
	}
	s.Clusters, s.Namespaces = some("c0", "c1", "c2", "c*", "gone"), some("n0", "n1", "n*", "n2")
	s.Catalogs = some("fleet", "spare", "n0/own", "n*", "own")
	if r.IntN(3) == 0 {
		s.ClusterLabels = map[string]string{"tier": pick(r, "0", "1", "9")}
	}
	return s
}

// randomCaller may list some of what is counted in some scopes, perhaps for somebody who may list others.
func randomCaller(r *rand.Rand, tenant string) model.Caller {
	state := access.State{Roles: map[string]events.RoleDefined{}, Bindings: map[string]events.RoleBindingDefined{}}
	for i := range 1 + r.IntN(3) {
		name := fmt.Sprint("role-", i)
		state.Roles[name] = events.RoleDefined{Name: name, Rules: []events.AccessRule{{
			Verbs: []string{"list"}, Resources: []string{
				pick(r, "operators", "subscriptions"), pick(r, "subscriptions", "catalogs"),
				pick(r, "operators", "clusters"),
			},
		}}}
		state.Bindings[name] = events.RoleBindingDefined{
			Name: name, Role: name, Scope: randomScope(r),
			Subjects: []events.AccessSubject{{Kind: access.KindUser, Name: "ann"}},
		}
	}
	labels := map[string]map[string]string{}
	for c := range 4 {
		labels[fmt.Sprint("c", c)] = map[string]string{"tier": fmt.Sprint(c % 2)}
	}
	p := access.NewPolicy(state, labels)
	who := model.Caller{Tenant: tenant, Actor: "ann", Kind: access.KindUser}
	who.Rights = p.RightsOf(access.Identity{Kind: access.KindUser, Name: "ann"})
	if r.IntN(4) == 0 {
		who.Rights = p.Within(access.Identity{Kind: access.KindUser, Name: "ann"}, access.List, access.Operators,
			randomScope(r))
	}
	return who
}

func randomFilter(r *rand.Rand) model.SummaryFilter {
	some := func(of ...string) string {
		if r.IntN(3) > 0 {
			return ""
		}
		return pick(r, of...)
	}
	return model.SummaryFilter{
		By:      pick(r, model.ByCluster, model.ByNamespace, model.ByPackage, model.ByCatalog),
		Cluster: some("c1", "c4", "none"), Namespace: some("n0", "n1"), Package: some("p1", "p3"),
		Catalog: some("fleet", "c1/n0/own", "spare"), ClusterSelector: some("tier=1", "tier!=0", "!tier"),
		Page: model.Page{Limit: pick(r, 1, 2, 100)},
	}
}

// held says that the read models are where the log is: these tests have no log.
func held(context.Context, events.Position, time.Duration) error { return nil }

// TestCopiesAreShared: questions that come together share a copy, whose parts nobody changes while others count; what
// somebody asks in vain costs it nothing, and no two tenants share one.
func TestCopiesAreShared(t *testing.T) {
	t.Parallel()
	e := viewtest.New(t, operators.Projection(), subscriptions.Projection(), clusters.Projection())
	fold := func(name string) {
		e.Fold(events.KindCSV, "harbour/ops/"+name, events.CSVPhaseChanged{
			Cluster: "harbour", Namespace: "ops", Name: name, Package: "tide", Phase: "Succeeded", Version: "1.0.0",
		})
	}
	fold("tide.v1")
	r := &summary.Reader{Pool: e.Pool, Copies: &summary.Copies{
		Pool: e.Pool, Work: e.Pool, Log: eventlog.New(e.Pool), Hold: held, Slog: slog.New(slog.DiscardHandler),
	}}
	f := model.SummaryFilter{By: model.ByCluster, Page: model.Page{Limit: 9}}
	var all sync.WaitGroup
	for i := range 40 {
		who, want := viewtest.Ann, 1
		if i%2 == 1 {
			who, want = viewtest.Eve, 0
		}
		all.Go(func() {
			total, _, _, err := r.List(t.Context(), who, f)
			if err != nil || total.Operators != want {
				t.Errorf("%s sees %d operators, want %d: %v", who.Tenant, total.Operators, want, err)
			}
		})
	}
	all.Wait()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, _, err := r.List(gone, viewtest.Ann, f); err == nil {
		t.Error("a question that was taken back has an answer")
	}
	fold("tide.v2") // without an event in the log: the copy does not know it
	total, _, _, err := r.List(t.Context(), viewtest.Ann, f)
	if err != nil || total.Operators != 1 {
		t.Errorf("%d operators behind a question that was taken back: the copy was made anew (%v)", total.Operators, err)
	}
}

// TestACopyCountsAsPostgreSQLDoes: issue 13, section 5, the roll-up of a fleet: whatever is there, whoever asks and
// whatever is asked for, page by page, a copy says what the read models say, and nothing of another tenant.
func TestACopyCountsAsPostgreSQLDoes(t *testing.T) {
	t.Parallel()
	models := []projection.Projection{operators.Projection(), subscriptions.Projection(), clusters.Projection()}
	e := viewtest.New(t, models...)
	var places []string
	for _, m := range models {
		places = append(places, m.Place())
	}
	r := rand.New(rand.NewPCG(13, 5)) // the same fleets each time
	counted := 0
	for round := range 6 {
		text := "begin; set local search_path = " + strings.Join(places, ", ") + ";\n" +
			"delete from operators; delete from subscriptions; delete from subscription_catalogs;\n" +
			"delete from subscription_deprecations; delete from clusters;\n"
		e.Exec(text + randomFleet(r, viewtest.Ann.Tenant) + randomFleet(r, viewtest.Eve.Tenant) + "commit")
		copies := &summary.Copies{
			Pool: e.Pool, Work: e.Pool, Log: eventlog.New(e.Pool), Hold: held, Slog: slog.New(slog.DiscardHandler),
		}
		stored, copied := &summary.Reader{Pool: e.Pool}, &summary.Reader{Pool: e.Pool, Copies: copies}
		for i := range 150 {
			who, f := randomCaller(r, viewtest.Ann.Tenant), randomFilter(r)
			switch i % 10 {
			case 0:
				who = viewtest.Ann
			case 1:
				who = viewtest.Eve
			}
			for {
				total, items, next, err := stored.List(t.Context(), who, f)
				if err != nil {
					t.Fatal(err)
				}
				gotTotal, gotItems, gotNext, err := copied.List(t.Context(), who, f)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]any{total, items, next}, []any{gotTotal, gotItems, gotNext}); diff != "" {
					t.Fatalf("round %d, question %d: %+v\n%s", round, i, f, diff)
				}
				counted += len(items)
				if f.After = next; next == nil {
					break
				}
			}
		}
		if !copies.Has(viewtest.Ann.Tenant) || !copies.Has(viewtest.Eve.Tenant) {
			t.Fatal("PostgreSQL has counted in place of the copy")
		}
	}
	if counted < 1000 {
		t.Errorf("only %d parts were counted", counted)
	}
}
