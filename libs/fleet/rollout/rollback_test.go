package rollout_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
)

// past is a rollout of gauge that ended: its clusters are "name=Outcome", without an outcome for one that was asked and
// has none, and "name-" for one that was not asked.
func past(number int, version string, phase rollout.Phase, clusters ...string) rollout.State {
	s := rollout.State{
		Phase: phase, Clusters: map[string]rollout.Cluster{}, Started: events.RolloutStarted{
			FleetSubscription: "gauge", Number: number, Target: events.RolloutTarget{
				Package: "gauge", CSV: "gauge.v" + version, Version: version, Content: "sha256:" + version,
			},
			Intent: events.RolloutIntent{Namespace: "ports"},
		},
	}
	for _, c := range clusters {
		name, outcome, _ := strings.Cut(c, "=")
		if name, is := strings.CutSuffix(name, "-"); is {
			s.Clusters[name] = rollout.Cluster{}
			continue
		}
		s.Clusters[name] = rollout.Cluster{Attempt: 1, Outcome: outcome}
	}
	return s
}

// with changes a rollout.
func with(s rollout.State, change func(*events.RolloutStarted)) rollout.State {
	change(&s.Started)
	return s
}

// TestBack: each row of the table above Back (issue 14, section 2).
func TestBack(t *testing.T) {
	t.Parallel()
	one := past(1, "1.0.0", rollout.Succeeded, "a=Succeeded", "b=Succeeded", "c=Succeeded")
	config := func(e *events.RolloutStarted) { e.Intent.Subscription.Config = "c1:1" }
	manual := func(e *events.RolloutStarted) { e.Intent.Subscription.Approval = "Manual" }
	for name, c := range map[string]struct {
		newest rollout.State
		before []rollout.State
		to     int
		want   string // number: clusters / left alone
		err    string
	}{
		"those that were asked": {
			newest: past(2, "2.0.0", rollout.Halted, "a=Failed", "b", "c-"), before: []rollout.State{one},
			want: "1: a b /",
		},
		"one that never had anything": {
			newest: past(2, "2.0.0", rollout.Succeeded, "a=Succeeded", "new=Succeeded"), before: []rollout.State{one},
			want: "1: a / new",
		},
		"one on which the one before failed, too": {
			newest: past(2, "2.0.0", rollout.Aborted, "a=Succeeded", "b=Succeeded"),
			before: []rollout.State{past(1, "1.0.0", rollout.Succeeded, "a=Succeeded", "b=Failed")}, want: "1: a / b",
		},
		"it began since a cluster joined": {
			newest: past(3, "2.0.0", rollout.Succeeded, "d=Succeeded"),
			before: []rollout.State{past(2, "2.0.0", rollout.Succeeded, "a=Succeeded", "b=Succeeded"), one},
			want:   "1: a b / d",
		},
		"who approves is no other wish": {
			newest: with(past(3, "2.0.0", rollout.Succeeded, "a=Succeeded"), manual),
			before: []rollout.State{past(2, "2.0.0", rollout.Succeeded, "b=Succeeded"), one}, want: "1: a b /",
		},
		"its configuration alone": {
			newest: with(past(2, "1.0.0", rollout.Halted, "a=Failed"), config), before: []rollout.State{one},
			want: "1: a /",
		},
		"not to what stopped on its first cluster": {
			newest: past(3, "3.0.0", rollout.Halted, "a=Failed"),
			before: []rollout.State{past(2, "2.0.0", rollout.Superseded, "a=Succeeded"), one}, want: "1: a /",
		},
		"to what ended otherwise where there is nothing else": {
			newest: past(3, "3.0.0", rollout.Halted, "a=Failed", "d=Failed"),
			before: []rollout.State{past(2, "2.0.0", rollout.Superseded, "a=Succeeded")}, want: "2: a / d",
		},
		"not to what was taken back": {
			newest: past(4, "3.0.0", rollout.Halted, "a=Failed"), before: []rollout.State{
				past(3, "1.0.0", rollout.Superseded, "a"), past(2, "2.0.0", rollout.RolledBack, "a=Succeeded"), one,
			}, want: "1: a /",
		},
		"to the one that is named": {
			newest: past(3, "3.0.0", rollout.Halted, "a=Failed"),
			before: []rollout.State{past(2, "2.0.0", rollout.RolledBack, "a=Succeeded"), one}, to: 2, want: "2: a /",
		},
		"nobody was asked": {
			newest: past(2, "2.0.0", rollout.Paused, "a-"), before: []rollout.State{one}, err: "abort it",
		},
		"the first one": {newest: past(1, "2.0.0", rollout.Halted, "a=Failed"), err: "nothing to go back to"},
		"nothing but later ones": {
			newest: past(2, "2.0.0", rollout.Halted, "a=Failed"),
			before: []rollout.State{past(1, "3.0.0", rollout.Succeeded, "a=Succeeded")}, err: "nothing to go back to",
		},
		"another package": {
			newest: past(2, "2.0.0", rollout.Halted, "a=Failed"), before: []rollout.State{
				with(one, func(e *events.RolloutStarted) { e.Target.Package = "buoy" }),
			}, err: "nothing to go back to",
		},
		"named, later": {
			newest: past(2, "2.0.0", rollout.Halted, "a=Failed"),
			before: []rollout.State{past(1, "3.0.0", rollout.Succeeded, "a=Succeeded")}, to: 1, err: "a later version",
		},
		"named, the same": {
			newest: past(2, "1.0.0", rollout.Halted, "a=Failed"), before: []rollout.State{one}, to: 1, err: "the same",
		},
		"named, never there": {
			newest: past(2, "2.0.0", rollout.Halted, "d=Failed"), before: []rollout.State{one}, to: 1,
			err: "gauge.v1.0.0 has not succeeded before on any",
		},
		"named, unknown": {
			newest: past(2, "2.0.0", rollout.Halted, "a=Failed"), before: []rollout.State{one}, to: 7,
			err: "no rollout 7",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			way, err := rollout.Back(c.newest, c.before, c.to)
			if c.err != "" || err != nil {
				if err == nil || !strings.Contains(err.Error(), c.err) || c.err == "" {
					t.Errorf("refused: %v; want %q", err, c.err)
				}
				return
			}
			var left []string
			for _, l := range way.LeftAlone {
				if l.Reason != events.LeftNothingBefore {
					t.Errorf("%s is left alone because of %s", l.Cluster, l.Reason)
				}
				left = append(left, l.Cluster)
			}
			got := fmt.Sprintf("%d: %s / %s", way.To.Number, strings.Join(way.Clusters, " "), strings.Join(left, " "))
			if strings.TrimSpace(got) != c.want {
				t.Errorf("it leads to %q, want %q", got, c.want)
			}
		})
	}
}

