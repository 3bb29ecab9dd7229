package app_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/app"
)

// TestCollectedBeforeFolded: a revision that was replaced and collected while the resolver was away, or that a rebuild
// meets years later, holds nothing up: what it provided is not known, and what is in service now counts.
func TestCollectedBeforeFolded(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.ready()
	f.addCatalog("fleet")
	f.subscribe("buoy", "buoy", "stable")
	gone := events.CatalogRevisionPublished{
		Revision: "sha256:" + strings.Repeat("2", 64), Packages: 1, Bundles: 1,
		Changes: []events.PackageChange{{
			Package: "buoy", Change: "added",
			Digest: "sha256:" + strings.Repeat("1", 64),
		}},
	}
	f.append(events.Indexer, events.KindCatalog, "fleet", "fleet", gone)
	f.start()
	f.until("the scope to be tried in vain",
		func() bool { return f.scalar(`select count(*) from resolver.dirty where attempts > 0`) == 1 })
	f.publish("fleet", gone.Revision, f.pkg("buoy", version{v: "1.0.0"}))
	f.quiet()
	if n := f.scalar(`select count(*) from eventlog.parked`); n != 0 ||
		!slices.Equal(csvs(f.livePlan()), []string{"buoy.v1.0.0 ChannelHead"}) {
		t.Errorf("%d events are parked, decided %v", n, f.decided())
	}
	// Nothing was said upon a revision that cannot be read: that the package is missing, for one.
	if got := f.reasons(); len(got) != 0 {
		t.Errorf("reasons %v", got)
	}
}

// scalar is one number of the database.
func (f *fleet) scalar(sql string, args ...any) (n int) {
	f.t.Helper()
	f.must(pg.Err(f.admin.QueryRow(f.ctx, sql, args...).Scan(&n)))
	return n
}

// strictAndSick gives the scope a subscription that is held up by a catalog that it does not need.
func (f *fleet) strictAndSick() {
	f.t.Helper()
	f.ready()
	f.addCatalog("fleet")
	f.addCatalog("other")
	f.publish("other", "", f.pkg("kelp", version{v: "1.0.0"}))
	f.append(events.Gateway, events.KindPolicy, "catalog-health", "catalog-health",
		events.CatalogHealthSet{Mode: "Strict"})
	f.append(events.Indexer, events.KindCatalog, "other", "other", events.CatalogLoadFailed{Reason: "InvalidCatalog"})
	f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0"}))
	f.subscribe("buoy", "buoy", "stable", manual)
	f.quiet()
	if got := f.reasons(); len(f.plans()) != 0 || !slices.Equal(got, []string{"CatalogSourcesUnhealthy"}) {
		f.t.Fatalf("%d plans, reasons %v", len(f.plans()), got)
	}
}

// TestAChangedCatalogStaysSick: who changes how a sick catalog is offered has not fixed it. Only another look can
// tell so, and the one that finds the same as before tells nothing (R-CAT-99).
func TestAChangedCatalogStaysSick(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.strictAndSick()
	f.append(events.Gateway, events.KindCatalog, "other", "other",
		events.CatalogChanged{SourceType: "directory", Priority: 7})
	f.subscribe("again", "buoy", "stable", manual)
	f.quiet()
	if len(f.plans()) != 0 {
		t.Errorf("plans %v while the catalog is sick", f.plans())
	}
}

// TestOutOfSight: a sick catalog that a namespace does not see any more holds nothing up there (R-CAT-99).
func TestOutOfSight(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.strictAndSick()
	f.append(events.Gateway, events.KindCatalog, "other", "other",
		events.CatalogChanged{SourceType: "directory", Visibility: events.CatalogVisibility{Cluster: "reef"}})
	f.quiet()
	if got := csvs(f.livePlan()); got[0] != "buoy.v1.0.0 ChannelHead" {
		t.Errorf("plan %v", got)
	}
}

// TestBlockedIsMadeAgain: that a decision was held up, by what and why, follows from its recorded input alone,
// whatever became of the catalog since (DESIGN D5).
func TestBlockedIsMadeAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.strictAndSick()
	var told events.ResolutionFailed
	for _, e := range f.recorded() {
		if p, ok := e.Payload.(events.ResolutionFailed); ok {
			told = p
		}
	}
	_, err := f.db.Pool(t, "admin").Exec(f.ctx, `delete
		from resolver.catalog_health; update resolver.catalog_revisions set failed = false, reason = ''`)
	f.must(pg.Err(err))
	var answer app.ExplainAnswer
	f.must(f.gateway.Call(f.ctx, app.ExplainSubject, app.ExplainQuestion{
		Tenant: tenant, Cluster: cluster,
		Namespace: namespace, Subscription: "buoy",
	}, &answer))
	if answer.Component.Blocked == nil {
		t.Fatalf("answer %+v", answer)
	}
	d, err := answer.Component.Blocked.Digest()
	f.must(err)
	input, err := answer.Component.Input.Digest()
	f.must(err)
	if told.Explanation != string(d) || told.Input != answer.Input || told.Input != string(input) {
		t.Errorf("told %+v, explained %s of %s, made again from %s", told, d, answer.Input, input)
	}
}

