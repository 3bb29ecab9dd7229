package fleetmodel

import (
	"slices"
	"strconv"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/override"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Rollout is one change that reaches clusters wave by wave.
type Rollout struct {
	FleetSubscription string                    `json:"fleetSubscription"`
	Number            int                       `json:"number" doc:"Of the rollouts of this fleet subscription, from 1"`
	Change            string                    `json:"change" enum:"Version,Intent,Membership,Rollback" doc:"Why it began: the channel offers another version, the fleet subscription was changed, other clusters are chosen, or somebody has the rollout before taken back"`
	Target            RolloutTarget             `json:"target" doc:"What every cluster gets, however catalogs move meanwhile"`
	Phase             string                    `json:"phase" enum:"Progressing,Paused,Halted,Succeeded,Aborted,Superseded,RolledBack" doc:"Paused by a person, Halted by itself; RolledBack: the next rollout takes back what it brought"`
	Reason            string                    `json:"reason,omitempty" doc:"Code of why it has halted"`
	Clusters          RolloutCounts             `json:"clusters" doc:"Of all waves"`
	Waves             []RolloutWave             `json:"waves" nullable:"false" doc:"In their order"`
	MaxConcurrent     int                       `json:"maxConcurrent" doc:"How many clusters are being changed at a time"`
	MaxFailures       int                       `json:"maxFailures" doc:"How many clusters of the whole may fail"`
	DeadlineSeconds   int64                     `json:"deadlineSeconds" doc:"How long one cluster may take"`
	Windows           []model.MaintenanceWindow `json:"windows,omitempty" nullable:"false" doc:"When clusters may be asked; always without one"`
	Rollback          *RolloutRollback          `json:"rollback,omitempty" doc:"What it takes back, where that is why it began"`
	RolledBack        *RolledBack               `json:"rolledBack,omitempty" doc:"That somebody has it taken back"`
	StartedAt         time.Time                 `json:"startedAt"`
	UpdatedAt         time.Time                 `json:"updatedAt"`
	Version           int64                     `json:"version,omitempty" doc:"Of its stream of events"`
	Position          string                    `json:"position,omitempty" doc:"Of the write, in answers to writes"`
}

// RolloutTarget is what every cluster of a rollout gets.
type RolloutTarget struct {
	Package  string `json:"package"`
	Channel  string `json:"channel"`
	Catalog  string `json:"catalog"`
	Revision string `json:"revision" doc:"Of the catalog"`
	CSV      string `json:"csv"`
	Version  string `json:"version"`
	Content  string `json:"content" doc:"Digest of the bundle"`
}

// States of a wave.
const (
	WaveWaiting     = "Waiting"
	WaveProgressing = "Progressing"
	WaveSoaking     = "Soaking"
	WavePromotion   = "WaitingForPromotion"
	WaveUnreachable = "WaitingForClusters"
	WaveGates       = "WaitingForGates"
	WaveStopped     = "Stopped"
	WavePassed      = "Passed"
)

// RolloutWave is one wave of a rollout.
type RolloutWave struct {
	Name           string              `json:"name"`
	State          string              `json:"state" enum:"Waiting,Progressing,Soaking,WaitingForGates,WaitingForPromotion,WaitingForClusters,Stopped,Passed" doc:"Waiting for the wave before; WaitingForGates: a gate has not passed; Soaking: all is settled, and it has to stay so for some time; WaitingForClusters: more are away than may be; Stopped: the rollout has halted, is paused, or ended before the wave had passed"`
	Clusters       RolloutCounts       `json:"clusters"`
	SoakSeconds    int64               `json:"soakSeconds,omitempty"`
	Promotion      string              `json:"promotion" enum:"Automatic,Manual"`
	Promoted       bool                `json:"promoted,omitempty" doc:"A person has let the next wave begin"`
	MaxFailures    int                 `json:"maxFailures"`
	MaxUnreachable int                 `json:"maxUnreachable"`
	Gates          []RolloutGateStatus `json:"gates,omitempty" nullable:"false" doc:"What its gates say, of the wave that was opened last"`
	Members        []RolloutCluster    `json:"members,omitempty" nullable:"false" doc:"By name, in answers about one rollout"`
}

// RolloutCounts are clusters by their state.
type RolloutCounts struct {
	Total       int `json:"total"`
	Waiting     int `json:"waiting,omitempty"`
	Changing    int `json:"changing,omitempty"`
	Succeeded   int `json:"succeeded,omitempty"`
	Failed      int `json:"failed,omitempty"`
	Unreachable int `json:"unreachable,omitempty"`
	Skipped     int `json:"skipped,omitempty"`
}

// States of a cluster of a rollout that has no outcome.
const (
	ClusterWaiting  = "Waiting"
	ClusterChanging = "Changing"
)

// RolloutCluster is where one cluster of a rollout stands.
type RolloutCluster struct {
	Name       string             `json:"name"`
	State      string             `json:"state" enum:"Waiting,Changing,Succeeded,Failed,Unreachable,Skipped"`
	Reason     string             `json:"reason,omitempty" doc:"Code of why it failed or is away"`
	Since      time.Time          `json:"since" doc:"Of the last event about it"`
	Attempt    int                `json:"attempt" doc:"How often the change was asked of it"`
	Directive  string             `json:"directive,omitempty" doc:"Correlation id of the events that the present attempt leads to"`
	Forgiven   bool               `json:"forgiven,omitempty" doc:"A person had the rollout go on in spite of this failure"`
	SkippedBy  string             `json:"skippedBy,omitempty" doc:"Who left it out"`
	Words      string             `json:"words,omitempty" doc:"What they said of it"`
	Body       string             `json:"body,omitempty" doc:"Commitment to these words, by which they are erased"`
	Override   string             `json:"override,omitempty" doc:"Of the fleet subscription, which held for it when the rollout began"`
	Conflict   []string           `json:"conflict,omitempty" nullable:"false" doc:"Overrides that are as particular for it and differ: it fails with OverrideConflict"`
	Unreadable []model.Unreadable `json:"unreadable,omitempty" nullable:"false" doc:"What of it is stored and cannot be opened"`
}

// PromoteRollout lets the wave after the open one begin.
type PromoteRollout struct {
	Wave string `json:"wave,omitempty" maxLength:"63" doc:"Name of the wave that is promoted: refused if another one is open. The open one without it"`
}

// SkipCluster leaves a cluster out of a rollout.
type SkipCluster struct {
	Reason string `json:"reason" minLength:"1" maxLength:"4096" doc:"Why. It is kept outside the event log and can be erased"`
}

// RolloutFilter chooses rollouts; empty fields choose all.
type RolloutFilter struct {
	FleetSubscription string
	model.Page
}

// Add counts clusters of a state.
func (c *RolloutCounts) Add(state string, n int) {
	c.Total += n
	switch state {
	case ClusterWaiting:
		c.Waiting += n
	case ClusterChanging:
		c.Changing += n
	case events.ClusterSucceeded:
		c.Succeeded += n
	case events.ClusterFailed:
		c.Failed += n
	case events.ClusterUnreachable:
		c.Unreachable += n
	case events.ClusterSkipped:
		c.Skipped += n
	}
}

func sum(a, b RolloutCounts) RolloutCounts {
	return RolloutCounts{
		Total: a.Total + b.Total, Waiting: a.Waiting + b.Waiting, Changing: a.Changing + b.Changing,
		Succeeded: a.Succeeded + b.Succeeded, Failed: a.Failed + b.Failed, Unreachable: a.Unreachable + b.Unreachable,
		Skipped: a.Skipped + b.Skipped,
	}
}

// ClusterState is the state of a cluster of a rollout.
func ClusterState(c rollout.Cluster) string {
	switch {
	case c.Outcome != "":
		return c.Outcome
	case c.Directive != "":
		return ClusterChanging
	default:
		return ClusterWaiting
	}
}

// CountedRollout is a rollout without its clusters. count are the clusters of each wave by their state.
func CountedRollout(s rollout.State, count []RolloutCounts) Rollout {
	e := s.Started
	out := Rollout{
		FleetSubscription: e.FleetSubscription, Number: e.Number, Change: e.Change, Phase: string(s.Phase),
		Reason: s.Reason, Waves: []RolloutWave{}, MaxConcurrent: e.MaxConcurrent, MaxFailures: e.MaxFailures,
		DeadlineSeconds: e.DeadlineSeconds, Windows: windows(e.Windows), Target: TargetOf(e.Target),
		Rollback: rollbackOf(e),
	}
	if s.RolledBackTo != 0 {
		out.RolledBack = &RolledBack{To: s.RolledBackTo}
	}
	for i, w := range e.Waves {
		c := count[i]
		wave := RolloutWave{
			Name: w.Name, Clusters: c, SoakSeconds: w.SoakSeconds, Promotion: w.Promotion, MaxFailures: w.MaxFailures,
			MaxUnreachable: w.MaxUnreachable, Promoted: s.Promoted && i == s.Wave, State: WaveProgressing,
			Gates: gatesOf(s, i),
		}
		switch {
		case i < s.Passed:
			wave.State = WavePassed
		case i > s.Wave:
			wave.State = WaveWaiting
		case s.Phase != rollout.Progressing:
			wave.State = WaveStopped
		case len(s.DueGates()) > 0:
			wave.State = WaveGates
		case c.Waiting+c.Changing > 0:
		case c.Unreachable > w.MaxUnreachable:
			wave.State = WaveUnreachable
		case w.Promotion == events.PromotionManual && !wave.Promoted:
			wave.State = WavePromotion
		default:
			wave.State = WaveSoaking
		}
		out.Waves = append(out.Waves, wave)
		out.Clusters = sum(out.Clusters, c)
	}
	return out
}

// WholeRollout is a rollout with its clusters.
func WholeRollout(s rollout.State) Rollout {
	count := make([]RolloutCounts, len(s.Started.Waves))
	members := make([][]RolloutCluster, len(s.Started.Waves))
	for i, w := range s.Started.Waves {
		for _, name := range slices.Sorted(slices.Values(w.Clusters)) {
			c := s.Clusters[name]
			state, choice := ClusterState(c), override.Of(s.Started, name)
			count[i].Add(state, 1)
			members[i] = append(members[i], RolloutCluster{
				Name: name, State: state, Reason: c.Reason, Since: c.Since, Attempt: c.Attempt, Directive: c.Directive,
				Forgiven: c.Forgiven, Override: choice.Name, Conflict: choice.Conflict,
			})
		}
	}
	out := CountedRollout(s, count)
	for i := range out.Waves {
		out.Waves[i].Members = members[i]
	}
	return out
}

// RolloutState is a rollout as its events tell it, with the times that people see.
type RolloutState struct {
	rollout.State

	StartedAt, UpdatedAt time.Time
}

// Evolve folds one event.
func (s RolloutState) Evolve(p events.Payload, at time.Time) (RolloutState, error) {
	var err error
	if s.State, err = rollout.Evolve(s.State, p, at); err != nil {
		return s, err
	}
	if _, begins := p.(events.RolloutStarted); begins {
		s.StartedAt = at
	}
	s.UpdatedAt = at
	return s, nil
}

// RolloutSubject is the subject of a rollout's events: fleet subscription/number.
func RolloutSubject(fleet string, number int) string { return fleet + "/" + strconv.Itoa(number) }
