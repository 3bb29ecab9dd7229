package rollout

import (
	"fmt"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
)

// Command is one of Pause, Resume, Promote, PassGate, Skip, Retry, Abort and Rollback: what people ask of a rollout.
type Command interface{ rolloutCommand() }

// Pause has no further cluster directed.
type Pause struct{}

// Resume has a paused or halted rollout go on.
type Resume struct{}

// Promote lets the wave after the open one begin: it stands for the wave's promotion, and ends its soak. Its gates have
// to pass nevertheless.
type Promote struct{}

// Skip leaves a cluster out. Reason is the commitment to the words of whoever asks.
type Skip struct{ Cluster, Reason string }

// Retry has a cluster directed once more that failed or was skipped.
type Retry struct{ Cluster string }

// Abort ends the rollout.
type Abort struct{}

func (Pause) rolloutCommand()   {}
func (Resume) rolloutCommand()  {}
func (Promote) rolloutCommand() {}
func (Skip) rolloutCommand()    {}
func (Retry) rolloutCommand()   {}
func (Abort) rolloutCommand()   {}

// Decide returns the events that a command leads to; none where it changes nothing.
func Decide(s State, c Command) ([]events.Payload, error) {
	if s.Phase == "" {
		return nil, errs.New(errs.NotFound, "there is no such rollout")
	}
	if back, is := c.(Rollback); is {
		return rollBack(s, back)
	}
	if s.Phase.Ended() {
		return nil, refuse(s, "has ended (%s)", s.Phase)
	}
	switch c := c.(type) {
	case Pause:
		return pause(s)
	case Resume:
		if s.Phase == Progressing {
			return nil, nil
		}
		return []events.Payload{events.RolloutResumed{}}, nil
	case Promote:
		return promote(s)
	case PassGate:
		return passGate(s, c)
	case Skip:
		return skip(s, c)
	case Retry:
		return retry(s, c)
	case Abort:
		return []events.Payload{events.RolloutAborted{}}, nil
	default:
		return nil, fmt.Errorf("rollout: command %T is not known", c)
	}
}

// refuse is a refusal by what the rollout is now.
func refuse(s State, format string, args ...any) error {
	return errs.New(errs.Conflict, "rollout %s/%d %s", s.Started.FleetSubscription, s.Started.Number,
		fmt.Sprintf(format, args...))
}

func pause(s State) ([]events.Payload, error) {
	switch s.Phase {
	case Paused:
		return nil, nil
	case Halted:
		return nil, refuse(s, "has halted already: nothing more begins until it is resumed")
	default:
		return []events.Payload{events.RolloutPaused{}}, nil
	}
}

func promote(s State) ([]events.Payload, error) {
	switch {
	case s.Phase != Progressing:
		return nil, refuse(s, "is %s: resume it first", s.Phase)
	case s.Wave == none || s.Passed > s.Wave:
		return nil, refuse(s, "has no wave that could be promoted")
	case s.Promoted:
		return nil, nil
	case !settledWave(s, s.Wave):
		return nil, refuse(s, "cannot promote wave %q: not all of its clusters have settled",
			s.Started.Waves[s.Wave].Name)
	}
	return []events.Payload{events.RolloutPromoted{Wave: s.Wave}}, nil
}

func skip(s State, c Skip) ([]events.Payload, error) {
	now, err := member(s, c.Cluster)
	switch {
	case err != nil:
		return nil, err
	case now.Outcome == events.ClusterSkipped:
		return nil, nil
	case now.Outcome == events.ClusterSucceeded:
		return nil, refuse(s, "has changed cluster %q already", c.Cluster)
	}
	return []events.Payload{events.RolloutClusterSkipped(c)}, nil
}

func retry(s State, c Retry) ([]events.Payload, error) {
	now, err := member(s, c.Cluster)
	switch {
	case err != nil:
		return nil, err
	case now.Outcome != events.ClusterFailed && now.Outcome != events.ClusterSkipped:
		return nil, refuse(s, "has nothing to try again on cluster %q: it neither failed nor was skipped", c.Cluster)
	}
	return []events.Payload{events.RolloutClusterRetried(c)}, nil
}

func member(s State, cluster string) (Cluster, error) {
	c, ok := s.Clusters[cluster]
	if !ok {
		return c, errs.New(errs.NotFound, "rollout %s/%d has no cluster %q", s.Started.FleetSubscription,
			s.Started.Number, cluster)
	}
	return c, nil
}
