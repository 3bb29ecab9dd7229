package search

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/services/resolver/internal/fixture"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/graph"
	"github.com/chandler-fleet/chandler/services/resolver/sat"
)

func partitions(in resolution.Input) []*graph.Partition {
	in = in.Canonical()
	return graph.Build(&in, graph.NewReader(in.View, in.View.Catalogs())).Partitions(false)
}

// draw is a random namespace.
func draw(t *rapid.T) []*graph.Partition {
	return partitions(fixture.Draw(func(low, high int) int {
		return rapid.IntRange(low, high).Draw(
			t, "number")
	}).Input)
}

// ids name nodes.
func ids(p *graph.Partition, nodes []graph.NodeID) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, p.ID(n))
	}
	return out
}

// TestSteppingGivesTheSame: deciding option by option gives what the guided search gives.
func TestSteppingGivesTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		for _, part := range draw(t) {
			p := newProblem(part)
			guided, status := p.choose(guidedConflicts)
			if status != sat.Sat {
				continue
			}
			stepwise := newChooser(p, newRules(p, false).s)
			if got := stepwise.stepwise(); got != sat.Sat {
				t.Fatalf("option by option it is %s", got)
			}
			if diff := cmp.Diff(ids(part, guided.taken), ids(part, stepwise.taken)); diff != "" {
				t.Fatalf("(-guided +stepwise):\n%s", diff)
			}
		}
	})
}

// TestContradictionsAreMinimal: the reasons of a failure contradict each other, and without any one of them the
// others do not (R-RES-43).
func TestContradictionsAreMinimal(t *testing.T) {
	t.Parallel()
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		for _, part := range draw(t) {
			for _, f := range Solve(part, MaxConflicts).Failures {
				if len(f.Reasons) == 0 {
					continue
				}
				found++
				if satisfiable(part, f.States, f.Reasons) {
					t.Fatalf("no contradiction: %v", f.Reasons)
				}
				for i := range f.Reasons {
					if !satisfiable(part, f.States, slices.Delete(slices.Clone(f.Reasons), i, i+1)) {
						t.Fatalf("reason %v can be left out: %v", f.Reasons[i], f.Reasons)
					}
				}
			}
		}
	})
	if found == 0 {
		t.Error("no case had a contradiction")
	}
}

// satisfiable says whether reasons can hold together. It is worked out afresh, from nothing but the reasons.
func satisfiable(part *graph.Partition, states []State, reasons []Reason) bool {
	p := newProblem(part)
	p.states = states
	r := newRules(p, true)
	var assumed []sat.Lit
	for _, why := range reasons {
		assumed = append(assumed, r.guards[why])
	}
	return r.s.Solve(assumed...) == sat.Sat
}

// TestWhoFails: of a conflict the subscriptions fail and what is installed stays; what has no candidate fails alone.
func TestWhoFails(t *testing.T) {
	t.Parallel()
	one := func(name string, words ...string) *fixture.Builder {
		return fixture.Chain(name, "1.0.0").Bundle("1.0.0", words...)
	}
	view := fixture.New().Add("fleet", 0, one("a", "gives:X").P, one("b", "gives:X").P, one("c", "api:Y").P)
	sub := func(name string) resolution.Subscription { return fixture.Sub(name, name, "stable") }
	for name, c := range map[string]struct {
		in   resolution.Input
		want map[string]State
	}{
		"nothing in the way": {fixture.Input(view, []resolution.Subscription{sub("a")}), map[string]State{"a": Wanted}},
		"two providers of one API": {
			fixture.Input(view, []resolution.Subscription{sub("a"), sub("b")}),
			map[string]State{"a": Absent, "b": Absent},
		},
		"a provider beside an installed one": {
			fixture.Input(view, []resolution.Subscription{sub("a")}, fixture.Installed("b", "1.0.0", "", "gives:X")),
			map[string]State{"a": Absent, "": Staying},
		},
		"no such package": {
			fixture.Input(view, []resolution.Subscription{sub("nowhere")}),
			map[string]State{"nowhere": Absent},
		},
		"a requirement nobody meets": {
			fixture.Input(view, []resolution.Subscription{sub("c")}),
			map[string]State{"c": Absent},
		},
		"what is installed lacks it": {
			fixture.Input(view, nil, fixture.Installed("d", "1.0.0", "", "api:Y")), map[string]State{"": Held},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := map[string]State{}
			for _, part := range partitions(c.in) {
				for i, s := range Solve(part, MaxConflicts).States {
					who := ""
					if part.Roots[i].Sub != nil {
						who = part.Roots[i].Sub.Name
					}
					got[who] = s
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
