package hub

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// aboutCSV folds events of one operator's stream, and returns what the executor is then told to remove.
func (d *fixture) aboutCSV(name string, payloads ...events.Payload) []protocol.Removal {
	d.t.Helper()
	for _, p := range payloads {
		d.n++
		subject := "east/ns/" + name
		e := eventlog.Recorded{
			Envelope: events.Envelope{
				ID: uuid.NewString(), Tenant: events.DefaultTenant, Type: p.EventType(),
				Subject: subject,
			},
			StreamID: events.StreamID{
				Kind: events.KindCSV,
				Key:  events.Key(events.DefaultTenant, events.KindCSV, subject), Incarnation: 1,
			},
			Position: events.Position{Epoch: 1, N: d.n}, Payload: p,
		}
		if err := d.h.c.Pool.Tx(d.t.Context(), func(tx pgx.Tx) error {
			return d.h.handlers.Handle(
				d.t.Context(), tx, e)
		}); err != nil {
			d.t.Fatal(err)
		}
	}
	w, ok, err := d.h.read(d.t.Context(), bus.Scope{Tenant: events.DefaultTenant, Cluster: "east", Namespace: "ns"})
	if err != nil || !ok {
		d.t.Fatal(ok, err)
	}
	for i, r := range w.message.Removals {
		if err := r.Grant.Verify(d.key); err != nil {
			d.t.Error(err)
		}
		w.message.Removals[i].Grant = protocol.Grant{}
	}
	return w.message.Removals
}

// TestRemovalsArePublishedUntilTheyEnd is R-UNI-1: requests travel in the order in which they were made, until they are
// refused or the operator is gone.
func TestRemovalsArePublishedUntilTheyEnd(t *testing.T) {
	t.Parallel()
	d := newFixture(t, time.Now())
	want := func(got []protocol.Removal, want ...protocol.Removal) {
		t.Helper()
		if diff := cmp.Diff(append([]protocol.Removal{}, want...), got); diff != "" {
			t.Error(diff)
		}
	}
	first := protocol.Removal{
		ID: "r1", CSV: "tidegauge.v1", CRDs: []string{"a.example.com", "b.example.com"},
		Plan: "sha256:1",
	}
	second := protocol.Removal{ID: "r2", CSV: "buoy.v1", CRDs: []string{}}
	phase := events.CSVPhaseChanged{Phase: "Succeeded"}
	want(d.aboutCSV("tidegauge.v1", phase, events.CSVRemovalRequested{
		Removal: "r1", CRDs: first.CRDs, Plan: "sha256:1",
	}), first)
	want(d.aboutCSV("buoy.v1", phase, events.CSVRemovalRequested{Removal: "r2"}), first, second)
	want(d.aboutCSV("tidegauge.v1", events.CSVRemovalRefused{Removal: "r0"}), first, second)
	want(d.aboutCSV("tidegauge.v1", events.CSVRemovalRefused{Removal: "r1"}), second)
	third := first
	third.ID = "r3"
	want(d.aboutCSV("tidegauge.v1", events.CSVRemovalRequested{Removal: "r3", CRDs: first.CRDs, Plan: "sha256:1"}),
		second, third)
	want(d.aboutCSV("buoy.v1", events.CSVRemoved{Reason: "Uninstalled", Removal: "r2"}), third)
	fourth := protocol.Removal{ID: "r4", CSV: "lamp.v1", CRDs: []string{"*"}}
	want(d.aboutCSV("lamp.v1", phase, events.CSVRemovalDirected{
		Removal: "r4", CRDs: fourth.CRDs, FleetSubscription: "lamp",
	}), third, fourth)
}
