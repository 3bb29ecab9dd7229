package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/app"
)

const buoyImage = "registry.test/buoy@sha256:1111111111111111111111111111111111111111111111111111111111111111"

// reasons are those of the failures that were told, in order.
func (f *fleet) reasons() (out []string) {
	f.t.Helper()
	for _, e := range f.recorded() {
		if p, ok := e.Payload.(events.ResolutionFailed); ok {
			out = append(out, p.Reason)
		}
	}
	return out
}

// wanted are the images that the resolver asks for, as the indexer sees them.
func (f *fleet) wanted() []string {
	f.t.Helper()
	rows, err := f.pools[events.Indexer].Query(f.ctx, `select catalog || ' ' || package || ' ' || bundle || ' ' || image
		from resolver_api.wanted_images where tenant = $1 order by 1`, tenant)
	f.must(err)
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	f.must(err)
	return out
}

func (f *fleet) fetched(image string, content digest.Digest, reason string) {
	f.t.Helper()
	f.append(events.Indexer, events.KindCatalog, "fleet", "fleet",
		events.CatalogBundlesFetched{Bundles: []events.FetchedBundle{
			{Package: "buoy", Bundle: "buoy.v1.0.0", Image: image, Content: string(content), Reason: reason},
		}})
}

// TestBundleImageIsAskedFor: a bundle that its catalog names by image alone is asked for when it is chosen; the
// subscription says that it is being fetched, then why it cannot be, and goes on by itself when it is there. A plan
// is made when all content is there, and not before (R-IP-3, R-IP-32, R-SUB-31).
func TestBundleImageIsAskedFor(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	stop := f.start()
	f.ready()
	f.addCatalog("fleet")
	f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0", bare: true, image: buoyImage}),
		f.pkg("kelp", version{v: "1.0.0", bare: true, image: "registry.test/kelp:1"}))
	f.subscribe("buoy", "buoy", "stable")
	f.quiet()
	if got := f.wanted(); !slices.Equal(got, []string{"fleet buoy buoy.v1.0.0 " + buoyImage}) {
		t.Errorf("wanted %q", got)
	}
	if got := f.reasons(); !slices.Equal(got, []string{"BundleUnpacking"}) {
		t.Errorf("reasons %q", got)
	}
	stop() // whatever ends it, what it asked for stands
	f.start()
	if len(f.wanted()) != 1 {
		t.Error("the wish is gone with the process")
	}
	f.fetched(buoyImage, "", "NotFound")
	f.quiet()
	if got := f.reasons(); !slices.Equal(got, []string{"BundleUnpacking", "BundleUnpackFailed"}) ||
		len(f.wanted()) != 1 {
		t.Errorf("reasons %q, wanted %q", got, f.wanted())
	}
	f.fetched(buoyImage, f.content("buoy.v1.0.0", version{v: "1.0.0"}), "")
	f.quiet()
	p := f.livePlan()
	if p.Proposed.Bundles[0].Content == "" || p.Proposed.Steps == 0 {
		t.Errorf("plan %+v", p.Proposed)
	}
	var answer app.ExplainAnswer // made again from what was recorded, the image's content included
	f.must(f.gateway.Call(f.ctx, app.ExplainSubject, app.ExplainQuestion{
		Tenant: tenant, Cluster: cluster,
		Namespace: namespace, Subscription: "buoy",
	}, &answer))
	if b := answer.Component.Bundles; answer.Input != p.Proposed.Input || len(b) != 1 ||
		string(b[0].Content) != p.Proposed.Bundles[0].Content {
		t.Errorf("explained %+v of input %s, planned %+v of %s", b, answer.Input, p.Proposed.Bundles, p.Proposed.Input)
	}
	f.carryOut(p)
	f.quiet()
	if got := count(f.decided(), events.ResolutionSucceeded{}); got != 2 {
		t.Errorf("decided %v", f.decided())
	}
}

// TestFetchedBeforeItIsNeeded: an image that is there already is no reason to wait, and nothing is asked for.
func TestFetchedBeforeItIsNeeded(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0", bare: true, image: buoyImage}))
	f.fetched(buoyImage, f.content("buoy.v1.0.0", version{v: "1.0.0"}), "")
	f.quiet()
	f.subscribe("buoy", "buoy", "stable")
	f.quiet()
	if got := csvs(f.livePlan()); got[0] != "buoy.v1.0.0 ChannelHead" || len(f.reasons()) != 0 || len(f.wanted()) != 0 {
		t.Errorf("plan %v, reasons %v, wanted %v", got, f.reasons(), f.wanted())
	}
}

