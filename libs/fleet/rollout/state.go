package rollout

import (
	"fmt"
	"maps"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
)

// Phase is what a user sees of a rollout.
type Phase string

// The phases. The empty phase is a rollout that has not started.
const (
	Progressing Phase = "Progressing"
	Paused      Phase = "Paused"     // by a person
	Halted      Phase = "Halted"     // by itself
	Succeeded   Phase = "Succeeded"  // every wave has passed, and nobody has to catch up
	Aborted     Phase = "Aborted"    // by a person
	Superseded  Phase = "Superseded" // another rollout takes its place
	RolledBack  Phase = "RolledBack" // a person has it taken back, which the next rollout does
)

// Ended says whether nothing more comes of a rollout in this phase.
func (p Phase) Ended() bool {
	return p == Succeeded || p == Aborted || p == Superseded || p == RolledBack
}

// none is the index of the open wave before the first one is open.
const none = -1

// State is one rollout, folded from its events.
type State struct {
	Started events.RolloutStarted
	Phase   Phase
	Reason  string // why it has halted; a code
	// Wave is the index of the wave that was opened last; -1 before the first.
	Wave int
	// Passed is how many waves have passed; they pass in their order.
	Passed int
	// Promoted says that a person let the open wave be followed by the next one.
	Promoted bool
	// Gates is where the gates of the open wave stand.
	Gates Gates
	// RolledBackTo is the number of the rollout that brought what the clusters go back to; 0 while nobody asked.
	RolledBackTo int
	Clusters     map[string]Cluster
}

// Cluster is where one cluster stands.
type Cluster struct {
	Wave      int
	Attempt   int    // how often it was directed
	Directive string // of the present attempt; "" while it is not directed
	// Outcome is of the present attempt; "" while there is none.
	Outcome string
	Reason  string    // a code
	Since   time.Time // of the last event about it
	// Forgiven says that a person had the rollout go on in spite of this failure.
	Forgiven bool
}

// Changing says whether the cluster was directed and has not settled.
func (c Cluster) Changing() bool { return c.Directive != "" && c.Outcome == "" }

// Evolve folds one event, appended at a moment, into the state. An event that cannot follow the ones before, or is
// not a rollout's, is an error.
func Evolve(s State, p events.Payload, at time.Time) (State, error) {
	next := s
	next.Clusters = maps.Clone(s.Clusters)
	if err := next.apply(p, at); err != nil {
		return s, err
	}
	return next, nil
}

// apply is Evolve in place, for whoever owns the map of clusters.
func (s *State) apply(p events.Payload, at time.Time) error {
	if e, ok := p.(events.RolloutStarted); ok {
		if s.Phase != "" {
			return fmt.Errorf("rollout %d of %s: started twice", e.Number, e.FleetSubscription)
		}
		*s = started(e, at)
		return nil
	}
	if s.Phase == "" {
		return fmt.Errorf("rollout: %s before fleet.rollout-started.v1", p.EventType())
	}
	switch e := p.(type) {
	case events.RolloutWaveOpened:
		s.Wave, s.Promoted = e.Wave, false
		s.Gates = Gates{Round: s.Gates.Round}
	case events.RolloutGatesDue, events.RolloutGateEvaluated, events.RolloutGateOverridden:
		s.Gates = s.Gates.with(e, at)
	case events.RolloutWavePassed:
		s.Passed = e.Wave + 1
	case events.RolloutPromoted:
		s.Promoted = true
	case events.RolloutHalted:
		s.Phase, s.Reason = Halted, e.Reason
	case events.RolloutPaused:
		s.Phase = Paused
	case events.RolloutResumed:
		s.resume()
	case events.RolloutAborted:
		s.Phase = Aborted
	case events.RolloutEnded:
		s.Phase = Phase(e.Outcome)
	case events.RolloutRollbackRequested:
		s.Phase, s.Reason, s.RolledBackTo = RolledBack, "", e.To
	default:
		return s.applyCluster(p, at)
	}
	return nil
}

func started(e events.RolloutStarted, at time.Time) State {
	s := State{Started: e, Phase: Progressing, Wave: none, Clusters: map[string]Cluster{}}
	for i, w := range e.Waves {
		for _, name := range w.Clusters {
			s.Clusters[name] = Cluster{Wave: i, Since: at}
		}
	}
	return s
}

// resume forgives the failures so far: what made the rollout halt would make it halt again.
func (s *State) resume() {
	s.Phase, s.Reason = Progressing, ""
	s.Gates = s.Gates.ended()
	for name, c := range s.Clusters {
		c.Forgiven = c.Outcome == events.ClusterFailed
		s.Clusters[name] = c
	}
}

// applyCluster folds the events about one cluster.
func (s *State) applyCluster(p events.Payload, at time.Time) error {
	var name string
	var to func(Cluster) Cluster
	switch e := p.(type) {
	case events.RolloutClusterDirected:
		name, to = e.Cluster, func(c Cluster) Cluster {
			return Cluster{Wave: c.Wave, Attempt: e.Attempt, Directive: e.Directive}
		}
	case events.RolloutClusterSettled:
		name, to = e.Cluster, func(c Cluster) Cluster { return c.outcome(e.Outcome, e.Reason) }
	case events.RolloutClusterSkipped:
		name, to = e.Cluster, func(c Cluster) Cluster { return c.outcome(events.ClusterSkipped, "") }
	case events.RolloutClusterRetried:
		name, to = e.Cluster, func(c Cluster) Cluster { return Cluster{Wave: c.Wave, Attempt: c.Attempt} }
	default:
		return fmt.Errorf("rollout: %s is not an event of a rollout", p.EventType())
	}
	c, ok := s.Clusters[name]
	if !ok {
		return fmt.Errorf("rollout %d of %s: %s names cluster %q, which is in none of its waves", s.Started.Number,
			s.Started.FleetSubscription, p.EventType(), name)
	}
	if c.Wave == s.Wave {
		s.Gates = s.Gates.moved(p)
	}
	c = to(c)
	c.Since = at
	s.Clusters[name] = c
	return nil
}

func (c Cluster) outcome(outcome, reason string) Cluster {
	c.Outcome, c.Reason, c.Forgiven = outcome, reason, false
	return c
}
