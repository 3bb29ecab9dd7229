package hub

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// aboutCatalog folds one event of a catalog, and says whether the scope is to be looked at.
func (d *desk) aboutCatalog(subject string) bool {
	d.t.Helper()
	d.n++
	p := events.CatalogRevisionPublished{}
	e := eventlog.Recorded{
		Envelope: events.Envelope{ID: uuid.NewString(), Tenant: events.DefaultTenant, Type: p.EventType(), Subject: subject},
		StreamID: events.StreamID{Kind: events.KindCatalog, Key: events.Key(events.DefaultTenant, events.KindCatalog, subject), Incarnation: 1},
		Position: events.Position{Epoch: 1, N: d.n}, Payload: p,
	}
	if err := d.h.c.Pool.Tx(d.t.Context(), func(tx pgx.Tx) error { return d.h.handle(d.t.Context(), tx, e) }); err != nil {
		d.t.Fatal(err)
	}
	tag, err := d.h.c.Pool.Exec(d.t.Context(), `delete from installer.dirty`)
	if err != nil {
		d.t.Fatal(err)
	}
	return tag.RowsAffected() > 0
}

// TestShown: R-SUB-42, R-IP-5: clusters that mirror everything are told what a subscription waits for: a plan that nobody
// approved, why it does not resolve, how its catalog does. Other clusters are told nothing of it.
func TestShown(t *testing.T) {
	t.Parallel()
	d := newDesk(t, time.Now())
	told := func() protocol.ScopePlans {
		t.Helper()
		w, ok, err := d.h.read(t.Context(), bus.Scope{Tenant: events.DefaultTenant, Cluster: "east", Namespace: "ns"})
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return w.message
	}
	mirror := func(setting string) {
		t.Helper()
		if _, err := d.h.c.Pool.Exec(t.Context(), `update installer.clusters set settings = jsonb_build_object('mirror', $1::text)`, setting); err != nil {
			t.Fatal(err)
		}
	}
	spec := events.SubscriptionSpec{Package: "tidegauge", Catalog: "harbour", Approval: "Manual"}
	d.aboutSubscription(events.SubscriptionCreated{Cluster: "east", Namespace: "ns", Name: "gauge", Spec: spec})
	d.aboutPlan(windowed("Manual"))
	if d.aboutSubscription(events.ResolutionFailed{Reason: "ConstraintsNotSatisfiable"}) || d.aboutCatalog("harbour") {
		t.Error("a cluster that mirrors less is told what is only shown")
	}
	if m := told(); len(m.Subscriptions) != 0 || len(m.Waiting) != 0 {
		t.Errorf("told %+v, %+v", m.Subscriptions, m.Waiting)
	}

	mirror(events.MirrorAll)
	m := told()
	if len(m.Subscriptions) != 1 || m.Subscriptions[0].Failed != "ConstraintsNotSatisfiable" || m.Subscriptions[0].Catalog != nil {
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
	if _, err := d.db.Pool(t, "catalog-indexer").Exec(t.Context(), `insert into catalog.catalogs (tenant, stream, subject, source_type, spec, priority, state, reason)
		values ($1, 's', 'harbour', 'image', '', 3, 'Failed', 'Unreachable')`, events.DefaultTenant); err != nil {
		t.Fatal(err)
	}
	if !d.aboutCatalog("harbour") || d.aboutCatalog("quay") {
		t.Error("news of a catalog marks who names it, and nobody else")
	}
	if c := told().Subscriptions[0].Catalog; c == nil || *c != (protocol.CatalogState{Priority: 3, State: "Failed", Reason: "Unreachable"}) {
		t.Errorf("its catalog is told as %+v", c)
	}
	d.tell(events.InstallPlanApproved{Digest: "d", Expires: time.Now().Add(time.Hour)})
	if m := told(); len(m.Waiting) != 0 {
		t.Errorf("told that these wait after approval: %+v", m.Waiting)
	}
}
