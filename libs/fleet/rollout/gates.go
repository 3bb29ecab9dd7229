package rollout

import (
	"maps"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
)

// Codes of why a rollout has halted at a gate.
const (
	ReasonGateFailed   = "GateFailed"
	ReasonGateDeadline = "GateDeadlineExceeded" // it did not pass in time
)

// DefaultGateDeadlineSeconds is how long a gate without a deadline may take to pass: as long as a cluster may.
const DefaultGateDeadlineSeconds = 30 * 60

// maxGateChanges bounds the events of one gate in a round: one that waits for another reason each time it is asked
// tells the log nothing more. Pass and Fail, which end the round for it, are always recorded.
const maxGateChanges = 20

// Gates is where the gates of the open wave stand. They are evaluated in rounds: a round begins by an event when the
// wave has settled and soaked, and ends with whatever happens to a cluster of the wave after that. Only what was
// evaluated for the round that is due counts, and that cannot have been begun before it was recorded.
type Gates struct {
	Round int       `json:"round,omitempty"` // counts those of the rollout
	Due   string    `json:"due,omitempty"`   // events.GateAfter, events.GateBefore; "" while no round is due
	Since time.Time `json:"since,omitzero"`  // when the round began
	// Verdicts of the round, by gate.
	Verdicts map[string]GateVerdict `json:"verdicts,omitempty"`
	// Overridden are the gates that a person let the wave go on without, with the commitment to the reason.
	Overridden map[string]string `json:"overridden,omitempty"`
	// Begun says that the gates before the wave have passed: a cluster of it was directed, or those after it are due.
	Begun bool `json:"begun,omitempty"`
}

// GateVerdict is what a gate said last.
type GateVerdict struct {
	Verdict    string    `json:"verdict"`
	Code       string    `json:"code,omitempty"`
	Evaluation string    `json:"evaluation"`
	Since      time.Time `json:"since"`   // of the verdict
	Changes    int       `json:"changes"` // events of it in this round
}

// Final says whether it is not asked again in its round.
func (v GateVerdict) Final() bool {
	return v.Verdict == events.VerdictPass || v.Verdict == events.VerdictFail
}

// Evaluation is what an evaluation of a gate came to.
type Evaluation struct {
	ID      string
	Round   int // that was due when it was begun
	Verdict string
	Code    string
	Begun   time.Time
	Ended   time.Time
}

// with folds an event about gates. An evaluation for another round than that which is due changes nothing.
func (g Gates) with(p events.Payload, at time.Time) Gates {
	switch e := p.(type) {
	case events.RolloutGatesDue:
		g.Round, g.Due, g.Since, g.Verdicts = e.Round, e.When, at, nil
		g.Begun = g.Begun || e.When == events.GateAfter
	case events.RolloutGateEvaluated:
		before := g.Verdicts[e.Gate]
		if g.Due == "" || e.Round != g.Round || before.Final() {
			return g
		}
		now := GateVerdict{
			Verdict: e.Verdict, Code: e.Code, Evaluation: e.Evaluation, Since: at, Changes: before.Changes + 1,
		}
		if before.Verdict == e.Verdict {
			now.Since = before.Since
		}
		g.Verdicts = put(g.Verdicts, e.Gate, now)
	case events.RolloutGateOverridden:
		g.Overridden = put(g.Overridden, e.Gate, e.Reason)
	}
	return g
}

// put is a map with one more entry; states share maps.
func put[V any](m map[string]V, key string, v V) map[string]V {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]V{}
	}
	out[key] = v
	return out
}

// moved is what an event about a cluster of the wave makes of its gates: they would speak of something else.
func (g Gates) moved(p events.Payload) Gates {
	if _, directed := p.(events.RolloutClusterDirected); directed {
		g.Begun = true
		return g.ended()
	}
	if g.Due == events.GateAfter {
		return g.ended()
	}
	return g
}

// ended is without the round.
func (g Gates) ended() Gates {
	g.Due, g.Since, g.Verdicts = "", time.Time{}, nil
	return g
}

