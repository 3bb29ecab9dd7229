package hub

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
)

// aboutSubscription folds one event of a subscription, and says whether the scope is to be looked at.
func (d *fixture) aboutSubscription(p events.Payload) bool {
	d.t.Helper()
	d.n++
	subject := "east/ns/gauge"
	e := eventlog.Recorded{
		Envelope: events.Envelope{
			ID: uuid.NewString(), Tenant: events.DefaultTenant, Type: p.EventType(),
			Subject: subject,
		},
		StreamID: events.StreamID{
			Kind: events.KindSubscription,
			Key:  events.Key(events.DefaultTenant, events.KindSubscription, subject), Incarnation: 1,
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

// TestConfigOfWhatIsInstalled: an installed operator follows the configuration of its subscription as it changes
// (R-SUB-13, R-SUB-14), and keeps the last one when the subscription goes (R-SUB-32).
func TestConfigOfWhatIsInstalled(t *testing.T) {
	t.Parallel()
	d := newFixture(t, time.Now())
	config := func() string {
		t.Helper()
		w, ok, err := d.h.read(t.Context(), bus.Scope{Tenant: events.DefaultTenant, Cluster: "east", Namespace: "ns"})
		if err != nil || !ok || len(w.message.Installed) != 1 {
			t.Fatal(ok, err, w.message.Installed)
		}
		sent := w.message.Installed[0].Config
		if again, _, err := d.h.read(t.Context(), bus.Scope{
			Tenant: events.DefaultTenant, Cluster: "east", Namespace: "ns",
		}); err != nil || string(again.message.Installed[0].Config) != string(sent) {
			t.Errorf("made anew, the message has another %s: %v", sent, err)
		}
		opened, err := d.configs.Open(sent) // by the executor of this cluster alone
		if err != nil {
			t.Errorf("%s: %v", sent, err)
		}
		return string(opened)
	}
	// the bodies of configurations lie in the gateway's store
	body := func(text string) string {
		t.Helper()
		return bodiestest.Put(t, d.db.Pool(t, "gateway"), events.DefaultTenant, bodies.Configuration, text)
	}
	spec := events.SubscriptionSpec{Package: "tidegauge", Catalog: "harbour", Approval: "Automatic"}
	if d.aboutSubscription(events.SubscriptionCreated{Cluster: "east", Namespace: "ns", Name: "gauge", Spec: spec}) {
		t.Error("a subscription of which nothing is installed concerns nobody's cluster")
	}
	d.publishPlan(windowed("Automatic"))
	d.aboutCSV("tidegauge.v1", events.CSVPhaseChanged{
		Cluster: "east", Namespace: "ns", Name: "tidegauge.v1", Package: "tidegauge", Phase: "Succeeded",
		Plan: windowedPlan,
	})
	if got := config(); got != "null" {
		t.Errorf("without a configuration it is told %q", got)
	}
	spec.Config = body(`{"env":[]}`)
	if !d.aboutSubscription(events.SubscriptionChanged{Spec: spec}) {
		t.Error("a changed configuration of what is installed was not noticed")
	}
	if got := config(); got != `{"env":[]}` {
		t.Errorf("it is told %q", got)
	}
	spec.Config = body(`{"env":[{"name":"A"}]}`)
	if !d.aboutSubscription(events.SubscriptionPlaced{Spec: spec, Owner: "gauge", Rollout: 1}) {
		t.Error("the configuration of a fleet subscription was not noticed")
	}
	d.aboutSubscription(events.SubscriptionDeleted{})
	if got := config(); got != `{"env":[{"name":"A"}]}` {
		t.Errorf("without its subscription it is told %q", got)
	}
}

// TestConfigThatDoesNotOpen: a plan whose configuration does not open is kept back, and says why; the message of its
// namespace goes out.
func TestConfigThatDoesNotOpen(t *testing.T) {
	t.Parallel()
	d := newFixture(t, time.Now())
	id := bodiestest.Put(t, d.db.Pool(t, "gateway"), events.DefaultTenant, bodies.Configuration, `{"env":[]}`)
	d.publishPlan(windowed("Automatic"))
	read := func() wanted {
		t.Helper()
		w, ok, err := d.h.read(t.Context(), bus.Scope{Tenant: events.DefaultTenant, Cluster: "east", Namespace: "ns"})
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return w
	}
	admin := d.db.Pool(t, "admin")
	for _, sql := range []string{
		`update installer.plans set configs = jsonb_build_object('tidegauge.v1', '` + id + `')`,
		`update gateway.bodies set key_id = 'ffffffffffffffff' where commitment = '` + id + `'`,
	} {
		if w := read(); len(w.message.Plans)+len(w.withheld) != 1 || len(w.withheld) > 0 {
			t.Fatalf("the plan is kept back: %+v", w.withheld)
		}
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	w := read()
	if len(w.message.Plans) != 0 || len(w.withheld) != 1 || w.renew.IsZero() ||
		!strings.Contains(w.withheld[0].why, "configuration of tidegauge.v1 does not open") {
		t.Errorf("plans %+v, kept back %+v", w.message.Plans, w.withheld)
	}
}
