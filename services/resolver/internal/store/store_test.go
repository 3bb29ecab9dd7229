package store_test

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

const tenant = events.DefaultTenant

// marks remembers what was made dirty, and what of it in the lane of what people wait for.
type marks struct{ namespaces, interactive []string }

func (m *marks) Mark(_ context.Context, _ pgx.Tx, lane bus.Lane, scopes ...bus.Scope) error {
	for _, s := range scopes {
		m.namespaces = append(m.namespaces, s.Namespace)
		if lane == bus.Interactive {
			m.interactive = append(m.interactive, s.Namespace)
		}
	}
	return nil
}

// apis says that package document "gauge" provides Gauge.
type apis struct{}

func (apis) Of(_ context.Context, _ pgx.Tx, _ string, digests []string) ([]string, error) {
	if slices.Contains(digests, "gone") {
		return nil, errs.New(errs.NotFound, "package document gone is not stored")
	}
	if slices.Contains(digests, "gauge") {
		return []string{"sea.test/v1/Gauge"}, nil
	}
	return []string{}, nil
}

type bench struct {
	db    *pgtest.Database
	pool  *pg.Pool
	store *store.Store
	marks *marks
	log   *eventlog.Log
}

func setup(t *testing.T) *bench {
	t.Helper()
	db := pgtest.DB(t)
	pool := db.Pool(t, "resolver")
	b := &bench{db: db, pool: pool, marks: &marks{}, log: eventlog.New(pool)}
	b.store = store.New(pool, b.log, b.marks, apis{},
		func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }, bodies.Keys{})
	// No consumer runs here: its tables are what the tests put there.
	if _, err := pool.Exec(t.Context(), `select eventlog.take_checkpoint($1)`, store.Consumer); err != nil {
		t.Fatal(err)
	}
	return b
}