// TestOneImageForTwoBundles: an image holds one bundle. Where a catalog names it for another one, too, that one does
// not get its content.
func TestOneImageForTwoBundles(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0", bare: true, image: buoyImage}),
		f.pkg("kelp", version{v: "1.0.0", bare: true, image: buoyImage}))
	f.subscribe("buoy", "buoy", "stable")
	f.subscribe("kelp", "kelp", "stable")
	f.quiet()
	if got := f.wanted(); !slices.Equal(got, []string{"fleet buoy buoy.v1.0.0 " + buoyImage, "fleet kelp kelp.v1.0.0 " +
		buoyImage}) {
		t.Errorf("wanted %q", got)
	}
	f.append(events.Indexer, events.KindCatalog, "fleet", "fleet",
		events.CatalogBundlesFetched{Bundles: []events.FetchedBundle{
			{
				Package: "buoy", Bundle: "buoy.v1.0.0", Image: buoyImage,
				Content: string(f.content("buoy.v1.0.0", version{v: "1.0.0"})),
			},
			{Package: "kelp", Bundle: "kelp.v1.0.0", Image: buoyImage, Reason: "InvalidBundle"},
		}})
	f.quiet()
	if plans := f.plans(); len(plans) != 1 || !slices.Equal(csvs(plans[0]), []string{"buoy.v1.0.0 ChannelHead"}) {
		t.Errorf("plans %+v", plans)
	}
	if got := f.reasons(); got[len(got)-1] != "BundleUnpackFailed" {
		t.Errorf("reasons %v", got)
	}
}

// TestAWishStandsWhileSomebodyWaits: an image that could not be had is asked for still, so that whoever fetches may
// try again when it makes sense, also after the catalog did not name it for a while; it ends with the content, and
// with the last who asks.
func TestAWishStandsWhileSomebodyWaits(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	bare := f.pkg("buoy", version{v: "1.0.0", bare: true, image: buoyImage})
	f.publish("fleet", "", bare)
	f.subscribe("buoy", "buoy", "stable")
	f.quiet()
	wish := []string{"fleet buoy buoy.v1.0.0 " + buoyImage}
	f.fetched(buoyImage, "", "NotFound")
	f.quiet()
	if got := f.wanted(); !slices.Equal(got, wish) {
		t.Errorf("after a failure: wanted %q", got)
	}
	f.append(events.Gateway, events.KindSubscription, scoped("buoy"), scoped("buoy"), events.SubscriptionDeleted{})
	f.quiet()
	if got := f.wanted(); len(got) != 0 {
		t.Errorf("nobody waits: wanted %q", got)
	}
	f.subscribe("buoy", "buoy", "stable")
	f.quiet()
	if got := f.wanted(); !slices.Equal(got, wish) {
		t.Errorf("somebody waits again: wanted %q", got)
	}
	f.fetched(buoyImage, f.content("buoy.v1.0.0", version{v: "1.0.0"}), "")
	f.quiet()
	if got := f.wanted(); len(got) != 0 || len(f.plans()) != 1 {
		t.Errorf("it is there: wanted %q, %d plans", got, len(f.plans()))
	}
}

// TestOutcomesOfBefore: the migration finds in the log for which bundles the known images were fetched.
func TestOutcomesOfBefore(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.addCatalog("fleet")
	f.append(events.Indexer, events.KindCatalog, "fleet", "fleet",
		events.CatalogBundlesFetched{Bundles: []events.FetchedBundle{
			{Package: "buoy", Bundle: "buoy.v1", Image: "registry.test/a", Reason: "NotFound"},
			{Package: "a \x00 b", Bundle: "kelp.v1", Image: "registry.test/a", Reason: "InvalidBundle"},
		}})
	f.append(events.Indexer, events.KindCatalog, "fleet", "fleet",
		events.CatalogBundlesFetched{Bundles: []events.FetchedBundle{
			{Package: "buoy", Bundle: "buoy.v1", Image: "registry.test/a", Content: string(digest.Bytes([]byte("a")))},
		}})
	f.quiet()
	const state = `select count(*) from resolver.bundle_images where tenant = 'default' and subject = 'fleet'
		and image = 'registry.test/a'
		and (package, bundle, content <> '', reason) in (('buoy', 'buoy.v1', true, ''), (E'a \ufffd b', 'kelp.v1',
		false, 'InvalidBundle'))`
	if n := f.scalar(state); n != 2 {
		t.Fatalf("%d outcomes of 2 are known", n)
	}
	admin := f.db.Pool(t, "admin")
	_, err := admin.Exec(f.ctx, migration(t, "0005_outcomes.down.sql"))
	f.must(pg.Err(err))
	_, err = admin.Exec(f.ctx, `insert into resolver.reads
		values ('default', $1, 'ns', 'image', 'fleet', 'registry.test/a')`, uuid.NewString())
	f.must(pg.Err(err))
	_, err = admin.Exec(f.ctx, migration(t, "0005_outcomes.up.sql"))
	f.must(pg.Err(err))
	if n := f.scalar(state); n != 2 || f.scalar(`select count(*) from resolver.bundle_images`) != 2 {
		t.Errorf("%d outcomes of 2 are known after the migration", n)
	}
	if f.scalar(`select count(*) from resolver.reads where name like 'registry.test/a % %'`) != 1 {
		t.Error("who asked for the image is not asked for its bundle")
	}
}
