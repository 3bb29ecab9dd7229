package rollout

import (
	"maps"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/budget"
	"github.com/chandler-fleet/chandler/libs/installplan/window"
)

// Codes of why a rollout has halted, and why a cluster counts as failed without a fact that says so.
const (
	ReasonWaveFailures = "WaveFailures"     // more clusters of the wave have failed than it allows
	ReasonFailures     = "Failures"         // more clusters of the whole
	ReasonDeadline     = "DeadlineExceeded" // the cluster took longer than a cluster may
	ReasonAway         = "Away"             // the cluster does not answer, or is cordoned
	ReasonOtherContent = "OtherContent"     // the cluster says that it runs something else
)

// World is what Next looks at beside the rollout itself.
type World struct {
	Now  time.Time
	Seen map[string]Seen // by cluster
	// Evaluated is what was heard last of gates of the open wave, by name.
	Evaluated map[string]Evaluation
	// Budget bounds how many clusters of the tenant may be changed within an hour, by all rollouts together.
	Budget budget.Budget
}

// Seen is what is known of one cluster. Its zero value is one that answers, and of which nothing is known.
type Seen struct {
	// Away says that the cluster does not answer, or is cordoned: nothing can be changed there now.
	Away bool
	// Refused is why the change cannot be asked of the cluster; a code.
	Refused string
	// Directive is the correlation id of the facts below.
	Directive string
	// Outcome is what they say: events.ClusterSucceeded, events.ClusterFailed, or "" while there is none.
	Outcome string
	Reason  string // a code, of a failure
	Content string // digest of the bundle that runs, of a success
	Cause   string // id of the event that shows it
}

// Directive makes the id of an attempt at a cluster. It is a function of its arguments, so that whoever decides the
// same again directs the same.
type Directive func(cluster string, attempt int) string

// Next is what the rollout does now; nothing, where it waits. The order is part of the decision: what happened is taken
// in first, then the budgets decide whether anything further may begin, and only then it begins.
//
//	a directed cluster shows an outcome that its directive caused   settled
//	a cluster takes too long, and answers                           settled as failed
//	the change cannot be asked of a cluster                         settled as failed
//	a cluster is away, before or after it was directed              settled as unreachable: it catches up later
//	more failures than the wave or the whole may have               halted: the rest of this table does not hold
//	the wave is settled and has soaked                              its gates are due
//	a gate says something new                                       recorded
//	a gate fails, or does not pass in time                          halted
//	the wave is settled, has soaked, its gates pass, is let go on   passed
//	the wave before has passed                                      opened
//	a cluster of an opened wave is not directed, or is back         directed, within the bounds and windows
//	every wave has passed and nobody has to catch up                ended
func Next(s State, w World, directive Directive) ([]events.Payload, error) {
	if s.Phase == "" || s.Phase.Ended() {
		return nil, nil
	}
	s.Clusters = maps.Clone(s.Clusters)
	schedule, err := windows(s.Started)
	if err != nil {
		return nil, err
	}
	d := decision{state: s, world: w, directive: directive, schedule: schedule}
	d.settle()
	if d.state.Phase == Progressing && !d.halt() {
		d.advance()
	}
	return d.out, d.err
}

// decision collects what Next decides, and what the rollout is after it.
type decision struct {
	state     State
	world     World
	directive Directive
	schedule  window.Schedule // when clusters may be directed
	out       []events.Payload
	err       error
}

func (d *decision) append(p events.Payload) {
	if err := d.state.apply(p, d.world.Now); err != nil {
		d.err = err
		return
	}
	d.out = append(d.out, p)
}

// each calls do for every cluster of the waves that were opened, in their order.
func (d *decision) each(do func(name string, c Cluster)) {
	for i := 0; i <= d.state.Wave && i < len(d.state.Started.Waves); i++ {
		for _, name := range d.state.Started.Waves[i].Clusters {
			do(name, d.state.Clusters[name])
		}
	}
}

// settle takes in what happened to clusters. It goes on while a rollout is paused or has halted: what was directed
// goes on in the clusters, too.
func (d *decision) settle() {
	d.each(func(name string, c Cluster) {
		if p, ok := d.settled(name, c); ok {
			d.append(p)
		}
	})
}

