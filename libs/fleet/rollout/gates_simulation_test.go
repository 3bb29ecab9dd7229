package rollout_test

import (
	"fmt"
	"strconv"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
)

// gateNames are those that gates of a simulation have.
var gateNames = []string{"metrics", "health"}

// skew is how far the clock of a controller is off, and a little more.
const skew = 2 * time.Second

// halfHours are windows in which the first half of every hour lies, for longer than a simulation plays.
func halfHours() []events.Window {
	var out []events.Window
	for hour := range 12 {
		out = append(out, events.Window{Start: fmt.Sprintf("%02d:00", hour), Minutes: 30, TimeZone: "UTC"})
	}
	return out
}

// inHalf says whether a moment may count as in one of the halfHours, on clocks that are off.
func inHalf(at time.Time) bool {
	return at.Add(skew).Minute() < 30 || at.Add(-skew).Minute() < 30
}

// drawGates are those of a wave, mostly none.
func (s *simulation) drawGates() []events.RolloutGate {
	var out []events.RolloutGate
	if s.rng.IntN(2) == 0 {
		return nil
	}
	for _, name := range gateNames {
		if s.rng.IntN(2) == 0 {
			continue
		}
		g := events.RolloutGate{Name: name, Type: events.GateHTTP, When: events.GateAfter, DeadlineSeconds: 300}
		if s.rng.IntN(3) == 0 {
			g.When = events.GateBefore
		}
		out = append(out, g)
	}
	return out
}

// gatekeeper is what evaluates gates: any number of replicas, of which each is killed now and then.
type gatekeeper struct {
	heard   map[string]rollout.Evaluation
	running []evaluation
	begun   map[string]evaluation // by id
	drawn   int
}

// evaluation is one on its way, and when it truly began.
type evaluation struct {
	rollout.Evaluation

	gate string
	at   int // length of the log
	now  time.Time
}

// evaluate begins an evaluation, by a state that may be old, or ends one that began a while ago.
func (s *simulation) evaluate() {
	k := &s.gates
	if k.begun == nil {
		k.begun, k.heard = map[string]evaluation{}, map[string]rollout.Evaluation{}
	}
	if len(k.running) > 0 && s.rng.IntN(2) == 0 {
		at := s.rng.IntN(len(k.running))
		e := k.running[at]
		k.running = append(k.running[:at:at], k.running[at+1:]...)
		if s.faults && s.rng.IntN(6) == 0 {
			return // killed in between: somebody evaluates it again
		}
		e.Ended = s.now
		if e.Round >= k.heard[e.gate].Round {
			k.heard[e.gate] = e.Evaluation
		}
		return
	}
	base := len(s.log)
	if s.faults && s.rng.IntN(4) == 0 {
		base = 1 + s.rng.IntN(len(s.log))
	}
	state := s.state(base)
	for _, gate := range state.DueGates() {
		k.drawn++
		e := evaluation{gate: gate.Name, at: len(s.log), now: s.now, Evaluation: rollout.Evaluation{
			ID: strconv.Itoa(k.drawn), Round: state.Gates.Round, Verdict: events.VerdictPass, Begun: s.now,
		}}
		if s.faults {
			e.Verdict = []string{
				events.VerdictPass, events.VerdictPass, events.VerdictWait, events.VerdictFail,
			}[s.rng.IntN(4)]
		}
		k.begun[e.ID] = e
		k.running = append(k.running, e)
	}
}

// gateJudge holds the gates of the open wave against the rules, by its own reading of the log.
type gateJudge struct {
	begun      time.Time // when the wave was opened
	started    bool      // a cluster of it was directed
	from       int       // nothing that began before this entry of the log counts
	soaked     time.Time // when the wave has soaked
	promoted   bool
	overridden map[string]bool
	before     map[string]evaluation // gates that have passed before the wave, by the evaluation that shows it
	after      map[string]evaluation
	changed    map[string]time.Time // when a cluster was directed
}

func (g *gateJudge) judge(s *simulation, p events.Payload) {
	switch e := p.(type) {
	case events.RolloutGateOverridden:
		if g.overridden == nil {
			g.overridden = map[string]bool{}
		}
		g.overridden[e.Gate] = true
	case events.RolloutGateEvaluated:
		if e.Verdict != events.VerdictPass {
			return
		}
		if g.after == nil {
			g.after, g.before = map[string]evaluation{}, map[string]evaluation{}
		}
		g.after[e.Gate] = s.gates.begun[e.Evaluation]
		g.before[e.Gate] = s.gates.begun[e.Evaluation]
	}
}

// moved says that something happened to a cluster of the open wave: what gates have said before counts no more.
func (j *judge) moved(s *simulation, cluster string) {
	if j.wave[cluster] != j.opened-1 {
		return
	}
	j.gates.from = len(s.log) + 1
	if j.outcome[cluster] == events.ClusterSucceeded {
		soak := time.Duration(j.started.Waves[j.wave[cluster]].SoakSeconds) * time.Second
		if until := s.now.Add(soak); until.After(j.gates.soaked) {
			j.gates.soaked = until
		}
	}
}

// directed: the first cluster of a wave is directed when the gates before it have passed, and only in a window.
func (g *gateJudge) directed(j *judge, s *simulation, cluster string) {
	if len(j.started.Windows) > 0 && !inHalf(s.now) {
		j.fault("%s was directed at %s, outside of the windows", cluster, s.now)
	}
	if g.changed == nil {
		g.changed = map[string]time.Time{}
	}
	g.changed[cluster] = s.now
	wave := j.wave[cluster]
	if wave != j.opened-1 {
		return
	}
	if !g.started && j.passed <= wave {
		for _, gate := range j.started.Waves[wave].Gates {
			if e, passed := g.before[gate.Name]; gate.When == events.GateBefore && !g.overridden[gate.Name] &&
				(!passed || e.now.Before(g.begun)) {
				j.fault("%s was directed before gate %s had passed", cluster, gate.Name)
			}
		}
	}
	g.started = true
	g.from = len(s.log) + 1
}

// passed: a wave passes when each of its gates has passed, by an evaluation that began after the last that happened to
// its clusters, and after it had soaked.
func (g *gateJudge) passed(j *judge, wave int) {
	for _, gate := range j.started.Waves[wave].Gates {
		if gate.When != events.GateAfter || g.overridden[gate.Name] {
			continue
		}
		e, passed := g.after[gate.Name]
		switch {
		case !passed:
			j.fault("wave %d passed without gate %s", wave, gate.Name)
		case e.at < g.from:
			j.fault("wave %d passed by an evaluation of gate %s that began at %d, before %d", wave, gate.Name, e.at,
				g.from)
		case !g.promoted && e.now.Before(g.soaked.Add(-skew)):
			j.fault("wave %d passed by an evaluation of gate %s that began before it had soaked", wave, gate.Name)
		}
	}
}

// late: a cluster fails by its deadline when that has passed within the windows.
func (g *gateJudge) late(j *judge, s *simulation, cluster string) {
	if len(j.started.Windows) == 0 {
		return
	}
	since, known := g.changed[cluster]
	if !known {
		return // of a wave before
	}
	open := 4 * skew
	for at := since; at.Before(s.now); at = at.Add(time.Second) {
		if inHalf(at) {
			open += time.Second
		}
	}
	if limit := time.Duration(j.started.DeadlineSeconds) * time.Second; open < limit {
		j.fault("%s failed by its deadline of %s after %s", cluster, limit, open)
	}
}
