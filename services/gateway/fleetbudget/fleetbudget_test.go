package fleetbudget_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/budget"
	"github.com/chandler-fleet/chandler/services/gateway/fleetbudget"
)

// TestDecide: bounds are replaced where they differ, also where they are the defaults by now; an allowance is one each
// time; what means nothing is refused with its place (issue 14: mass-change budget).
func TestDecide(t *testing.T) {
	t.Parallel()
	set := events.FleetBudgetSet{Changed: 5, Leaving: 1}
	defaults := events.FleetBudgetSet{Changed: budget.DefaultChanged, Leaving: budget.DefaultLeaving}
	given := fleetbudget.State{Set: &set, Version: 1}
	for name, c := range map[string]struct {
		given fleetbudget.State
		when  fleetbudget.Command
		then  []events.Payload
		place string // how the refusal begins
	}{
		"set":            {fleetbudget.State{}, fleetbudget.Set{Changed: 5, Leaving: 1}, []events.Payload{set}, ""},
		"set again":      {given, fleetbudget.Set{Changed: 5, Leaving: 1}, nil, ""},
		"the defaults":   {fleetbudget.State{}, fleetbudget.Set(defaults), []events.Payload{defaults}, ""},
		"no bound":       {given, fleetbudget.Set{}, []events.Payload{events.FleetBudgetSet{}}, ""},
		"below none":     {given, fleetbudget.Set{Changed: -1}, nil, "changed is -1"},
		"beyond a bound": {given, fleetbudget.Set{Leaving: budget.Max + 1}, nil, "leaving is 100001"},
		"allow": {
			given,
			fleetbudget.Allow{Leaving: 3, Reason: "c1:00"},
			[]events.Payload{events.FleetBudgetAllowed{Leaving: 3, Reason: "c1:00"}},
			"",
		},
		"allow nothing": {given, fleetbudget.Allow{Reason: "c1:00"}, nil, "nothing is allowed"},
		"allow less":    {given, fleetbudget.Allow{Changed: 1, Leaving: -1}, nil, "leaving is -1"},
	} {
		got, err := fleetbudget.Decide(c.given, c.when)
		if diff := cmp.Diff(c.then, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
		if (err != nil) != (c.place != "") || err != nil && (!errs.Is(err, errs.Invalid) ||
			!strings.HasPrefix(err.Error(), c.place)) {
			t.Errorf("%s: %v, want a refusal that begins %q", name, err, c.place)
		}
	}
}

// TestEvolve: what the fleet controller says in the stream moves no bound, and no version that somebody replaces.
func TestEvolve(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var s fleetbudget.State
	for i, p := range []events.Payload{
		events.FleetBudgetExhausted{Of: events.BudgetChanged},
		events.FleetBudgetSet{Changed: 5, Leaving: 1},
		events.FleetBudgetAllowed{Changed: 2},
		events.FleetBudgetExhausted{Of: events.BudgetLeaving},
	} {
		var err error
		if s, err = fleetbudget.Evolve(s, p, int64(i+1), noon); err != nil {
			t.Fatal(err)
		}
	}
	if s.Version != 2 || s.Bounds() != (events.FleetBudgetSet{Changed: 5, Leaving: 1}) || len(s.Changed) != 1 ||
		s.Changed[0] != (budget.Allowance{More: 2, At: noon}) {
		t.Errorf("the state is %+v", s)
	}
	if _, err := fleetbudget.Evolve(s, events.RolloutPaused{}, 5, noon); err == nil {
		t.Error("an event of a rollout was taken")
	}
}
