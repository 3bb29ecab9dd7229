package bus_test

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
)

// TestHandlers: the table is the list of types; each event gets to its handler, and one without a handler is an error,
// so that its stream parks.
func TestHandlers(t *testing.T) {
	t.Parallel()
	var got []string
	h := bus.Handlers{}
	bus.On(h, func(_ context.Context, _ pgx.Tx, _ eventlog.Recorded, p events.ClusterRegistered) error {
		got = append(got, "registered "+p.Name)
		return nil
	})
	h.Each(func(_ context.Context, _ pgx.Tx, e eventlog.Recorded) error {
		got = append(got, string(e.Type))
		return nil
	}, events.ClusterRemoved{}, events.ClusterObserved{})
	want := []events.Type{
		events.ClusterObserved{}.EventType(), events.ClusterRegistered{}.EventType(),
		events.ClusterRemoved{}.EventType(),
	}
	if types := h.Types(); !slices.Equal(types, want) {
		t.Errorf("types %q, want %q", types, want)
	}
	handle := func(p events.Payload, typ events.Type) error {
		return h.Handle(t.Context(), nil, eventlog.Recorded{Envelope: events.Envelope{ID: "e", Type: typ}, Payload: p})
	}
	for _, p := range []events.Payload{events.ClusterRegistered{Name: "harbour"}, events.ClusterRemoved{}} {
		if err := handle(p, p.EventType()); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"registered harbour", "cluster.removed.v1"}; !slices.Equal(got, want) {
		t.Errorf("handled %q, want %q", got, want)
	}
	unknown := events.CatalogRemoved{}
	if err := handle(unknown, unknown.EventType()); !errs.Is(err, errs.Internal) {
		t.Errorf("an event without a handler: %v", err)
	}
	if err := handle(unknown, events.ClusterRegistered{}.EventType()); !errs.Is(err, errs.Internal) {
		t.Errorf("an event with another payload: %v", err)
	}
	h.All(events.KindInstallPlan, func(context.Context, pgx.Tx, eventlog.Recorded) error { return nil })
	if n := len(h.Types()); n <= len(want) || !slices.Contains(h.Types(), events.InstallPlanFailed{}.EventType()) {
		t.Errorf("%d types with those of install plans", n)
	}
}