// TestTemplatedCatalog: a cluster gets what its version of Kubernetes gets, and moves by itself when it is upgraded;
// what is published for another version touches nobody here (R-CAT-92).
func TestTemplatedCatalog(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	observed := func(v string) {
		f.append(events.Installer, events.KindCluster, cluster, cluster,
			events.ClusterObserved{State: "Connected", KubernetesVersion: v})
	}
	observed("v1.33.2")
	f.addCatalog("fleet", func(c *events.CatalogAdded) { c.Templated = true })
	old := f.publishVariant("fleet", "1.33", "", f.pkg("buoy", version{v: "1.0.0"}))
	f.subscribe("buoy", "buoy", "stable")
	f.quiet()
	p := f.livePlan()
	if got := csvs(p); got[0] != "buoy.v1.0.0 ChannelHead" || p.Proposed.Bundles[0].Revision != old {
		t.Fatalf("plan %v of revision %s", got, p.Proposed.Bundles[0].Revision)
	}
	f.carryOut(p)
	f.quiet()
	before := len(f.decided())
	f.publishVariant("fleet", "1.99", "", f.pkg("buoy", version{v: "9.0.0", replaces: "1.0.0"}, version{v: "1.0.0"}))
	f.quiet()
	if got := f.decided(); len(got) != before {
		t.Errorf("a version that no cluster has led to %v", got[before:])
	}
	observed("v1.34.0")
	f.quiet()
	if got := f.decided(); len(got) != before {
		t.Errorf("while the catalog of the new version is loaded: %v", got[before:])
	}
	f.publishVariant("fleet", "1.34", "", f.pkg("buoy", version{v: "1.1.0", replaces: "1.0.0"}, version{v: "1.0.0"}))
	f.quiet()
	if got := csvs(f.livePlan()); got[0] != "buoy.v1.1.0 NextStep" {
		t.Errorf("plan %v", got)
	}
}

// TestDisabledCatalog: a disabled catalog is not offered; what it has comes back with it (R-CFG-10).
func TestDisabledCatalog(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet", func(c *events.CatalogAdded) { c.Disabled = true })
	f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0"}))
	f.subscribe("buoy", "buoy", "stable")
	f.quiet()
	if len(f.plans()) != 0 || len(f.reasons()) != 1 {
		t.Fatalf("plans %v, reasons %v", f.plans(), f.reasons())
	}
	f.append(events.Gateway, events.KindCatalog, "fleet", "fleet", events.CatalogChanged{SourceType: "directory"})
	f.quiet()
	if got := csvs(f.livePlan()); got[0] != "buoy.v1.0.0 ChannelHead" {
		t.Errorf("plan %v", got)
	}
}

// TestStrictCatalogNamespace: by default a sick catalog hurts only those who need it; where its namespace is strict it
// holds up all who see it, until it is fixed, disabled or removed (R-CAT-99, D3).
func TestStrictCatalogNamespace(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	health := func(mode string) {
		f.append(events.Gateway, events.KindPolicy, "catalog-health", "catalog-health",
			events.CatalogHealthSet{Mode: mode})
	}
	for _, name := range []string{"fleet", "other"} {
		f.addCatalog(name)
	}
	other := f.publish("other", "", f.pkg("kelp", version{v: "1.0.0"}))
	f.append(events.Indexer, events.KindCatalog, "other", "other", events.CatalogLoadFailed{Reason: "InvalidCatalog"})
	f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0"}), f.pkg("gauge", version{v: "1.0.0"}))
	f.subscribe("buoy", "buoy", "stable", manual)
	f.quiet()
	first := f.livePlan()
	if got := csvs(first); got[0] != "buoy.v1.0.0 ChannelHead" {
		t.Fatalf("independent: plan %v", got)
	}
	health("Strict")
	f.subscribe("gauge", "gauge", "stable")
	f.quiet()
	if got := f.reasons(); len(f.plans()) != 1 || !slices.Equal(got, []string{"CatalogSourcesUnhealthy"}) ||
		f.livePlan().Proposed.Plan != first.Proposed.Plan {
		t.Fatalf("strict: %d plans, reasons %v", len(f.plans()), got)
	}
	for _, e := range f.recorded() {
		if p, ok := e.Payload.(events.ResolutionFailed); ok {
			if text := f.explanation(p.Explanation); !strings.Contains(
				text, "catalog other is unhealthy (InvalidCatalog)") {
				t.Errorf("explanation %s", text)
			}
		}
	}
	// Mended without another revision: the indexer tells so, and what waited goes on by itself.
	f.append(events.Indexer, events.KindCatalog, "other", "other",
		events.CatalogRevisionPublished{Revision: other, Previous: other, Changes: []events.PackageChange{}})
	f.quiet()
	if got := csvs(f.livePlan()); len(f.plans()) != 2 || got[0] != "gauge.v1.0.0 ChannelHead" {
		t.Fatalf("fixed: plans %v", f.plans())
	}
	f.append(events.Indexer, events.KindCatalog, "other", "other",
		events.CatalogLoadFailed{Reason: "InvalidCatalog", Input: "2"})
	f.subscribe("late", "kelp", "stable", func(s *events.SubscriptionSpec) { s.Catalog = "other" })
	f.quiet()
	if got := f.reasons(); len(got) != 2 {
		t.Fatalf("sick again: reasons %v", got)
	}
	health("Independent")
	f.quiet()
	if got := csvs(f.livePlan()); got[0] != "kelp.v1.0.0 ChannelHead" {
		t.Errorf("independent again: plan %v", got)
	}
}

