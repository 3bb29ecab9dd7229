// Package fleetbudget is the aggregate of the budget of mass changes: how many clusters of a tenant fleet subscriptions
// may change, and let go of, within an hour. It is pure. What was changed is counted by who changes it.
package fleetbudget

import (
	"fmt"
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/budget"
)

// State is the bounds that hold, and what persons allowed beyond them. The zero value has the defaults.
type State struct {
	Set     *events.FleetBudgetSet // nil where nobody has
	Version int64                  // of the stream when it was set; 0 where nobody has
	At      time.Time              // when it was set
	Changed []budget.Allowance
	Leaving []budget.Allowance
}

// Bounds are the bounds that hold, without what is allowed beyond them.
func (s State) Bounds() events.FleetBudgetSet {
	if s.Set == nil {
		return events.FleetBudgetSet{Changed: budget.DefaultChanged, Leaving: budget.DefaultLeaving}
	}
	return *s.Set
}

// Command is one of Set and Allow.
type Command interface{ fleetBudgetCommand() }

// Set replaces both bounds; 0 is none.
type Set struct{ Changed, Leaving int }

// Allow lets so many clusters more be changed, and leave, within the hour that follows. Reason is the commitment to the
// words of whoever allows it.
type Allow struct {
	Changed, Leaving int
	Reason           string
}

func (Set) fleetBudgetCommand()   {}
func (Allow) fleetBudgetCommand() {}

// Decide returns the event that the command leads to; none if it changes nothing.
func Decide(s State, c Command) ([]events.Payload, error) {
	switch c := c.(type) {
	case Set:
		if err := within(c.Changed, c.Leaving); err != nil {
			return nil, err
		}
		next := events.FleetBudgetSet(c)
		if s.Set != nil && *s.Set == next {
			return nil, nil
		}
		return []events.Payload{next}, nil
	case Allow:
		if err := within(c.Changed, c.Leaving); err != nil {
			return nil, err
		}
		if c.Changed == 0 && c.Leaving == 0 {
			return nil, errs.New(errs.Invalid, "nothing is allowed: say how many clusters more may be changed, or may leave").
				At("body.changed", "required")
		}
		return []events.Payload{events.FleetBudgetAllowed(c)}, nil
	default:
		return nil, fmt.Errorf("budget of the fleet: command %T is not known", c)
	}
}

func within(changed, leaving int) error {
	for name, n := range map[string]int{"changed": changed, "leaving": leaving} {
		if n < 0 || n > budget.Max {
			return errs.New(errs.Invalid, "%s is %d: give 0 to %d", name, n, budget.Max).At("body."+name, "between")
		}
	}
	return nil
}

// Evolve returns the state after an event, which is at a version of its stream.
func Evolve(s State, p events.Payload, version int64, at time.Time) (State, error) {
	switch e := p.(type) {
	case events.FleetBudgetSet:
		s.Set, s.Version, s.At = &e, version, at
	case events.FleetBudgetAllowed:
		s.Changed = append(slices.Clip(s.Changed), budget.Allowance{More: e.Changed, At: at})
		s.Leaving = append(slices.Clip(s.Leaving), budget.Allowance{More: e.Leaving, At: at})
	case events.FleetBudgetExhausted: // tells people; changes no bound
	default:
		return s, fmt.Errorf("budget of the fleet: event %s does not belong in its stream", p.EventType())
	}
	return s, nil
}