// DueGates are the gates of the open wave whose verdict is waited for.
func (s *State) DueGates() []events.RolloutGate {
	if s.Phase != Progressing || s.Gates.Due == "" || s.Wave == none || s.Wave >= len(s.Started.Waves) {
		return nil
	}
	var out []events.RolloutGate
	for _, gate := range s.Started.Waves[s.Wave].Gates {
		_, overridden := s.Gates.Overridden[gate.Name]
		if gate.When == s.Gates.Due && !overridden && !s.Gates.Verdicts[gate.Name].Final() {
			out = append(out, gate)
		}
	}
	return out
}

// gates says whether the gates before or after the open wave let it go on. It begins a round where one is needed, takes
// in what was evaluated for it, and halts the rollout where a gate fails.
func (d *decision) gates(when string) bool {
	if d.state.Wave == none || d.state.Passed > d.state.Wave || when == events.GateBefore && d.state.Gates.Begun {
		return true
	}
	var asked []events.RolloutGate
	for _, gate := range d.state.Started.Waves[d.state.Wave].Gates {
		if _, overridden := d.state.Gates.Overridden[gate.Name]; gate.When == when && !overridden {
			asked = append(asked, gate)
		}
	}
	if len(asked) == 0 {
		return true
	}
	if d.state.Gates.Due != when {
		d.append(events.RolloutGatesDue{Wave: d.state.Wave, When: when, Round: d.state.Gates.Round + 1})
	}
	passed, halt := 0, ""
	for _, gate := range asked {
		d.evaluated(gate.Name)
		now := d.state.Gates.Verdicts[gate.Name]
		switch {
		case now.Verdict == events.VerdictPass:
			passed++
		case now.Verdict == events.VerdictFail:
			halt = ReasonGateFailed
		case halt == "" && d.world.Now.Sub(d.state.Gates.Since) >= gateDeadline(gate):
			halt = ReasonGateDeadline
		}
	}
	if halt != "" {
		d.append(events.RolloutHalted{Wave: d.state.Wave, Reason: halt})
	}
	return passed == len(asked)
}

func gateDeadline(g events.RolloutGate) time.Duration {
	seconds := g.DeadlineSeconds
	if seconds == 0 {
		seconds = DefaultGateDeadlineSeconds
	}
	return time.Duration(seconds) * time.Second
}

// evaluated records what a gate says, where that is news, and was evaluated for the round that is due.
func (d *decision) evaluated(gate string) {
	e, before := d.world.Evaluated[gate], d.state.Gates.Verdicts[gate]
	switch {
	case e.Verdict == "" || e.Round != d.state.Gates.Round || before.Final():
		return
	case e.Verdict == before.Verdict && e.Code == before.Code:
		return
	case e.Verdict == events.VerdictWait && before.Changes >= maxGateChanges:
		return
	}
	d.append(events.RolloutGateEvaluated{
		Wave: d.state.Wave, Gate: gate, Round: e.Round, Verdict: e.Verdict, Code: e.Code, Evaluation: e.ID,
		BegunAt: e.Begun, EndedAt: e.Ended,
	})
}

// PassGate lets the open wave go on without one of its gates. Reason is the commitment to the words of whoever asks.
type PassGate struct{ Gate, Reason string }

func (PassGate) rolloutCommand() {}

// passGate overrides a gate of the open wave, for as long as that is the open one. A rollout that it halted is resumed
// by another command.
func passGate(s State, c PassGate) ([]events.Payload, error) {
	if s.Wave == none || s.Passed > s.Wave {
		return nil, refuse(s, "has no wave whose gates could be passed")
	}
	wave := s.Started.Waves[s.Wave]
	for _, gate := range wave.Gates {
		if gate.Name != c.Gate {
			continue
		}
		if _, already := s.Gates.Overridden[c.Gate]; already || gate.When == events.GateBefore && s.Gates.Begun {
			return nil, nil
		}
		return []events.Payload{events.RolloutGateOverridden{Wave: s.Wave, Gate: c.Gate, Reason: c.Reason}}, nil
	}
	return nil, errs.New(errs.NotFound, "wave %q, which is the open one of rollout %s/%d, has no gate %q", wave.Name,
		s.Started.FleetSubscription, s.Started.Number, c.Gate)
}