// TestWakesOnlyThoseItTouches counts: of 300 namespaces that follow 300 packages, one changed package has two resolved:
// the one that follows it, and the one that asked for an API of it. A look that fails while a revision is in service,
// and a catalog that is offered as before, have none; a variant has those of its version of Kubernetes (DESIGN D4).
func TestWakesOnlyThoseItTouches(t *testing.T) {
	t.Parallel()
	const many = 300
	f := newFleet(t)
	f.start()
	for c, v := range map[string]string{cluster: "v1.33.1", "reef": "v1.34.0"} {
		f.append(events.Gateway, events.KindCluster, c, c, events.ClusterRegistered{Name: c})
		f.append(events.Installer, events.KindCluster, c, c,
			events.ClusterObserved{State: "Connected", KubernetesVersion: v})
	}
	f.addCatalog("fleet")
	f.addCatalog("tides", func(c *events.CatalogAdded) { c.Templated = true })
	packages := make([]catalog.Package, many)
	for i := range packages {
		v := version{v: "1.0.0", provides: []string{fmt.Sprintf("Kind%d", i)}}
		if i == 8 {
			v.requires = []string{"Kind7"}
		}
		packages[i] = f.pkg(fmt.Sprintf("p%03d", i), v)
	}
	revision := f.publish("fleet", "", packages...)
	follow := func(cluster, ns, catalog, pkg string) {
		f.append(events.Gateway, events.KindOperatorGroup, cluster+"/"+ns+"/og", cluster+"/"+ns+"/og",
			events.OperatorGroupCreated{Cluster: cluster, Namespace: ns, Name: "og"})
		f.append(events.Gateway, events.KindSubscription, cluster+"/"+ns+"/s", cluster+"/"+ns+"/s",
			events.SubscriptionCreated{
				Cluster: cluster, Namespace: ns, Name: "s",
				Spec: events.SubscriptionSpec{
					Package: pkg, Channel: "stable", Catalog: catalog,
					Approval: installplan.Manual,
				},
			})
	}
	for i := range many {
		follow(cluster, fmt.Sprintf("ns-%03d", i), "fleet", fmt.Sprintf("p%03d", i))
	}
	follow(cluster, "flood", "tides", "kelp")
	follow("reef", "ebb", "tides", "kelp")
	f.quiet()
	if n := count(f.decided(), events.InstallPlanProposed{}); n != many {
		t.Fatalf("%d plans of %d", n, many)
	}
	f.countResolutions()
	packages[7] = f.pkg("p007", version{v: "1.1.0", replaces: "1.0.0", provides: []string{"Kind7"}},
		version{v: "1.0.0", provides: []string{"Kind7"}})
	for _, c := range []struct {
		name string
		do   func()
		want []string
	}{
		{"one package", func() { f.publish("fleet", revision, packages...) }, []string{"ns-007", "ns-008"}},
		{"a failed look", func() {
			f.append(events.Indexer, events.KindCatalog, "fleet", "fleet",
				events.CatalogLoadFailed{Reason: "InvalidCatalog", Input: "1"})
		}, nil},
		{"another interval", func() {
			f.append(events.Gateway, events.KindCatalog, "fleet", "fleet",
				events.CatalogChanged{SourceType: "directory", Spec: "another"})
		}, nil},
		{
			"first variant", func() { f.publishVariant("tides", "1.34", "", f.pkg("kelp", version{v: "1.0.0"})) },
			[]string{"ebb"},
		},
		{"failed first variant", func() {
			f.append(events.Indexer, events.KindCatalog, "tides", "tides",
				events.CatalogLoadFailed{Reason: "InvalidCatalog", Variant: "1.33", Input: "1"})
		}, []string{"flood"}},
	} {
		c.do()
		f.quiet()
		if got := f.resolutions(); !slices.Equal(got, c.want) {
			t.Errorf("%s: resolved %v", c.name, got)
		}
	}
}

// countResolutions notes each scope that is done with from now on: a worker ends by deleting its row.
func (f *fleet) countResolutions() {
	f.t.Helper()
	_, err := f.db.Pool(f.t, "admin").Exec(f.ctx, `
		create table public.resolved (namespace text);
		create function public.note() returns trigger language plpgsql security definer as $$ begin insert into public.resolved values (old.namespace); return old; end $$;
		create trigger note after delete on resolver.dirty for each row execute function public.note();`)
	f.must(pg.Err(err))
}

// resolutions are those since the last call.
func (f *fleet) resolutions() []string {
	f.t.Helper()
	rows, err := f.db.Pool(f.t, "admin").Query(f.ctx, `with done as (delete from public.resolved returning namespace)
		select namespace from done order by 1`)
	f.must(err)
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	f.must(err)
	return out
}
