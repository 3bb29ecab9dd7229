package resolvetest_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/explain"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/graph"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/search"
	"github.com/chandler-fleet/chandler/services/resolver/sat"
)

// TestExplanationsAreMinimal: the statements of a conflict contradict each other by themselves, read as what they say
// and nothing else; and without any one of them they do not.
func TestExplanationsAreMinimal(t *testing.T) {
	t.Parallel()
	const seeds, enough = 2000, 200
	conflicts, knots := 0, 0
	for seed := range seeds {
		w := rapid.Custom(func(t *rapid.T) *scenario {
			return drawScenario(t, taste{shared: seed%2 == 0})
		}).Example(seed)
		// Installed operators that clash stay all the same. That is told once, and no part of other contradictions.
		quarrel := slices.Max(append(slices.Collect(maps.Values(bearers(w.operators(nil)))), 0)) > 1
		for _, e := range contradictions(w) {
			if !whole(e) || e.Coarse || quarrel {
				continue
			}
			conflicts++
			if len(e.Subscriptions)+len(e.CSVs) > 1 {
				knots++
			}
			checkMinimal(t, w, e)
		}
	}
	t.Logf("%d conflicts, %d of them of several subscriptions or CSVs", conflicts, knots)
	if conflicts < enough || knots < enough {
		t.Fatalf("want %d of each: the scenarios are too peaceful", enough)
	}
}

// contradictions are the explanations of what cannot be had together.
func contradictions(w *scenario) []resolution.Explanation {
	in := w.in.Canonical()
	g := graph.Build(&in, graph.NewReader(in.View, w.visible()))
	var out []resolution.Explanation
	for _, p := range g.Partitions(in.OperatorGroups[0].Shared) {
		for _, f := range search.Solve(p, search.MaxConflicts).Failures {
			if len(f.Reasons) > 0 {
				e, _ := explain.Failure(p, f)
				out = append(out, e)
			}
		}
	}
	return out
}

// whole says whether an explanation was short enough to be told whole.
func whole(e resolution.Explanation) bool {
	const longest = 8 // choices told
	return e.More == 0 && !slices.ContainsFunc(e.Statements,
		func(s resolution.Statement) bool { return len(s.Choices) >= longest })
}

func checkMinimal(t *testing.T, w *scenario, e resolution.Explanation) {
	t.Helper()
	if possible(e.Statements) {
		t.Fatalf("the statements do not contradict each other: %s\n%s", texts([]*resolution.Explanation{&e}), w)
	}
	for i, s := range e.Statements {
		if !possible(slices.Delete(slices.Clone(e.Statements), i, i+1)) {
			t.Fatalf("the others contradict each other without %q: %s\n%s", s.Text,
				texts([]*resolution.Explanation{&e}), w)
		}
	}
}

// reading makes a formula of statements. A variable is a bundle in a channel, something installed, or a subscription.
type reading struct {
	s    *sat.Solver
	lits map[string]sat.Lit
	ids  []string
}

func possible(statements []resolution.Statement) bool {
	r := reading{s: sat.New(), lits: map[string]sat.Lit{}}
	for _, s := range statements {
		for _, id := range append(slices.Clone(s.Choices), s.Bundle, s.Other) {
			r.lit(id)
		}
	}
	for _, s := range statements {
		r.say(s)
	}
	return r.s.Solve() == sat.Sat
}

func (r *reading) lit(id string) sat.Lit {
	l, ok := r.lits[id]
	if !ok {
		l = r.s.Var().Lit()
		r.lits[id] = l
		r.ids = append(r.ids, id)
	}
	return l
}

func (r *reading) all(ids []string) []sat.Lit {
	var out []sat.Lit
	for _, id := range ids {
		if strings.Contains(id, "/") || strings.HasPrefix(id, "installed ") {
			// others are versions of what does not fit
			out = append(out, r.lit(id))
		}
	}
	return out
}

// say adds what one statement says.
func (r *reading) say(s resolution.Statement) {
	switch s.Kind {
	case resolution.SubscriptionExists:
		r.s.Clause(r.lit("subscription " + s.Subscription))
	case resolution.SubscriptionNeeds:
		if len(s.Choices) == 0 { // what it follows stays
			r.s.Clause(r.lit(s.Bundle))
			return
		}
		r.s.Clause(append(r.all(s.Choices), r.lit("subscription "+s.Subscription).Not())...)
	case resolution.UnmanagedCSV:
		r.s.Clause(r.lit("installed " + s.Bundle))
	case resolution.UnmetRequirement:
		for _, id := range r.channels(s.Bundle) {
			r.s.Clause(append(r.all(s.Choices), r.lit(id).Not())...)
		}
	case resolution.BundleDeprecated, resolution.DuplicateAPI, resolution.PolicyForbids:
		for _, id := range r.channels(s.Bundle) {
			r.s.Clause(r.lit(id).Not())
		}
	case resolution.PackageUnique, resolution.APIUnique:
		r.s.AtMostOne(sat.LitNone, r.all(s.Choices)...)
	case resolution.ReplacesConflict:
		r.s.Clause(r.lit(s.Bundle).Not(), r.lit(s.Other).Not())
	default:
		panic(fmt.Sprintf("a statement %s in a contradiction", s.Kind))
	}
}

// channels are the ids of one bundle of one catalog, whatever the channel: what it asks for it asks for in all.
func (r *reading) channels(id string) []string {
	parts := strings.Split(id, "/")
	if len(parts) < 3 {
		return []string{id}
	}
	without := func(parts []string) string {
		n := len(parts)
		return strings.Join(append(slices.Clone(parts[:n-2]), parts[n-1]), "/")
	}
	var out []string
	for _, other := range r.ids {
		if list := strings.Split(other, "/"); len(list) == len(parts) && without(list) == without(parts) {
			out = append(out, other)
		}
	}
	return out
}
