package events

// RolloutRollbackRequested ends the newest rollout of a fleet subscription and has what it brought taken back: the
// clusters that it asked get what the rollout To brought. It may have ended already.
type RolloutRollbackRequested struct {
	To     int    `json:"to"`     // number of an earlier rollout of the same fleet subscription
	Reason string `json:"reason"` // commitment to the words of whoever asked
}

// EventType implements Payload.
func (RolloutRollbackRequested) EventType() Type { return "fleet.rollout-rollback-requested.v1" }

// RolloutRollback is what a rollout takes back.
type RolloutRollback struct {
	Of   int    `json:"of"`   // number of the rollout that is taken back
	From string `json:"from"` // CSV that it brought
	To   int    `json:"to"`   // number of the rollout that brought what the clusters get
	// LeftAlone are the clusters that it had asked and that keep what they have, by name.
	LeftAlone []RolloutLeftAlone `json:"leftAlone,omitempty"`
}

// RolloutLeftAlone is a cluster that a rollback leaves as it is.
type RolloutLeftAlone struct {
	Cluster string `json:"cluster"`
	Reason  string `json:"reason"` // NothingBefore, NotChosen
}

// Why a rollback leaves a cluster as it is.
const (
	LeftNothingBefore = "NothingBefore" // it never had what the others go back to
	LeftNotChosen     = "NotChosen"     // the placement chooses it no more, or it was removed
)

// SubscriptionRollback is the way back that a rollout asks for: while From, or anything beyond To, is installed, To is
// what the subscription wants.
type SubscriptionRollback struct {
	From string `json:"from"` // CSV
	To   string `json:"to"`   // CSV of the target
}