// TestRollback: a rollout is taken back whether it goes on or has ended, once, and does nothing more.
func TestRollback(t *testing.T) {
	t.Parallel()
	before := []rollout.State{past(1, "1.0.0", rollout.Succeeded, "a=Succeeded")}
	asks := []events.Payload{events.RolloutRollbackRequested{To: 1, Reason: "c1:r"}}
	for phase, c := range map[rollout.Phase]struct {
		to   int
		want []events.Payload
		err  string
	}{
		rollout.Progressing: {0, asks, ""},
		rollout.Paused:      {1, asks, ""},
		rollout.Halted:      {0, asks, ""},
		rollout.Succeeded:   {0, asks, ""},
		rollout.Aborted:     {0, asks, ""},
		rollout.Superseded:  {0, nil, "another intent takes its place"},
		rollout.RolledBack:  {0, nil, ""},
		"":                  {0, nil, "no such rollout"},
	} {
		s := past(2, "2.0.0", phase, "a=Failed")
		if phase == rollout.RolledBack {
			s.RolledBackTo = 1
		}
		got, err := rollout.Decide(s, rollout.Rollback{Before: before, To: c.to, Reason: "c1:r"})
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: refused: %v, want %q", phase, err, c.err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", phase, diff)
		}
		if len(got) == 0 {
			continue
		}
		after, err := rollout.Evolve(s, got[0], noon)
		if err != nil || after.Phase != rollout.RolledBack || after.RolledBackTo != 1 || !after.Phase.Ended() {
			t.Errorf("%s: it is %s to %d, %v", phase, after.Phase, after.RolledBackTo, err)
		}
		if _, err := rollout.Decide(after, rollout.Resume{}); err == nil {
			t.Errorf("%s: it is resumed", phase)
		}
		if _, err := rollout.Decide(after, rollout.Rollback{To: 9}); err == nil {
			t.Errorf("%s: it is taken back to another one", phase)
		}
	}
}

// TestRollbackOfNobody: a rollout without clusters has nothing to wait for.
func TestRollbackOfNobody(t *testing.T) {
	t.Parallel()
	s := fold(t, events.RolloutStarted{FleetSubscription: "gauge", Number: 3, Waves: []events.RolloutWave{}})
	got, err := rollout.Next(s, rollout.World{Now: noon}, nil)
	if diff := cmp.Diff([]events.Payload{events.RolloutEnded{Outcome: "Succeeded"}}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
