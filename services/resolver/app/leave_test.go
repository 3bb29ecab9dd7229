package app_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
)

// taken is what was asked of clusters that left, as "cluster type crds", sorted.
func (s shore) taken() (out []string) {
	for _, e := range s.recorded() {
		switch p := e.Payload.(type) {
		case events.SubscriptionRemoved:
			out = append(out, fmt.Sprint(e.Subject, " ends"))
		case events.SubscriptionReleased:
			out = append(out, fmt.Sprint(e.Subject, " stays ", p.Kept))
		case events.CSVRemovalDirected:
			out = append(out, fmt.Sprint(e.Subject, " goes ", p.FleetSubscription, " ", p.CRDs))
		}
	}
	slices.Sort(out)
	return out
}

// TestLeavingUninstalls: a cluster that leaves loses the operator where the deletion policy says so, once, whichever
// replica is at it; one that others need stays; who comes back is served again (issue 14, section 2).
func TestLeavingUninstalls(t *testing.T) {
	t.Parallel()
	s := newShore(t)
	s.start() // a second replica
	s.publish("fleet", "", s.pkg("buoy", version{v: "1.0.0"}))
	spec := s.spec()
	spec.Strategy, spec.DeletionPolicy = events.RolloutStrategy{}, events.DeletionPolicyKeepCRDs
	s.set(spec)
	s.carryOutOn(shoreClusters...)
	in := func(cluster, name string) string { return cluster + "/" + namespace + "/" + name }

	spec.Placement.Except = []string{"east-1"}
	s.set(spec)
	want := []string{in("east-1", "buoy ends"), in("east-1", "buoy.v1.0.0 goes buoy []")}
	s.want("one leaves", s.taken(), want)
	s.append(events.Installer, events.KindCSV, in("east-1", "buoy.v1.0.0"), in("east-1", "buoy.v1.0.0"),
		events.CSVRemoved{Reason: "Uninstalled"})

	spec.Placement.Except = nil
	s.set(spec)
	s.want("it comes back", s.planned()[:1], []string{"east-1 buoy.v1.0.0"})
	s.carryOutOn("east-1")
	if got := s.rollout(2); got.Phase != rollout.Succeeded {
		t.Fatalf("the rollout for who came back is %+v", got)
	}

	spec.DeletionPolicy = events.DeletionPolicyRemove
	s.set(spec)
	s.append(events.Gateway, events.KindFleetSubscription, "buoy", "buoy", events.FleetSubscriptionDeleted{})
	s.quiet()
	for _, cluster := range shoreClusters {
		want = append(want, in(cluster, "buoy ends"), in(cluster, "buoy.v1.0.0 goes buoy [*]"))
	}
	slices.Sort(want)
	s.want("all leave", s.taken(), want)
	if list := s.planned(); len(list) > 0 && list[0] == "" {
		t.Errorf("planned after the end: %v", list)
	}
}
