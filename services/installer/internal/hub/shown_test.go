package hub

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// foldCatalogRevision folds that a catalog has a revision, and says whether the scope is to be looked at.
func (d *fixture) foldCatalogRevision(subject string) bool {
	d.t.Helper()
	return d.foldCatalog(subject, events.CatalogRevisionPublished{})
}

// foldCatalog folds one event of a catalog, and says whether the scope is to be looked at.
func (d *fixture) foldCatalog(subject string, p events.Payload) bool {
	d.t.Helper()
	d.n++
	e := eventlog.Recorded{
		Envelope: events.Envelope{
			ID: uuid.NewString(), Tenant: events.DefaultTenant, Type: p.EventType(),
			Subject: subject,
		},
		StreamID: events.StreamID{
			Kind: events.KindCatalog,
			Key:  events.Key(events.DefaultTenant, events.KindCatalog, subject), Incarnation: 1,
		},
		Position: events.Position{Epoch: 1, N: d.n}, Payload: p,
	}
	if err := d.h.c.Pool.Tx(d.t.Context(), func(tx pgx.Tx) error {
		return d.h.handlers.Handle(
			d.t.Context(), tx, e)
	}); err != nil {
		d.t.Fatal(err)
	}
	tag, err := d.h.c.Pool.Exec(d.t.Context(), `delete from installer.dirty`)
	if err != nil {
		d.t.Fatal(err)
	}
	return tag.RowsAffected() > 0
}

// storeCatalog stores the settings of a catalog and a revision with one package, which cluster east is served.
func (d *fixture) storeCatalog(catalogName string, p catalog.Package) {
	d.t.Helper()
	raw, err := digest.Canonical(p)
	if err != nil {
		d.t.Fatal(err)
	}
	sum, err := p.Digest()
	if err != nil {
		d.t.Fatal(err)
	}
	indexer := d.db.Pool(d.t, "catalog-indexer")
	settings := bodiestest.Put(d.t, d.db.Pool(d.t, "gateway"), events.DefaultTenant, bodies.Source,
		`{"display": {"name": "Harbour", "publisher": "Dock Ltd"}}`)
	for _, statement := range []struct {
		sql  string
		args []any
	}{
		{
			`update catalog.catalogs set revision = 'r', spec = $3 where tenant = $1 and subject = $2`,
			[]any{catalogName, settings},
		},
		{`insert into catalog.clusters (tenant, name) values ($1, 'east')`, nil},
		{
			`insert into catalog.packages (tenant, digest, package, document) values ($1, $2, $3, $4)`,
			[]any{string(sum), p.Name, bundle.Pack(raw)},
		},
		{
			`insert into catalog.revision_packages (tenant, revision, package, digest) values ($1, 'r', $2, $3)`,
			[]any{p.Name, string(sum)},
		},
	} {
		if _, err := indexer.Exec(d.t.Context(), statement.sql,
			append([]any{events.DefaultTenant}, statement.args...)...); err != nil {
			d.t.Fatal(err)
		}
	}
}

// message returns what reads the message to namespace ns of cluster east.
func (d *fixture) message(t *testing.T) func() protocol.ScopePlans {
	t.Helper()
	return func() protocol.ScopePlans {
		t.Helper()
		w, ok, err := d.h.read(t.Context(), bus.Scope{Tenant: events.DefaultTenant, Cluster: "east", Namespace: "ns"})
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return w.message
	}
}

// mirrors returns what sets the mirrors of all clusters.
func (d *fixture) mirrors(t *testing.T) func(setting string) {
	t.Helper()
	return func(setting string) {
		t.Helper()
		if _, err := d.h.c.Pool.Exec(t.Context(), `update installer.clusters set settings = jsonb_build_object('mirror',
			$1::text)`, setting); err != nil {
			t.Fatal(err)
		}
	}
}

