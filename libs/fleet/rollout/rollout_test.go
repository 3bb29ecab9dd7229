package rollout_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/budget"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// story is a rollout of canary (lab), then all (a, b, c), two at a time.
func story() events.RolloutStarted {
	return events.RolloutStarted{
		FleetSubscription: "gauge", Number: 1, Change: "Version", Target: events.RolloutTarget{
			CSV: "gauge.v2", Content: target,
		},
		MaxConcurrent: 2, MaxFailures: 1, DeadlineSeconds: 600,
		Waves: []events.RolloutWave{
			{Name: "canary", Clusters: []string{"lab"}, SoakSeconds: 60, Promotion: events.PromotionAutomatic},
			{
				Name: "all", Clusters: []string{"a", "b", "c"}, Promotion: events.PromotionAutomatic,
				MaxFailures: 1, MaxUnreachable: 1,
			},
		},
	}
}

func fold(t *testing.T, list ...events.Payload) rollout.State {
	t.Helper()
	var s rollout.State
	for _, p := range list {
		next, err := rollout.Evolve(s, p, noon)
		if err != nil {
			t.Fatal(err)
		}
		s = next
	}
	return s
}

func directed(cluster string) events.RolloutClusterDirected {
	return events.RolloutClusterDirected{Cluster: cluster, Attempt: 1, Directive: cluster + "/1"}
}

func settled(cluster, outcome, reason, cause string) events.RolloutClusterSettled {
	return events.RolloutClusterSettled{
		Cluster: cluster, Directive: cluster + "/1", Outcome: outcome, Reason: reason, Cause: cause,
	}
}

// succeeded is a cluster that says so because of an attempt.
func succeeded(directive string) rollout.Seen {
	return rollout.Seen{Directive: directive, Outcome: events.ClusterSucceeded, Content: target, Cause: "e1"}
}

var canaryDone = []events.Payload{
	story(),
	events.RolloutWaveOpened{},
	directed("lab"), settled("lab", events.ClusterSucceeded, "", "e1"),
	events.RolloutWavePassed{},
	events.RolloutWaveOpened{Wave: 1},
	directed("a"), directed("b"),
}

// TestBudget: no cluster is directed beyond the budget of mass changes, whatever changed the others; one that is
// counted already is; who waits is told, however many are changed at a time.
func TestBudget(t *testing.T) {
	t.Parallel()
	wide := story()
	wide.Waves = []events.RolloutWave{{Name: "all", Clusters: []string{"a", "b", "c", "d"}, MaxFailures: 4}}
	s := fold(t, wide, events.RolloutWaveOpened{})
	for name, c := range map[string]struct {
		limit      int
		changes    []string
		made, wait string
	}{
		"no bound":          {0, []string{"x", "y"}, "a b", ""},
		"some are left":     {3, []string{"x", "y"}, "a", "b c d"},
		"none is left":      {2, []string{"x", "y"}, "", "a b c d"},
		"counted already":   {2, []string{"x", "d"}, "d", "a b c"},
		"fewer at a time":   {3, nil, "a b", "d"},
		"enough for all":    {4, nil, "a b", ""},
		"lowered meanwhile": {1, []string{"x", "y", "c"}, "c", "a b d"},
	} {
		w := rollout.World{Now: noon, Budget: budget.Budget{Limit: c.limit, Changes: map[string]time.Time{}}}
		for _, x := range c.changes {
			w.Budget.Changes[x] = noon
		}
		out, err := rollout.Next(s, w, func(cluster string, _ int) string { return cluster + "/1" })
		if err != nil {
			t.Fatal(err)
		}
		var made []string
		for _, p := range out {
			made = append(made, p.(events.RolloutClusterDirected).Cluster)
		}
		wait, err := rollout.HeldBack(s, w, out)
		if err != nil || strings.Join(made, " ") != c.made || strings.Join(wait, " ") != c.wait {
			t.Errorf("%s: directed %v, held back %v, %v; want %q, %q", name, made, wait, err, c.made, c.wait)
		}
	}
}

