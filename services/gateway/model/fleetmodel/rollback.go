package fleetmodel

import (
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// RollBackRollout has the newest rollout of a fleet subscription taken back.
type RollBackRollout struct {
	To     int    `json:"to,omitempty" minimum:"1" maximum:"2147483647" doc:"Number of the earlier rollout that brought what the clusters are to have again; found without it"`
	Reason string `json:"reason" minLength:"1" maxLength:"4096" doc:"Why. It is kept outside the event log and can be erased"`
}

// RolloutRollback is what a rollout takes back.
type RolloutRollback struct {
	Of        int                `json:"of" doc:"Number of the rollout that is taken back"`
	From      string             `json:"from" doc:"CSV that it brought"`
	To        int                `json:"to" doc:"Number of the rollout that brought what the clusters get"`
	LeftAlone []RolloutLeftAlone `json:"leftAlone,omitempty" nullable:"false" doc:"Clusters that it had asked and that keep what they have, by name"`
}

// RolloutLeftAlone is a cluster that a rollback leaves as it is.
type RolloutLeftAlone struct {
	Name   string `json:"name"`
	Reason string `json:"reason" enum:"NothingBefore,NotChosen" doc:"NothingBefore: it never had what the others go back to; NotChosen: the placement chooses it no more"`
}

// RolledBack says that somebody has a rollout taken back.
type RolledBack struct {
	To         int                `json:"to" doc:"Number of the earlier rollout that brought what its clusters go back to"`
	By         string             `json:"by,omitempty" doc:"Who asked for it"`
	Words      string             `json:"words,omitempty" doc:"What they said, in answers about one rollout"`
	Body       string             `json:"body,omitempty" doc:"Commitment to these words, by which they are erased"`
	Unreadable []model.Unreadable `json:"unreadable,omitempty" nullable:"false" doc:"What of it is stored and cannot be opened"`
}

func rollbackOf(e events.RolloutStarted) *RolloutRollback {
	if e.Change != events.ChangeRollback {
		return nil
	}
	out := &RolloutRollback{Of: e.Rollback.Of, From: e.Rollback.From, To: e.Rollback.To}
	for _, c := range e.Rollback.LeftAlone {
		out.LeftAlone = append(out.LeftAlone, RolloutLeftAlone{Name: c.Cluster, Reason: c.Reason})
	}
	return out
}
