package sat_test

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/services/resolver/sat"
)

// formula is one that small numbers can check: variable i is bit i-1 of a model.
type formula struct {
	vars    int
	clauses [][]sat.Lit
	groups  []group
}

type group struct {
	guard sat.Lit
	lits  []sat.Lit
}

func holds(model uint, l sat.Lit) bool {
	return (model>>(uint(l.Var())-1)&1 == 1) != l.Negative()
}

func count(model uint, lits []sat.Lit) int {
	n := 0
	for _, l := range lits {
		if holds(model, l) {
			n++
		}
	}
	return n
}

// meets says whether a model fits the formula and all of the assumptions.
func (f formula) meets(model uint, assumptions []sat.Lit) bool {
	return count(model, assumptions) == len(assumptions) &&
		!slices.ContainsFunc(f.clauses, func(c []sat.Lit) bool { return count(model, c) == 0 }) &&
		!slices.ContainsFunc(f.groups, func(g group) bool {
			return (g.guard == sat.LitNone || holds(model, g.guard)) && count(model, g.lits) > 1
		})
}

// satisfiable tries all models.
func (f formula) satisfiable(assumptions []sat.Lit) bool {
	for model := range uint(1) << f.vars {
		if f.meets(model, assumptions) {
			return true
		}
	}
	return false
}

// pairwise says the same with clauses alone.
func (f formula) pairwise() formula {
	out := formula{vars: f.vars, clauses: slices.Clone(f.clauses)}
	for _, g := range f.groups {
		for i, a := range g.lits {
			for _, b := range g.lits[:i] {
				c := []sat.Lit{a.Not(), b.Not()}
				if g.guard != sat.LitNone {
					c = append(c, g.guard.Not())
				}
				out.clauses = append(out.clauses, c)
			}
		}
	}
	return out
}

// add puts a formula into a solver that has variables enough.
func (f formula) add(s *sat.Solver) {
	for s.Vars() < f.vars {
		s.Var()
	}
	for _, c := range f.clauses {
		s.Clause(c...)
	}
	for _, g := range f.groups {
		s.AtMostOne(g.guard, g.lits...)
	}
}

// eager is a solver that counts and forgets much earlier than others, so that small formulas try these, too.
func eager(t *rapid.T) *sat.Solver {
	s := sat.New()
	s.CountAfter(rapid.IntRange(0, 4).Draw(t, "patience"), rapid.IntRange(1, 8).Draw(t, "learned kept"))
	return s
}

func modelOf(s *sat.Solver) uint {
	var model uint
	for v := range s.Vars() {
		if s.Value(sat.Var(v + 1)) {
			model |= 1 << v
		}
	}
	return model
}

func drawLit(t *rapid.T, vars int) sat.Lit {
	l := sat.Var(rapid.IntRange(1, vars).Draw(t, "variable")).Lit()
	if rapid.Bool().Draw(t, "negative") {
		return l.Not()
	}
	return l
}

func drawLits(t *rapid.T, vars, from, to int) []sat.Lit {
	out := make([]sat.Lit, rapid.IntRange(from, to).Draw(t, "literals"))
	for i := range out {
		out[i] = drawLit(t, vars)
	}
	return out
}

// drawFormula makes one that is about as often satisfiable as not.
func drawFormula(t *rapid.T, vars int) formula {
	f := formula{vars: vars}
	for range rapid.IntRange(0, 3*vars).Draw(t, "clauses") {
		f.clauses = append(f.clauses, drawLits(t, vars, 1+rapid.IntRange(0, 1).Draw(t, "shortest"), 4))
	}
	for range rapid.IntRange(0, vars/2).Draw(t, "groups") {
		g := group{lits: drawLits(t, vars, 0, 5)}
		if rapid.Bool().Draw(t, "guarded") {
			g.guard = drawLit(t, vars)
		}
		f.groups = append(f.groups, g)
	}
	return f
}