func (d *decision) settled(name string, c Cluster) (events.RolloutClusterSettled, bool) {
	seen := d.world.Seen[name]
	out := events.RolloutClusterSettled{Cluster: name, Directive: c.Directive}
	waiting := c.Directive == "" && c.Outcome == ""
	caused := c.Directive != "" && seen.Directive == c.Directive
	late := c.Changing() && d.late(c)
	switch {
	case c.Outcome == events.ClusterSkipped || c.Outcome == events.ClusterFailed:
		return out, false // a person decides what becomes of it
	case caused && seen.Outcome == events.ClusterFailed: // also after it had succeeded, while it soaks
		out.Outcome, out.Reason, out.Cause = events.ClusterFailed, seen.Reason, seen.Cause
	case c.Outcome == events.ClusterSucceeded:
		return out, false
	case caused && seen.Outcome == events.ClusterSucceeded && seen.Content == d.state.Started.Target.Content:
		out.Outcome, out.Cause = events.ClusterSucceeded, seen.Cause
	case caused && seen.Outcome == events.ClusterSucceeded:
		out.Outcome, out.Reason, out.Cause = events.ClusterFailed, ReasonOtherContent, seen.Cause
	case seen.Refused != "" && (waiting || c.Outcome == events.ClusterUnreachable):
		out.Outcome, out.Reason, out.Directive = events.ClusterFailed, seen.Refused, ""
	case c.Outcome == events.ClusterUnreachable:
		return out, false
	case seen.Away && (waiting || late):
		out.Outcome, out.Reason = events.ClusterUnreachable, ReasonAway
	case late:
		out.Outcome, out.Reason = events.ClusterFailed, ReasonDeadline
	default:
		return out, false
	}
	return out, true
}

// halt stops the rollout where a budget is exceeded.
func (d *decision) halt() bool {
	total := 0
	waves := make([]int, len(d.state.Started.Waves))
	d.each(func(_ string, c Cluster) {
		if c.Outcome == events.ClusterFailed && !c.Forgiven {
			total++
			waves[c.Wave]++
		}
	})
	for i, failed := range waves {
		if failed > d.state.Started.Waves[i].MaxFailures {
			d.append(events.RolloutHalted{Wave: i, Reason: ReasonWaveFailures})
			return true
		}
	}
	if total > d.state.Started.MaxFailures {
		d.append(events.RolloutHalted{Wave: d.state.Wave, Reason: ReasonFailures})
		return true
	}
	return false
}

// advance passes and opens waves, directs clusters, and ends the rollout.
func (d *decision) advance() {
	for d.err == nil {
		if d.state.Wave > none && d.state.Passed == d.state.Wave && d.passes() {
			d.append(events.RolloutWavePassed{Wave: d.state.Wave})
		}
		if d.state.Phase != Progressing { // a gate halted it
			return
		}
		if d.state.Passed <= d.state.Wave || d.state.Passed == len(d.state.Started.Waves) {
			break
		}
		d.append(events.RolloutWaveOpened{Wave: d.state.Passed})
		d.settle() // of the wave that is open now: who is away
		if d.halt() {
			return
		}
	}
	d.direct()
	if d.err == nil && d.state.Phase == Progressing && d.state.Passed == len(d.state.Started.Waves) &&
		d.nobodyIsLeft() {
		d.append(events.RolloutEnded{Outcome: string(Succeeded)})
	}
}

// passes says whether the open wave has shown what it was to show.
func (d *decision) passes() bool {
	wave := d.state.Started.Waves[d.state.Wave]
	if !settledWave(d.state, d.state.Wave) {
		return false
	}
	return (d.state.Promoted || d.soaked(wave)) &&
		d.gates(events.GateBefore) && d.gates(events.GateAfter) &&
		(d.state.Promoted || wave.Promotion != events.PromotionManual)
}

// soaked says whether all clusters of a wave have been as wanted for as long as they have to be.
func (d *decision) soaked(wave events.RolloutWave) bool {
	soak := time.Duration(wave.SoakSeconds) * time.Second
	for _, name := range wave.Clusters {
		c := d.state.Clusters[name]
		if c.Outcome == events.ClusterSucceeded && d.world.Now.Sub(c.Since) < soak {
			return false
		}
	}
	return true
}

// settledWave says whether every cluster of a wave has an outcome, and no more of them are away than may be.
func settledWave(s State, wave int) bool {
	away := 0
	for _, name := range s.Started.Waves[wave].Clusters {
		switch s.Clusters[name].Outcome {
		case "":
			return false
		case events.ClusterUnreachable:
			away++
		}
	}
	return away <= s.Started.Waves[wave].MaxUnreachable
}

// direct asks the change of clusters of opened waves, within the bounds.
func (d *decision) direct() {
	if !d.mayDirect() {
		return
	}
	changing := 0
	d.each(func(_ string, c Cluster) {
		if c.Changing() {
			changing++
		}
	})
	may, _ := d.world.Budget.Left(due(d.state, d.world), d.world.Now)
	for _, name := range may {
		if changing >= d.state.Started.MaxConcurrent {
			return
		}
		changing++
		attempt := d.state.Clusters[name].Attempt + 1
		d.append(events.RolloutClusterDirected{
			Cluster: name, Attempt: attempt, Directive: d.directive(name, attempt),
		})
	}
}

// nobodyIsLeft says whether no cluster is being changed or has to catch up.
func (d *decision) nobodyIsLeft() bool {
	for _, c := range d.state.Clusters {
		if c.Outcome == "" || c.Outcome == events.ClusterUnreachable {
			return false
		}
	}
	return true
}
