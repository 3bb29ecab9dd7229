// Package effects is the aggregate of the stop switch (DESIGN D7): whether plans may change the clusters of the fleet,
// or one cluster. It is pure. The log stops effects by itself where it has lost commits; here are the decisions of
// people.
package effects

import (
	"fmt"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
)

// Fleet is the scope of everything.
const Fleet = "fleet"

// Why effects are stopped.
const (
	ReasonOperator = "Operator"          // a person stopped them
	ReasonLost     = "RecordLostCommits" // the log stopped them
)

// Scope is the natural key of the switch: fleet, or cluster/<name>.
func Scope(cluster string) string {
	if cluster == "" {
		return Fleet
	}
	return "cluster/" + cluster
}

// State is the position of the switch. The zero value lets effects go on.
type State struct {
	Stopped bool
	Reason  string
	Since   time.Time
}

// Command is one of Stop and Resume.
type Command interface{ effectsCommand() }

// Stop lets no plan begin or take another step.
type Stop struct{ Reason string }

// Resume lets plans go on.
type Resume struct {
	Epoch int64 // that the person has seen and accepts
	// Record is the epoch that the record is in. The person has not seen another one.
	Record int64
	// Lost says that the record has lost commits and stopped by itself, which the state does not know.
	Lost bool
}

func (Stop) effectsCommand()   {}
func (Resume) effectsCommand() {}

// Decide returns the events that the command leads to; none if it changes nothing.
func Decide(s State, c Command) ([]events.Payload, error) {
	switch c := c.(type) {
	case Stop:
		// A loss of commits is recorded beside a person's stop: resuming after that one must not hide it.
		if s.Stopped && (s.Reason == c.Reason || s.Reason == ReasonLost) {
			return nil, nil
		}
		return []events.Payload{events.EffectsStopped{Reason: c.Reason}}, nil
	case Resume:
		if c.Epoch < 1 {
			return nil, errs.New(errs.Invalid, "/epoch: give the epoch that you have seen").At("/epoch", "required")
		}
		if c.Epoch != c.Record {
			return nil, errs.New(errs.Conflict,
				"the event log is in epoch %d, and you accept epoch %d: nothing is resumed", c.Record, c.Epoch)
		}
		if !s.Stopped && !c.Lost {
			return nil, nil
		}
		return []events.Payload{events.EffectsResumed{Epoch: c.Epoch}}, nil
	default:
		return nil, fmt.Errorf("effects: command %T is not known", c)
	}
}

// Evolve returns the state after an event that was decided at a time.
func Evolve(s State, p events.Payload, at time.Time) (State, error) {
	switch e := p.(type) {
	case events.EffectsStopped:
		return State{Stopped: true, Reason: e.Reason, Since: at}, nil
	case events.EffectsResumed:
		return State{}, nil
	default:
		return s, fmt.Errorf("effects: event %s does not belong in a switch's stream", p.EventType())
	}
}