// TestShown: R-SUB-42, R-SUB-41, R-IP-5: clusters that mirror everything are told what a subscription waits for: a plan
// that nobody approved, why it does not resolve, how its catalog does and is called, and what that deprecates. Other
// clusters are told nothing of it.
func TestShown(t *testing.T) {
	t.Parallel()
	d := newFixture(t, time.Now())
	told, mirror := d.message(t), d.mirrors(t)
	spec := events.SubscriptionSpec{Package: "tidegauge", Catalog: "harbour", Approval: "Manual"}
	d.aboutSubscription(events.SubscriptionCreated{Cluster: "east", Namespace: "ns", Name: "gauge", Spec: spec})
	d.foldPlan(windowed("Manual"))
	if d.aboutSubscription(events.ResolutionFailed{Reason: "ConstraintsNotSatisfiable"}) ||
		d.foldCatalogRevision("harbour") {
		t.Error("a cluster that mirrors less is told what is only shown")
	}
	if m := told(); len(m.Subscriptions) != 0 || len(m.Waiting) != 0 {
		t.Errorf("told %+v, %+v", m.Subscriptions, m.Waiting)
	}

	mirror(events.MirrorAll)
	m := told()
	if len(m.Subscriptions) != 1 || m.Subscriptions[0].Failed != "ConstraintsNotSatisfiable" ||
		m.Subscriptions[0].Catalog != nil {
		t.Errorf("told %+v", m.Subscriptions)
	}
	if len(m.Waiting) != 1 || m.Waiting[0].Name != "install-7x2kq" || m.Waiting[0].Approved {
		t.Errorf("told that these wait: %+v", m.Waiting)
	}
	if d.aboutSubscription(events.ResolutionFailed{Reason: "ConstraintsNotSatisfiable"}) {
		t.Error("the same failure is told twice")
	}
	if !d.aboutSubscription(events.ResolutionSucceeded{}) || told().Subscriptions[0].Failed != "" {
		t.Error("that it resolves again is not told")
	}
	if _, err := d.db.Pool(t, "catalog-indexer").Exec(t.Context(), `insert into catalog.catalogs (tenant, stream,
		subject, source_type, spec, priority, state, reason)
		values ($1, 's', 'harbour', 'image', '', 3, 'Failed', 'Unreachable')`, events.DefaultTenant); err != nil {
		t.Fatal(err)
	}
	d.storeCatalog("harbour", catalog.Package{
		Name: "tidegauge", DefaultChannel: "steady",
		Deprecations: []catalog.Deprecation{
			{Schema: "olm.bundle", Name: "tidegauge.v1", Message: "upgrade"},
			{Schema: "olm.bundle", Name: "tidegauge.v2", Message: "upgrade"},
			{Schema: "olm.channel", Name: "other", Message: "use steady"},
			{Schema: "olm.package", Message: "use buoy"},
		},
	})
	if !d.foldCatalogRevision("harbour") || d.foldCatalogRevision("quay") {
		t.Error("news of a catalog marks who names it, and nobody else")
	}
	shown := told().Subscriptions[0]
	if c := shown.Catalog; c == nil || !reflect.DeepEqual(
		*c, protocol.CatalogState{
			Subject: "harbour", Priority: 3, State: "Failed", Reason: "Unreachable",
			DisplayName: "Harbour", Publisher: "Dock Ltd",
		}) {
		t.Errorf("its catalog is told as %+v", c)
	}
	if diff := cmp.Diff([]protocol.Deprecation{{Schema: "olm.package", Name: "tidegauge", Message: "use buoy"}},
		shown.Deprecations); diff != "" {
		t.Errorf("deprecations while nothing is installed: %s", diff)
	}
	if _, err := d.h.c.Pool.Exec(t.Context(), `insert into installer.csvs (tenant, cluster, namespace, name, stream,
		phase, reason, package, version, content, plan)
		values ($1, 'east', 'ns', 'tidegauge.v1', 's', 'Succeeded', '', 'tidegauge', '1.0.0', '', '')`, events.DefaultTenant); err != nil {
		t.Fatal(err)
	}
	if got := told().Subscriptions[0].Deprecations; len(got) != 2 ||
		got[1] != (protocol.Deprecation{Schema: "olm.bundle", Name: "tidegauge.v1", Message: "upgrade"}) {
		t.Errorf("deprecations when it is: %+v", got)
	}
	d.publishPlan(events.InstallPlanApproved{Digest: "d", Expires: time.Now().Add(time.Hour)})
	if m := told(); len(m.Waiting) != 0 {
		t.Errorf("told that these wait after approval: %+v", m.Waiting)
	}
}

// TestMetadataIsShown: labels and annotations reach the clusters that show the intent, and mark nothing elsewhere: no
// operator depends on them.
func TestMetadataIsShown(t *testing.T) {
	t.Parallel()
	d := newFixture(t, time.Now())
	told, mirror := d.message(t), d.mirrors(t)
	ticket := bodiestest.Put(t, d.db.Pool(t, "gateway"), events.DefaultTenant, bodies.Annotations, `{"owner":"dock"}`)
	if _, err := d.db.Pool(t, "catalog-indexer").Exec(t.Context(), `insert into catalog.catalogs (tenant, stream,
		subject, source_type, spec, priority, state, reason)
		values ($1, 's', 'harbour', 'image', '', 3, 'Ready', '')`, events.DefaultTenant); err != nil {
		t.Fatal(err)
	}
	noted := func(team string) events.Metadata {
		return events.Metadata{Labels: map[string]string{"team": team}, Annotations: ticket}
	}
	d.group(events.OperatorGroupCreated{Cluster: "east", Namespace: "ns", Name: "group"})
	d.aboutSubscription(events.SubscriptionCreated{
		Cluster: "east", Namespace: "ns", Name: "gauge",
		Spec: events.SubscriptionSpec{Package: "tidegauge", Catalog: "harbour"},
	})
	if d.aboutSubscription(events.SubscriptionMetadataChanged{Metadata: noted("sea")}) ||
		d.foldCatalog("harbour", events.CatalogMetadataChanged{Metadata: noted("quay")}) {
		t.Error("a cluster that shows no subscriptions is told of their labels")
	}
	d.group(events.OperatorGroupMetadataChanged{Metadata: noted("coast")})
	if m := told(); len(m.Subscriptions) != 0 || m.OperatorGroups != 1 || len(m.OperatorGroup.Labels) != 0 {
		t.Errorf("told %+v", m)
	}

	mirror(events.MirrorAll)
	m := told()
	var got []string
	for _, n := range []protocol.Metadata{
		m.Subscriptions[0].Metadata, m.Subscriptions[0].Catalog.Metadata,
		m.OperatorGroup.Metadata,
	} {
		got = append(got, n.Labels["team"]+" "+n.Annotations["owner"])
	}
	if want := []string{"sea dock", "quay dock", "coast dock"}; !reflect.DeepEqual(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
	if what := shrink(&m); what != "labels and annotations of what is shown" || len(m.Subscriptions) != 1 ||
		m.OperatorGroup.Labels != nil || m.Subscriptions[0].Catalog.Annotations != nil {
		t.Errorf("without %s: %+v", what, m)
	}
	if !d.aboutSubscription(events.SubscriptionMetadataChanged{}) ||
		!d.foldCatalog("harbour", events.CatalogMetadataChanged{}) {
		t.Error("that labels are gone is not told")
	}
	if m = told(); m.Subscriptions[0].Labels != nil || m.Subscriptions[0].Annotations != nil ||
		m.Subscriptions[0].Catalog.Labels != nil {
		t.Errorf("told %+v", m.Subscriptions)
	}
}