// TestNext: each row of the table above Next.
func TestNext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		given []events.Payload
		seen  map[string]rollout.Seen
		after time.Duration
		want  []events.Payload
	}{
		"begins": {canaryDone[:1], nil, 0, []events.Payload{events.RolloutWaveOpened{}, directed("lab")}},
		"was well before": {
			canaryDone[:3],
			map[string]rollout.Seen{"lab": succeeded("before/lab")},
			0, nil,
		},
		"soaks": {
			canaryDone[:3],
			map[string]rollout.Seen{"lab": succeeded("lab/1")},
			0,
			[]events.Payload{settled("lab", events.ClusterSucceeded, "", "e1")},
		},
		"has soaked": {canaryDone[:4], nil, time.Minute, canaryDone[4:8]},
		"fails while it soaks": {
			canaryDone[:4],
			map[string]rollout.Seen{
				"lab": {Directive: "lab/1", Outcome: events.ClusterFailed, Reason: "ComponentUnhealthy", Cause: "e2"},
			},
			time.Minute,
			[]events.Payload{
				settled("lab", events.ClusterFailed, "ComponentUnhealthy", "e2"), events.RolloutHalted{
					Reason: rollout.ReasonWaveFailures,
				},
			},
		},
		"runs something else": {
			canaryDone[:3],
			map[string]rollout.Seen{
				"lab": {Directive: "lab/1", Outcome: events.ClusterSucceeded, Content: "sha256:moved", Cause: "e2"},
			},
			0,
			[]events.Payload{
				settled("lab", events.ClusterFailed, rollout.ReasonOtherContent, "e2"), events.RolloutHalted{
					Reason: rollout.ReasonWaveFailures,
				},
			},
		},
		"takes too long": {
			canaryDone[:3], nil, 10 * time.Minute,
			[]events.Payload{
				settled("lab", events.ClusterFailed, rollout.ReasonDeadline, ""), events.RolloutHalted{
					Reason: rollout.ReasonWaveFailures,
				},
			},
		},
		"away before it was directed, which this wave allows": {
			canaryDone[:6],
			map[string]rollout.Seen{"b": {Away: true}},
			0,
			[]events.Payload{
				events.RolloutClusterSettled{
					Cluster: "b", Outcome: events.ClusterUnreachable, Reason: rollout.ReasonAway,
				},
				directed("a"), directed("c"),
			},
		},
		"is back": {
			append(canaryDone[:6:6], directed("a"), settled("a", events.ClusterUnreachable, rollout.ReasonAway, "")),
			nil, 0,
			[]events.Payload{events.RolloutClusterDirected{Cluster: "a", Attempt: 2, Directive: "a/2"}, directed("b")},
		},
		"away for longer than a cluster may take": {
			canaryDone,
			map[string]rollout.Seen{"a": {Away: true}},
			10 * time.Minute,
			[]events.Payload{
				settled("a", events.ClusterUnreachable, rollout.ReasonAway, ""),
				settled("b", events.ClusterFailed, rollout.ReasonDeadline, ""), directed("c"),
			},
		},
		"two at a time": {
			canaryDone,
			map[string]rollout.Seen{"a": succeeded("a/1")},
			0,
			[]events.Payload{settled("a", events.ClusterSucceeded, "", "e1"), directed("c")},
		},
		"paused takes in what happened, and begins nothing": {
			append(canaryDone[:8:8], events.RolloutPaused{}),
			map[string]rollout.Seen{"a": succeeded("a/1")},
			0,
			[]events.Payload{settled("a", events.ClusterSucceeded, "", "e1")},
		},
		"ends": {
			append(canaryDone[:8:8], directed("c"), settled("a", events.ClusterSucceeded, "", "e1"),
				settled("b", events.ClusterFailed, "x", "e1")),
			map[string]rollout.Seen{"c": succeeded("c/1")},
			0,
			[]events.Payload{
				settled("c", events.ClusterSucceeded, "", "e1"),
				events.RolloutWavePassed{Wave: 1},
				events.RolloutEnded{Outcome: "Succeeded"},
			},
		},
		"waits for who is away": {
			append(canaryDone[:8:8], directed("c"), settled("a", events.ClusterSucceeded, "", "e1"),
				settled("b", events.ClusterSucceeded, "", "e1"), settled("c", events.ClusterUnreachable, "Away", "")),
			map[string]rollout.Seen{"c": {Away: true}},
			0,
			[]events.Payload{events.RolloutWavePassed{Wave: 1}},
		},
		"has ended": {append(canaryDone[:8:8], events.RolloutAborted{}), nil, time.Hour, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := rollout.Next(fold(t, c.given...), rollout.World{Now: noon.Add(c.after), Seen: c.seen},
				func(cluster string, attempt int) string { return fmt.Sprintf("%s/%d", cluster, attempt) })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("next (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDecide: what people may ask of a rollout, and what is refused with which words.
func TestDecide(t *testing.T) {
	t.Parallel()
	running := canaryDone
	halted := []events.Payload{
		story(),
		events.RolloutWaveOpened{},
		directed("lab"), settled("lab", events.ClusterFailed, "x", "e"),
		events.RolloutHalted{Reason: rollout.ReasonWaveFailures},
	}
	for name, c := range map[string]struct {
		given   []events.Payload
		command rollout.Command
		want    []events.Payload
		err     string
	}{
		"pause":                   {running, rollout.Pause{}, []events.Payload{events.RolloutPaused{}}, ""},
		"pause twice":             {append(running[:8:8], events.RolloutPaused{}), rollout.Pause{}, nil, ""},
		"pause one halted":        {halted, rollout.Pause{}, nil, "has halted already"},
		"resume":                  {halted, rollout.Resume{}, []events.Payload{events.RolloutResumed{}}, ""},
		"resume one that goes on": {running, rollout.Resume{}, nil, ""},
		"promote":                 {canaryDone[:4], rollout.Promote{}, []events.Payload{events.RolloutPromoted{}}, ""},
		"promote too soon":        {running, rollout.Promote{}, nil, "not all of its clusters have settled"},
		"promote one halted":      {halted, rollout.Promote{}, nil, "is Halted: resume it first"},
		"promote nothing":         {canaryDone[:1], rollout.Promote{}, nil, "no wave that could be promoted"},
		"skip": {
			running,
			rollout.Skip{Cluster: "c", Reason: "sha256:r"},
			[]events.Payload{events.RolloutClusterSkipped{Cluster: "c", Reason: "sha256:r"}},
			"",
		},
		"skip one that is done": {running, rollout.Skip{Cluster: "lab"}, nil, "has changed cluster"},
		"skip a stranger":       {running, rollout.Skip{Cluster: "x"}, nil, `has no cluster "x"`},
		"retry": {
			halted,
			rollout.Retry{Cluster: "lab"},
			[]events.Payload{events.RolloutClusterRetried{Cluster: "lab"}},
			"",
		},
		"retry one that goes on": {running, rollout.Retry{Cluster: "a"}, nil, "nothing to try again"},
		"abort":                  {running, rollout.Abort{}, []events.Payload{events.RolloutAborted{}}, ""},
		"after the end": {
			append(running[:8:8], events.RolloutAborted{}), rollout.Pause{}, nil, "has ended (Aborted)",
		},
		"none": {nil, rollout.Pause{}, nil, "no such rollout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := rollout.Decide(fold(t, c.given...), c.command)
			if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) || c.err == "" && err != nil {
				t.Fatalf("refused: %v; want %q", err, c.err)
			}
			if err != nil && !errs.Is(err, errs.Conflict) && !errs.Is(err, errs.NotFound) {
				t.Errorf("%v is neither a conflict nor not found", err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("decided (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFacts: only what the directive caused counts, and only for the target (P22).
func TestFacts(t *testing.T) {
	t.Parallel()
	to := story().Target
	phase := func(csv, phase, content string) events.CSVPhaseChanged {
		return events.CSVPhaseChanged{Name: csv, Phase: phase, Reason: "r", Content: content}
	}
	for name, c := range map[string]struct {
		correlation string
		payload     events.Payload
		want        rollout.Seen
	}{
		"of somebody else": {"before/a", phase("gauge.v2", "Succeeded", target), rollout.Seen{}},
		"of nobody":        {"", phase("gauge.v2", "Succeeded", target), rollout.Seen{}},
		"the target runs": {
			"a/1", phase("gauge.v2", "Succeeded", target),
			rollout.Seen{Outcome: "Succeeded", Content: target, Cause: "e"},
		},
		"a step before it": {"a/1", phase("gauge.v1", "Succeeded", "sha256:v1"), rollout.Seen{}},
		"on its way":       {"a/1", phase("gauge.v2", "Installing", target), rollout.Seen{}},
		"fails": {
			"a/1", phase("gauge.v2", "Failed", target), rollout.Seen{Outcome: "Failed", Reason: "r", Cause: "e"},
		},
		"a plan fails": {
			"a/1",
			events.InstallPlanFailed{Reason: "Forbidden"},
			rollout.Seen{Outcome: "Failed", Reason: "Forbidden", Cause: "e"},
		},
		"a plan is rejected": {
			"a/1", events.InstallPlanRejected{}, rollout.Seen{
				Outcome: "Failed", Reason: rollout.ReasonRejected, Cause: "e",
			},
		},
		"cannot be resolved": {
			"a/1",
			events.ResolutionFailed{Reason: "ConstraintsNotSatisfiable"},
			rollout.Seen{Outcome: "Failed", Reason: "ConstraintsNotSatisfiable", Cause: "e"},
		},
		"was there before, and runs": {
			"a/1",
			events.ResolutionSucceeded{Outcome: "AtLatestKnown", CSV: "gauge.v2", Content: target},
			rollout.Seen{Outcome: "Succeeded", Content: target, Cause: "e"},
		},
		"is there, and does not run": {
			"a/1", events.ResolutionSucceeded{Outcome: "AtLatestKnown", CSV: "gauge.v2"}, rollout.Seen{},
		},
		"cannot be resolved now": {"a/1", events.ResolutionFailed{Reason: "ErrorPreventedResolution"}, rollout.Seen{}},
		"the one before goes":    {"a/1", events.CSVRemoved{Reason: "Replaced"}, rollout.Seen{}},
		"goes": {
			"a/1",
			events.CSVRemoved{Reason: "Deleted"},
			rollout.Seen{Outcome: "Failed", Reason: rollout.ReasonRemoved, Cause: "e"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := rollout.Seen{Directive: "a/1"}.With(
				to, rollout.Fact{ID: "e", Correlation: c.correlation, Payload: c.payload},
			)
			c.want.Directive = "a/1"
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("seen (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFailureStands: an operator that failed is there as well; that the resolver has nothing to do about it is no
// success, in whichever order both come.
func TestFailureStands(t *testing.T) {
	t.Parallel()
	to := story().Target
	seen := rollout.Seen{Directive: "a/1"}
	for _, p := range []events.Payload{
		events.ResolutionSucceeded{Outcome: "AtLatestKnown", CSV: to.CSV},
		events.InstallPlanFailed{Reason: "Invalid"},
		events.ResolutionSucceeded{Outcome: "AtLatestKnown", CSV: to.CSV},
		events.ResolutionSucceeded{Outcome: "AtLatestKnown", CSV: to.CSV, Content: target},
	} {
		seen = seen.With(to, rollout.Fact{ID: "e", Correlation: "a/1", Payload: p})
	}
	if seen.Outcome != events.ClusterFailed || seen.Reason != "Invalid" {
		t.Errorf("seen is %+v", seen)
	}
	seen = seen.With(to, rollout.Fact{ID: "e", Correlation: "a/1", Payload: events.CSVPhaseChanged{
		Name: to.CSV, Phase: "Succeeded", Content: target,
	}})
	if seen.Outcome != events.ClusterSucceeded {
		t.Errorf("it runs after all: %+v", seen)
	}
}

// TestEvolveRefuses: a stream that cannot be is an error, and the state stays as it was.
func TestEvolveRefuses(t *testing.T) {
	t.Parallel()
	before := fold(t, canaryDone...)
	for name, p := range map[string]events.Payload{
		"another start":      story(),
		"a cluster of none":  directed("x"),
		"of another kind":    events.ClusterRemoved{},
		"no cluster at all":  events.RolloutClusterSettled{},
		"skips a stranger":   events.RolloutClusterSkipped{Cluster: "x"},
		"retries a stranger": events.RolloutClusterRetried{Cluster: "x"},
	} {
		after, err := rollout.Evolve(before, p, noon)
		if err == nil {
			t.Errorf("%s was taken", name)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s changed the state:\n%s", name, diff)
		}
	}
	if _, err := rollout.Evolve(rollout.State{}, events.RolloutPaused{}, noon); err == nil {
		t.Error("a pause before the start was taken")
	}
}
