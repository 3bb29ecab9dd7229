package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
)

// gated is a rollout of one cluster, whose wave has two gates after it and one before it.
type gated struct {
	t   *testing.T
	now time.Time
	s   rollout.State
}

func newGated(t *testing.T, change ...func(*events.RolloutStarted)) *gated {
	t.Helper()
	after := func(name string) events.RolloutGate {
		return events.RolloutGate{Name: name, When: events.GateAfter, DeadlineSeconds: 300}
	}
	started := events.RolloutStarted{
		FleetSubscription: "gauge", Number: 1, Target: events.RolloutTarget{Content: target}, MaxConcurrent: 1,
		DeadlineSeconds: 600, Waves: []events.RolloutWave{{
			Name: "canary", Clusters: []string{"a"}, SoakSeconds: 60, Promotion: events.PromotionAutomatic,
			Gates: []events.RolloutGate{after("metrics"), after("health"), {Name: "change", When: events.GateBefore}},
		}},
	}
	for _, c := range change {
		c(&started)
	}
	g := &gated{t: t, now: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)}
	g.add(started)
	return g
}

func (g *gated) add(list ...events.Payload) {
	g.t.Helper()
	for _, p := range list {
		next, err := rollout.Evolve(g.s, p, g.now)
		if err != nil {
			g.t.Fatal(err)
		}
		g.s = next
	}
}