// apply folds an event as if it stood in the log, and returns the namespaces that it made dirty.
func (b *bench) apply(t *testing.T, subject string, version int64, p events.Payload) []string {
	t.Helper()
	d, _ := events.Lookup(p.EventType())
	*b.marks = marks{}
	err := b.pool.Tx(t.Context(), func(tx pgx.Tx) error {
		return b.store.Projection.Apply(t.Context(), tx, eventlog.Recorded{
			Envelope: events.Envelope{
				ID: uuid.NewString(), Tenant: tenant, Type: p.EventType(), Subject: subject,
				Version: version,
			},
			StreamID: events.StreamID{Kind: d.Kind, Key: events.Key(tenant, d.Kind, subject), Incarnation: 1},
			Position: events.Position{Epoch: 1, N: version}, Payload: p,
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(b.marks.namespaces)
	return slices.Compact(b.marks.namespaces)
}

func scope(namespace string) resolution.Scope {
	return resolution.Scope{Cluster: "harbour", Namespace: namespace}
}

func (b *bench) load(t *testing.T, namespace string) store.Loaded {
	t.Helper()
	l, err := b.store.Scopes.Load(t.Context(), tenant, scope(namespace))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// reads records what a namespace's last resolution asked.
func (b *bench) reads(t *testing.T, namespace string, reads ...resolution.Read) {
	t.Helper()
	b.readsOf(t, scope(namespace), reads...)
}

func (b *bench) readsOf(t *testing.T, s resolution.Scope, reads ...resolution.Read) {
	t.Helper()
	l, err := b.store.Scopes.Load(t.Context(), tenant, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.store.Decisions.Write(t.Context(), l, decide.Decisions{}, reads,
		store.Cause{Command: uuid.New()}); err != nil {
		t.Fatal(err)
	}
}

// TestOnlyTouchedScopesBecomeDirty: a revision makes dirty exactly those whose read set it touches, misses
// included; an unaffected package causes no resolution (DESIGN D4, §7).
func TestOnlyTouchedScopesBecomeDirty(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fleet, other := resolution.CatalogKey{Name: "fleet"}, resolution.CatalogKey{Name: "other"}
	named := resolution.Read{Kind: resolution.ReadCatalog, Catalog: fleet}
	b.apply(t, "late", 1, events.CatalogAdded{Name: "late"})
	for _, name := range []string{"fleet", "other"} {
		b.apply(t, name, 1, events.CatalogAdded{Name: name})
		b.apply(t, name, 2, events.CatalogRevisionPublished{Revision: "r"})
	}
	b.reads(t, "has-buoy", named, resolution.Read{
		Kind: resolution.ReadPackage, Catalog: fleet, Name: "buoy",
		Answer: "d",
	})
	b.reads(t, "wants-buoy", named, resolution.Read{Kind: resolution.ReadPackage, Catalog: fleet, Name: "buoy"})
	b.reads(t, "other-buoy", resolution.Read{Kind: resolution.ReadPackage, Catalog: other, Name: "buoy", Answer: "d"})
	b.reads(t, "wants-gauge", named, resolution.Read{Kind: resolution.ReadVisible},
		resolution.Read{Kind: resolution.ReadAPI, Catalog: fleet, Name: "sea.test/v1/Gauge"})
	b.reads(t, "lists", named, resolution.Read{Kind: resolution.ReadNames, Catalog: fleet, Answer: "x"})
	b.reads(t, "waits", resolution.Read{
		Kind:    resolution.ReadCatalog,
		Catalog: resolution.CatalogKey{Name: "late", Namespace: "olm"},
	})
	image := resolution.BundleImage{Image: "registry.test/buoy:1", Package: "buoy", Bundle: "buoy.v1"}
	b.reads(t, "wants-image", named, resolution.Read{
		Kind: resolution.ReadImage, Catalog: fleet,
		Name: image.ReadName(),
	})
	b.reads(t, "other-image", resolution.Read{Kind: resolution.ReadImage, Catalog: other, Name: image.ReadName()})
	fetched := func(image, bundle, reason string) events.CatalogBundlesFetched {
		return events.CatalogBundlesFetched{Bundles: []events.FetchedBundle{
			{Image: "registry.test/x:1", Package: "x", Bundle: "x.v1", Content: "d"},
			{Image: image, Package: "buoy", Bundle: bundle, Reason: reason},
		}}
	}
	same := func(changes ...events.PackageChange) events.CatalogRevisionPublished {
		return events.CatalogRevisionPublished{Revision: "r", Previous: "r", Changes: changes}
	}
	change := func(pkg, how, d string) events.CatalogRevisionPublished {
		return same(events.PackageChange{Package: pkg, Change: how, Digest: d})
	}
	everyone := []string{"has-buoy", "lists", "wants-buoy", "wants-gauge"}
	cases := []struct {
		name, catalog string
		event         events.Payload
		want          []string
	}{
		{"changed package", "fleet", change("buoy", "changed", "d2"), []string{"has-buoy", "wants-buoy"}},
		{"removed package", "fleet", change("buoy", "removed", ""), []string{"has-buoy", "lists", "wants-buoy"}},
		{"unaffected package", "fleet", change("drift", "changed", "d3"), nil},
		{"an API that was missed", "fleet", change("gauge", "added", "gauge"), []string{"lists", "wants-gauge"}},
		{"the same in another catalog", "other", change("buoy", "changed", "d2"), []string{"other-buoy"}},
		{"a package document that was collected", "fleet", change("gauge", "changed", "gone"), []string{"wants-gauge"}},
		{"a change that is told without a digest", "fleet", change("gauge", "changed", ""), []string{"wants-gauge"}},
		{"every package", "fleet", events.CatalogRevisionPublished{Revision: "r", Previous: "r", All: true}, everyone},
		{
			"what a revision differs from is not known here", "fleet",
			events.CatalogRevisionPublished{Revision: "r", Previous: "r0"},
			everyone,
		},
		{
			"a bundle image that was waited for", "fleet", fetched("registry.test/buoy:1", "buoy.v1", ""),
			[]string{"wants-image"},
		},
		{
			"why it cannot be had", "fleet", fetched("registry.test/buoy:1", "buoy.v1", "NotFound"),
			[]string{"wants-image"},
		},
		{"the same image for another bundle", "fleet", fetched("registry.test/buoy:1", "buoy.v2", ""), nil},
		{"a bundle image that nobody waits for", "fleet", fetched("registry.test/kelp:1", "buoy.v1", ""), nil},
		{
			"a failed look while a revision is in service", "fleet",
			events.CatalogLoadFailed{Reason: "InvalidCatalog"},
			nil,
		},
		{"the end of a failure that hurt nobody", "fleet", same(), nil},
		{
			"a variant that no cluster has", "fleet",
			events.CatalogRevisionPublished{
				Revision: "r3", Variant: "1.99", Changes: []events.PackageChange{{Package: "buoy", Change: "changed"}},
			},
			nil,
		},
		{
			"a failed look before the first revision", "late",
			events.CatalogLoadFailed{Reason: "InvalidCatalog"},
			[]string{"waits"},
		},
		{"another failed look", "late", events.CatalogLoadFailed{Reason: "TooLarge"}, nil},
		{
			"the first revision of a catalog that was waited for", "late",
			events.CatalogRevisionPublished{Revision: "r1"},
			[]string{"waits", "wants-gauge"},
		},
		{"another interval or other words", "other", events.CatalogChanged{SourceType: "image", Spec: "s"}, nil},
		{"priority", "other", events.CatalogChanged{Priority: 3}, []string{"wants-gauge"}},
		{
			"out of sight", "late",
			events.CatalogChanged{Visibility: events.CatalogVisibility{Cluster: "reef"}},
			[]string{"waits", "wants-gauge"},
		},
		{"what is out of sight", "late", events.CatalogRevisionPublished{Revision: "r2"}, nil},
		{
			"in sight again", "late",
			events.CatalogChanged{Visibility: events.CatalogVisibility{Cluster: "harbour"}},
			[]string{"waits", "wants-gauge"},
		},
		{"in sight of others as well", "late", events.CatalogChanged{}, nil},
		{
			"the priority of one that is disabled", "late",
			events.CatalogChanged{Disabled: true},
			[]string{"waits", "wants-gauge"},
		},
		{"nobody's catalog", "late", events.CatalogChanged{Disabled: true, Priority: 9}, nil},
		{
			"the catalog goes", "fleet",
			events.CatalogRemoved{},
			[]string{"has-buoy", "lists", "wants-buoy", "wants-gauge", "wants-image"},
		},
	}
	for i, c := range cases {
		if diff := cmp.Diff(c.want, b.apply(t, c.catalog, int64(10+i), c.event)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestIntentsAndFactsMakeTheirScopeDirty, and only phases that free or hold a component do.
func TestIntentsAndFactsMakeTheirScopeDirty(t *testing.T) {
	t.Parallel()
	b := setup(t)
	subject := "harbour/ops/x"
	phase := func(p string) events.CSVPhaseChanged {
		return events.CSVPhaseChanged{Cluster: "harbour", Namespace: "ops", Name: "x", Package: "p", Phase: p}
	}
	cases := []struct {
		event events.Payload
		dirty bool
	}{
		{events.SubscriptionCreated{Cluster: "harbour", Namespace: "ops", Name: "x"}, true},
		{events.ResolutionSucceeded{Outcome: "Planned"}, false},
		{events.SubscriptionChanged{Spec: events.SubscriptionSpec{Package: "p"}}, true},
		{events.OperatorGroupCreated{Cluster: "harbour", Namespace: "ops", Name: "x"}, true},
		{events.OperatorGroupChanged{}, true},
		{phase("Pending"), false},
		{phase("Installing"), false},
		{phase("Succeeded"), true},
		{phase("Failed"), true},
		{events.CSVRemoved{Reason: "Deleted"}, true},
		{events.OperatorGroupDeleted{}, true},
		{events.ClusterRegistered{Name: "harbour"}, true},
		{events.ClusterRemoved{Name: "harbour"}, false},
		{events.SubscriptionDeleted{}, true},
	}
	for i, c := range cases {
		if got := b.apply(t, subject, int64(i+1), c.event); (len(got) == 1) != c.dirty {
			t.Errorf("%s makes dirty %v", c.event.EventType(), got)
		}
	}
	l := b.load(t, "ops")
	if len(l.Subscriptions)+len(l.Groups)+len(l.Installed) != 0 || !l.Removed {
		t.Errorf("left over: %+v", l.State)
	}
}

// TestLabelsDecideNothing: other labels of a subscription make no scope dirty, and what is decided next stands behind
// them in its stream.
func TestLabelsDecideNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const subject = "harbour/ops/x"
	b.apply(t, subject, 1, events.SubscriptionCreated{Cluster: "harbour", Namespace: "ops", Name: "x"})
	before := b.load(t, "ops").Subscriptions[0]
	if got := b.apply(t, subject, 2, events.SubscriptionMetadataChanged{
		Metadata: events.Metadata{Labels: map[string]string{"team": "sea"}},
	}); len(got) != 0 {
		t.Errorf("labels make dirty %v", got)
	}
	after := b.load(t, "ops").Subscriptions[0]
	before.Version++
	if !reflect.DeepEqual(after, before) {
		t.Errorf("labels make of the subscription %+v, want %+v", after, before)
	}
	for _, p := range []events.Payload{
		events.OperatorGroupMetadataChanged{},
		events.CatalogMetadataChanged{},
		events.ApprovalPolicyMetadataChanged{},
	} {
		if slices.Contains(b.store.Projection.Types(), p.EventType()) {
			t.Errorf("the resolver reads %s", p.EventType())
		}
	}
}

// TestLabelsOfAPlanDecideNothing: the next decision about a plan stands behind its labels in its stream.
func TestLabelsOfAPlanDecideNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := proposedIn("ops")
	p.Plan = uuid.NewString()
	b.apply(t, p.Plan, 1, p)
	if got := b.apply(t, p.Plan, 2, events.InstallPlanMetadataChanged{
		Metadata: events.Metadata{Labels: map[string]string{"team": "sea"}},
	}); len(got) != 0 {
		t.Errorf("labels make dirty %v", got)
	}
	plans := b.load(t, "ops").Plans
	if len(plans) != 1 || plans[0].Version != 2 || plans[0].State.Phase != installplan.Installing {
		t.Errorf("labels make of the plan %+v", plans)
	}
}

// TestOvertakenDecisionsAreRefused: another worker's decision, a catalog's change, and a stream that moved on.
func TestOvertakenDecisionsAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply(t, "fleet", 1, events.CatalogAdded{Name: "fleet"})
	write := func(l store.Loaded, name string) error {
		return b.store.Decisions.Write(t.Context(), l, decide.Decisions{},
			[]resolution.Read{{
				Kind: resolution.ReadPackage, Catalog: resolution.CatalogKey{Name: "fleet"},
				Name: name,
			}}, store.Cause{Command: uuid.New()})
	}
	l := b.load(t, "ops")
	if err := write(l, "first"); err != nil {
		t.Fatal(err)
	}
	if err := write(l, "second"); !errs.Is(err, errs.Conflict) {
		t.Errorf("a second decision on the same state gives %v", err)
	}
	l = b.load(t, "ops")
	b.apply(t, "fleet", 2, events.CatalogRevisionPublished{Revision: "r1"})
	if err := write(l, "third"); !errs.Is(err, errs.Conflict) {
		t.Errorf("a decision on catalogs of before gives %v", err)
	}
	// The subscription's stream does not stand where the table says: a change is on its way.
	b.apply(t, "harbour/ops/x", 5, events.SubscriptionCreated{Cluster: "harbour", Namespace: "ops", Name: "x"})
	l = b.load(t, "ops")
	told := decide.SubscriptionEvent{
		Subscription: l.Subscriptions[0],
		Event:        events.ResolutionSucceeded{Outcome: "AtLatestKnown"},
		Outcome:      decide.Outcome{Kind: "AtLatestKnown"},
	}
	err := b.store.Decisions.Write(t.Context(), l,
		decide.Decisions{SubscriptionEvents: []decide.SubscriptionEvent{told}}, nil,
		store.Cause{Command: uuid.New()})
	if _, ok := errors.AsType[*eventlog.ConflictError](err); !ok {
		t.Errorf("a decision on a subscription of before gives %v", err)
	}
	if again := b.load(t, "ops"); again.Decisions != l.Decisions {
		t.Errorf("a refused decision left traces: %d decisions, had %d", again.Decisions, l.Decisions)
	}
}

// TestFirstCatalogIsNotMissed: a tenant without a catalog has a clock to lock as well, so that the first
// catalog waits for a decision made without it, and then finds its read set.
func TestFirstCatalogIsNotMissed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	missed := resolution.Read{Kind: resolution.ReadPackage, Catalog: resolution.CatalogKey{Name: "fleet"}, Name: "buoy"}
	before := b.load(t, "watch")
	b.reads(t, "ops", missed)
	var clock int64
	if err := b.pool.QueryRow(t.Context(), `select changes from resolver.catalog_clock where tenant = $1`, tenant).Scan(
		&clock); err != nil || clock != 0 {
		t.Errorf("the clock to lock: %d, %v", clock, err)
	}
	// the row is there now
	b.reads(t, "ops", missed, resolution.Read{Kind: resolution.ReadPackage, Catalog: missed.Catalog, Name: "gauge"})
	b.apply(t, "fleet", 1, events.CatalogAdded{Name: "fleet"})
	err := b.store.Decisions.Write(t.Context(), before, decide.Decisions{}, []resolution.Read{missed},
		store.Cause{Command: uuid.New()})
	if !errs.Is(err, errs.Conflict) {
		t.Errorf("a decision on no catalogs beside the first one gives %v", err)
	}
}

// TestVisibility: a scope sees the hub's catalogs and those made visible to its cluster or namespace.
func TestVisibility(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for subject, v := range map[string]events.CatalogVisibility{
		"everywhere": {}, "harbour/olm/here": {Cluster: "harbour"}, "reef/olm/there": {Cluster: "reef"},
		"harbour/ops/mine":   {Cluster: "harbour", Namespace: "ops"},
		"harbour/dev/theirs": {Cluster: "harbour", Namespace: "dev"},
	} {
		b.apply(t, subject, 1, events.CatalogAdded{Name: subject, Visibility: v})
	}
	var got []string
	for _, c := range b.load(t, "ops").Catalogs {
		got = append(got, c.Subject+" as "+c.Key.String())
	}
	want := []string{"everywhere as everywhere", "harbour/olm/here as olm/here", "harbour/ops/mine as ops/mine"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	private := func(namespace string, want ...string) {
		t.Helper()
		if got := b.load(t, namespace).Private; !slices.Equal(got, want) {
			t.Errorf("not seen from %s: %q, want %q", namespace, got, want)
		}
	}
	private("ops", "harbour/dev/theirs")
	private("dev", "harbour/ops/mine")
	b.apply(t, "harbour/dev/theirs", 2, events.CatalogChanged{
		Visibility: events.CatalogVisibility{Cluster: "harbour", Namespace: "dev"}, Disabled: true,
	})
	private("ops")
	private("olm", "harbour/ops/mine")
}

// TestPrivateCatalogWakesWhoNamesIt: whoever named a catalog that comes, goes, is switched or changes who sees it
// looks again, also in namespaces that do not see it: it decides there whether the hub's of that name is meant
// (R-CAT-85).
func TestPrivateCatalogWakesWhoNamesIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.reads(t, "ops", resolution.Read{
		Kind:    resolution.ReadCatalog,
		Catalog: resolution.CatalogKey{Name: "curated", Namespace: "dev"}, Answer: "ready",
	})
	b.reads(t, "other", resolution.Read{
		Kind: resolution.ReadCatalog, Catalog: resolution.CatalogKey{Name: "fleet"},
		Answer: "ready",
	})
	const subject = "harbour/dev/curated"
	dev := events.CatalogVisibility{Cluster: "harbour", Namespace: "dev"}
	ops := []string{"ops"}
	b.steps(t, []step{
		{"comes", subject, events.CatalogAdded{Visibility: dev}, ops},
		{"costs something else", subject, events.CatalogChanged{Visibility: dev, Priority: 3}, nil},
		{"is switched off", subject, events.CatalogChanged{Visibility: dev, Priority: 3, Disabled: true}, ops},
		{"is switched on", subject, events.CatalogChanged{Visibility: dev, Priority: 3}, ops},
		{"is seen by all", subject, events.CatalogChanged{
			Visibility: events.CatalogVisibility{Cluster: "harbour"},
			Priority:   3,
		}, ops},
		{"is its namespace's again", subject, events.CatalogChanged{Visibility: dev, Priority: 3}, ops},
		{"goes", subject, events.CatalogRemoved{}, ops},
	})
}

// TestNewestCauseIsWhatTheSnapshotKnows: a worker that an operator group woke and that already sees the
// subscription decides for the subscription: one trace leads from the request to the plan.
func TestNewestCauseIsWhatTheSnapshotKnows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if l := b.load(t, "ports"); l.Marked.Event != "" {
		t.Errorf("nothing marked the scope, and it says %+v", l.Marked)
	}
	lanes := bus.NewLanes(b.pool, store.DirtyTable, slog.New(slog.DiscardHandler))
	for _, cause := range []string{"group", "subscription"} {
		err := b.pool.Tx(t.Context(), func(tx pgx.Tx) error {
			return lanes.Mark(t.Context(), tx, bus.Interactive,
				bus.Scope{
					Tenant: tenant, Cluster: "harbour", Namespace: "ports", Cause: cause,
					TraceParent: "trace of the " + cause,
				})
		})
		if err != nil {
			t.Fatal(err)
		}
		if l := b.load(t, "ports"); l.Marked.Event != cause || l.Marked.TraceParent != "trace of the "+cause {
			t.Errorf("after the mark by the %s: %+v", cause, l.Marked)
		}
	}
}
