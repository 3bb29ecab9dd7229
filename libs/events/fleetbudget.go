package events

import "time"

// fleetBudgetEvents are the events of the budget of mass changes, in the order of docs/events.md.
func fleetBudgetEvents() []Definition {
	return []Definition{
		define(KindFleetBudget, Gateway, FleetBudgetSet{},
			"Within an hour fleet subscriptions may change so many clusters, and let go of so many."),
		define(KindFleetBudget, Gateway, FleetBudgetAllowed{},
			"A person allows so many clusters more, once, within the hour that follows."),
		define(KindFleetBudget, Fleet, FleetBudgetExhausted{},
			"Clusters are held back, since as many as may have been changed or let go within the hour."),
	}
}

// FleetBudgetSubject is the natural key, and the subject, of the budget of a tenant.
const FleetBudgetSubject = "fleet"

// What a budget bounds.
const (
	BudgetChanged = "Changed" // clusters that rollouts change
	BudgetLeaving = "Leaving" // clusters that fleet subscriptions let go of
)

// FleetBudgetSet says how many clusters of the tenant may be changed, and how many may leave, within an hour, by all
// fleet subscriptions together. 0 is no bound. Subject: fleet.
type FleetBudgetSet struct {
	Changed int `json:"changed"`
	Leaving int `json:"leaving"`
}

// EventType implements Payload.
func (FleetBudgetSet) EventType() Type { return "fleet.budget-set.v1" }

// FleetBudgetAllowed raises the bounds for the hour that follows it. Subject: fleet.
type FleetBudgetAllowed struct {
	Changed int    `json:"changed,omitempty"` // so many more
	Leaving int    `json:"leaving,omitempty"` // so many more
	Reason  string `json:"reason"`            // commitment to the words of whoever allowed it
}

// EventType implements Payload.
func (FleetBudgetAllowed) EventType() Type { return "fleet.budget-allowed.v1" }

// FleetBudgetExhausted says that a fleet subscription begins to hold clusters back. It is appended once, when that
// begins, and not again while any cluster is held back. Subject: fleet.
type FleetBudgetExhausted struct {
	FleetSubscription string    `json:"fleetSubscription"` // name
	Rollout           int       `json:"rollout,omitempty"` // number of the rollout; none where clusters leave
	Of                string    `json:"of"`                // Changed, Leaving
	Limit             int       `json:"limit"`             // what was allowed more included
	Used              int       `json:"used"`              // clusters within the hour
	Held              int       `json:"held"`              // clusters that are held back
	Until             time.Time `json:"until"`             // when the next of them may go on by itself
}

// EventType implements Payload.
func (FleetBudgetExhausted) EventType() Type { return "fleet.budget-exhausted.v1" }