// next plays a pass of the controller after a time; heard are the evaluations as gate=verdict of the round that is due.
func (g *gated) next(after time.Duration, heard ...string) (out string) {
	g.t.Helper()
	g.now = g.now.Add(after)
	c := g.s.Clusters["a"]
	w := rollout.World{Now: g.now, Evaluated: map[string]rollout.Evaluation{}, Seen: map[string]rollout.Seen{}}
	if c.Directive != "" {
		w.Seen["a"] = rollout.Seen{Directive: c.Directive, Outcome: events.ClusterSucceeded, Content: target}
	}
	for _, text := range heard {
		gate, verdict, _ := strings.Cut(text, "=")
		verdict, code, _ := strings.Cut(verdict, "/")
		w.Evaluated[gate] = rollout.Evaluation{ID: "e", Round: g.s.Gates.Round, Verdict: verdict, Code: code}
	}
	list, err := rollout.Next(g.s, w, func(cluster string, attempt int) string { return fmt.Sprint(cluster, attempt) })
	if err != nil {
		g.t.Fatal(err)
	}
	g.add(list...)
	var names []string
	for _, p := range list {
		name := strings.TrimSuffix(strings.TrimPrefix(string(p.EventType()), "fleet.rollout-"), ".v1")
		switch e := p.(type) {
		case events.RolloutHalted:
			name += " " + e.Reason
		case events.RolloutGateEvaluated:
			name += " " + e.Gate + " " + e.Verdict
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

func (g *gated) want(what, got, want string) {
	g.t.Helper()
	if got != want {
		g.t.Fatalf("%s: %q, want %q", what, got, want)
	}
}

func (g *gated) do(c rollout.Command) {
	g.t.Helper()
	list, err := rollout.Decide(g.s, c)
	if err != nil {
		g.t.Fatal(err)
	}
	g.add(list...)
}

// TestGates: a wave begins after the gates before it, and passes after those behind it, each in a round of its own.
func TestGates(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	g.want("the wave opens", g.next(0), "wave-opened, gates-due")
	g.want("nobody has said anything", g.next(time.Minute), "")
	g.want("the gate before", g.next(0, "change=Pass"), "gate-evaluated change Pass, cluster-directed")
	g.want("the cluster", g.next(time.Minute), "cluster-settled")
	if due := g.s.DueGates(); len(due) != 0 {
		t.Errorf("while it soaks %v are due", due)
	}
	g.want("while it soaks", g.next(59*time.Second, "metrics=Pass", "health=Pass"), "")
	g.want("it has soaked", g.next(time.Second), "gates-due")
	g.want("one passes", g.next(0, "metrics=Wait/Slow", "health=Pass"),
		"gate-evaluated metrics Wait, gate-evaluated health Pass")
	if due := g.s.DueGates(); len(due) != 1 || due[0].Name != "metrics" {
		t.Errorf("%v are due", due)
	}
	g.want("the same again", g.next(0, "metrics=Wait/Slow", "health=Fail"), "")
	g.want("the other one", g.next(time.Minute, "metrics=Pass"),
		"gate-evaluated metrics Pass, wave-passed, ended")
}

// TestGatesHalt: a gate that fails, or does not pass in time, halts the rollout. Who resumes it has all gates evaluated
// anew, and may override one for the wave.
func TestGatesHalt(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	g.next(0)
	g.next(0, "change=Pass")
	g.next(0)
	g.want("it has soaked", g.next(time.Minute), "gates-due")
	g.want("a gate fails", g.next(0, "health=Pass", "metrics=Fail"),
		"gate-evaluated metrics Fail, gate-evaluated health Pass, halted GateFailed")
	g.want("nothing goes on", g.next(0, "metrics=Pass"), "")
	g.do(rollout.Resume{})
	g.want("a new round", g.next(0), "gates-due")
	for i := range 30 {
		g.next(time.Second, fmt.Sprintf("metrics=Wait/Code%d", i))
	}
	if got := g.s.Gates.Verdicts["metrics"].Changes; got != 20 {
		t.Errorf("%d changes of one gate were recorded", got)
	}
	g.want("out of time", g.next(271*time.Second, "health=Pass"),
		"gate-evaluated health Pass, halted GateDeadlineExceeded")
	g.do(rollout.PassGate{Gate: "metrics", Reason: "salted"})
	g.do(rollout.Resume{})
	g.want("a third round", g.next(0), "gates-due")
	g.want("without the one", g.next(0, "health=Pass"), "gate-evaluated health Pass, wave-passed, ended")
}

// TestGatesEnd: what happens to a cluster of the wave ends the round, and what was said in it.
func TestGatesEnd(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	g.next(0)
	g.next(0, "change=Pass")
	g.next(0)
	g.next(time.Minute)
	g.next(0, "health=Pass")
	round := g.s.Gates.Round
	g.add(events.RolloutClusterSettled{Cluster: "a", Directive: "a1", Outcome: events.ClusterFailed},
		events.RolloutClusterRetried{Cluster: "a"})
	g.want("once more", g.next(0), "cluster-directed")
	g.next(0)
	g.want("it has soaked again", g.next(time.Minute), "gates-due")
	if g.s.Gates.Round != round+1 || len(g.s.DueGates()) != 2 {
		t.Errorf("the gates are %+v", g.s.Gates)
	}
}

// TestPassGate: only a gate of the open wave is overridden, and once.
func TestPassGate(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	for name, want := range map[string]errs.Kind{"metrics": errs.Conflict, "": errs.Conflict} {
		if _, err := rollout.Decide(g.s, rollout.PassGate{Gate: name}); !errs.Is(err, want) {
			t.Errorf("before a wave is open, %q: %v", name, err)
		}
	}
	g.next(0)
	if _, err := rollout.Decide(g.s, rollout.PassGate{Gate: "none"}); !errs.Is(err, errs.NotFound) {
		t.Errorf("a gate that the wave does not have: %v", err)
	}
	g.do(rollout.PassGate{Gate: "change"})
	if list, err := rollout.Decide(g.s, rollout.PassGate{Gate: "change"}); err != nil || len(list) != 0 {
		t.Errorf("once more: %v, %v", list, err)
	}
	g.want("without the gate before", g.next(0), "cluster-directed")
}

// TestWindows: clusters are directed in windows alone, and their deadlines do not run outside of them.
func TestWindows(t *testing.T) {
	t.Parallel()
	list := []events.Window{
		{Start: "01:00", Minutes: 5, TimeZone: "UTC"},
		{Start: "03:00", Minutes: 60, TimeZone: "UTC"},
	}
	g := newGated(t, func(s *events.RolloutStarted) { s.Windows, s.Waves[0].Gates = list, nil })
	g.want("outside", g.next(0), "wave-opened")
	if next, ok := rollout.NextWindow(list, g.now); !ok || !next.Equal(g.now.Add(time.Hour)) {
		t.Errorf("the next window opens at %s, %v", next, ok)
	}
	g.want("inside", g.next(time.Hour), "cluster-directed")
	late := func(at time.Time) bool {
		list, err := rollout.Next(g.s, rollout.World{Now: at}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list, func(p events.Payload) bool {
			e, settled := p.(events.RolloutClusterSettled)
			return settled && e.Reason == rollout.ReasonDeadline
		})
	}
	for minutes, want := range map[int]bool{11: false, 121: false, 124: false, 125: true, 300: true} { // 5 in each
		if got := late(g.now.Add(time.Duration(minutes) * time.Minute)); got != want {
			t.Errorf("after %d minutes it is late: %v", minutes, got)
		}
	}
}
