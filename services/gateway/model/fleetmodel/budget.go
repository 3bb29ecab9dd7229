package fleetmodel

import (
	"time"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// FleetBudget bounds how many clusters fleet subscriptions change, and let go of, within an hour.
type FleetBudget struct {
	Changed   int           `json:"changed" doc:"How many clusters rollouts may change within an hour; 0 is no bound"`
	Leaving   int           `json:"leaving" doc:"How many clusters fleet subscriptions may let go of within an hour; 0 is no bound"`
	Default   bool          `json:"default,omitempty" doc:"Nobody has set it: these are the defaults"`
	Used      FleetClusters `json:"used" doc:"How many clusters were changed, and let go of, within the last hour"`
	Allowed   FleetClusters `json:"allowed" doc:"How many more persons have allowed within the last hour"`
	Held      []FleetHeld   `json:"held" nullable:"false" doc:"What waits for it"`
	UpdatedAt *time.Time    `json:"updatedAt,omitempty" doc:"When it was set; absent where nobody has"`
	Stream    string        `json:"stream,omitempty" doc:"Id of its stream of events"`
	Version   int64         `json:"version,omitempty" doc:"Of its stream when it was set"`
	Position  string        `json:"position,omitempty" doc:"Of the write, in answers to writes"`
}

// FleetClusters are numbers of clusters.
type FleetClusters struct {
	Changed int `json:"changed"`
	Leaving int `json:"leaving"`
}

// FleetHeld is what a fleet subscription holds back since the budget is used up.
type FleetHeld struct {
	FleetSubscription string    `json:"fleetSubscription"`
	Reason            string    `json:"reason" enum:"BudgetExhausted"`
	Rollout           int       `json:"rollout,omitempty" doc:"Number of the rollout; absent where clusters leave"`
	Of                string    `json:"of" enum:"Changed,Leaving" doc:"Whether clusters would be changed, or let go of"`
	Held              int       `json:"held" doc:"How many clusters wait"`
	Used              int       `json:"used" doc:"How many clusters of the tenant were changed, or let go of, within the hour"`
	Limit             int       `json:"limit" doc:"How many may be, what a person allowed more included"`
	Until             time.Time `json:"until" doc:"When the next of them may go on by itself"`
}

// ReasonBudget is the Reason of FleetHeld.
const ReasonBudget = "BudgetExhausted"

// SetFleetBudget replaces both bounds.
type SetFleetBudget struct {
	Changed int `json:"changed" minimum:"0" maximum:"100000" doc:"How many clusters rollouts may change within an hour; 0 is no bound"`
	Leaving int `json:"leaving" minimum:"0" maximum:"100000" doc:"How many clusters fleet subscriptions may let go of within an hour; 0 is no bound"`
}

// AllowFleetBudget lets more clusters be changed, or leave, once.
type AllowFleetBudget struct {
	Changed int    `json:"changed,omitempty" minimum:"0" maximum:"100000" doc:"How many clusters more rollouts may change"`
	Leaving int    `json:"leaving,omitempty" minimum:"0" maximum:"100000" doc:"How many clusters more may leave"`
	Reason  string `json:"reason" minLength:"1" maxLength:"4096" doc:"Why. It is kept outside the event log and can be erased"`
}

// Tag is the entity tag of a budget; "" where nobody has set it.
func (b FleetBudget) Tag() string { return model.TagOf(b.Stream, b.Version) }
