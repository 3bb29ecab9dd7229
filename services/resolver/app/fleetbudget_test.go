package app_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	fleetstate "github.com/chandler-fleet/chandler/services/resolver/fleet"
)

func (s shore) budget(p ...events.Payload) {
	s.t.Helper()
	s.append(events.Gateway, events.KindFleetBudget, events.FleetBudgetSubject, events.FleetBudgetSubject, p...)
	s.quiet()
}

// held is what a fleet subscription holds back; nil for nothing.
func (s shore) held(name string) (out *fleetstate.Held) {
	s.t.Helper()
	var raw []byte
	s.must(s.admin.QueryRow(s.ctx, `select held from resolver.fleet_subscriptions where tenant = $1 and name = $2`,
		tenant, name).Scan(&raw))
	if raw != nil {
		s.must(json.Unmarshal(raw, &out))
	}
	return out
}

// exhausted are the events that say that clusters are held back, as "fleet subscription of held".
func (s shore) exhausted() (out []string) {
	for _, e := range s.recorded() {
		if p, ok := e.Payload.(events.FleetBudgetExhausted); ok {
			out = append(out, fmt.Sprintf("%s %s %d", p.FleetSubscription, p.Of, p.Held))
		}
	}
	return out
}

// TestBudgetHoldsBack: no more clusters are changed, and let go of, within an hour than the tenant may, whichever
// rollout and which replica wants it; who is held back says so once, with numbers, and goes on when a person allows it
// (issue 14: mass-change budget).
func TestBudgetHoldsBack(t *testing.T) {
	t.Parallel()
	s := newShore(t)
	s.start() // a second replica
	s.publish("fleet", "", s.pkg("buoy", version{v: "1.0.0"}), s.pkg("lamp", version{v: "1.0.0"}))
	s.budget(events.FleetBudgetSet{Changed: 2, Leaving: 1})
	spec := s.spec()
	spec.Strategy = events.RolloutStrategy{}
	lamp := spec
	lamp.Package, lamp.Namespace = "lamp", "lamps"
	lamp.Placement.Clusters = []string{"east-3", "east-4"}
	s.append(events.Gateway, events.KindFleetSubscription, "lamp", "lamp",
		events.FleetSubscriptionSet{Name: "lamp", Spec: lamp})
	s.set(spec)
	directed := func() (all, distinct []string) {
		for _, e := range s.recorded() {
			if p, ok := e.Payload.(events.RolloutClusterDirected); ok {
				all = append(all, e.Subject+" "+p.Cluster)
				distinct = append(distinct, p.Cluster)
			}
		}
		slices.Sort(distinct)
		return all, slices.Compact(distinct)
	}
	all, distinct := directed()
	if len(distinct) != 2 {
		t.Fatalf("2 clusters may be changed, and %v are", all)
	}
	back := 0
	for _, name := range []string{"buoy", "lamp"} {
		if h := s.held(name); h != nil {
			if back += h.Held; h.Of != events.BudgetChanged || h.Limit != 2 || h.Used != 2 || h.Until.IsZero() {
				t.Errorf("%s holds back %+v", name, h)
			}
		}
	}
	if back == 0 {
		t.Fatalf("nothing is held back; directed %v", all)
	}
	said := s.exhausted()
	s.append(events.Gateway, events.KindCluster, "far", "far", events.ClusterRegistered{Name: "far"})
	s.quiet()
	s.want("said once", s.exhausted(), said)

	s.budget(events.FleetBudgetAllowed{Changed: 1, Reason: "c1:00"})
	if _, distinct = directed(); len(distinct) != 3 {
		t.Errorf("with one more allowed %v are changed", distinct)
	}
	s.budget(events.FleetBudgetSet{Changed: 0, Leaving: 1})
	if all, _ = directed(); len(all) != 6 || s.held("buoy") != nil || s.held("lamp") != nil {
		t.Errorf("without a bound %v are changed; held back %+v, %+v", all, s.held("buoy"), s.held("lamp"))
	}
	s.carryOutOn("east-1", "east-2", "east-3", "east-4")
	s.carryOutOn("east-3", "east-4") // the other operator
	s.append(events.Gateway, events.KindFleetSubscription, "buoy", "buoy", events.FleetSubscriptionDeleted{})
	s.quiet()
	released := func() (n int) {
		for _, e := range s.recorded() {
			if _, ok := e.Payload.(events.SubscriptionReleased); ok {
				n++
			}
		}
		return n
	}
	if h := s.held("buoy"); released() != 1 || h == nil || h.Of != events.BudgetLeaving || h.Held != 3 || h.Used != 1 {
		t.Fatalf("%d were let go of, held back %+v", released(), h)
	}
	s.budget(events.FleetBudgetAllowed{Leaving: 3, Reason: "c1:00"})
	if released() != 4 || s.held("buoy") != nil {
		t.Errorf("%d were let go of, held back %+v", released(), s.held("buoy"))
	}
	s.want("said of those that leave", s.exhausted()[len(said):], []string{"buoy Leaving 3"})
}
