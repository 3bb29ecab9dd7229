package sat_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/services/resolver/sat"
)

// problem is what a resolver makes of a namespace: things to take, each of which asks for others.
type problem struct {
	roots  [][]int   // options of each root choice
	asks   [][][]int // by thing: the options of each of its choices
	groups [][]int   // things of which one at most may be taken
}

func (w problem) excluded(taken []int, next int) bool {
	return slices.ContainsFunc(w.groups, func(g []int) bool {
		return slices.Contains(g, next) && slices.ContainsFunc(taken, func(i int) bool { return slices.Contains(g, i) })
	})
}

// open is the first choice that nothing taken meets; nil where all are met.
func (w problem) open(taken []int) []int {
	queue := slices.Clone(w.roots)
	for _, i := range taken {
		queue = append(queue, w.asks[i]...)
	}
	for _, options := range queue {
		if !slices.ContainsFunc(options, func(i int) bool { return slices.Contains(taken, i) }) {
			return append([]int{}, options...)
		}
	}
	return nil
}

// first is plain backtracking: it looks at nothing but what is taken, and learns nothing.
func (w problem) first(taken []int) ([]int, bool) {
	options := w.open(taken)
	if options == nil {
		return taken, true
	}
	for _, i := range options {
		if w.excluded(taken, i) {
			continue
		}
		if found, ok := w.first(append(slices.Clone(taken), i)); ok {
			return found, true
		}
	}
	return nil, false
}

func thing(i int) sat.Lit { return sat.Var(i + 1).Lit() }

func things(list []int) []sat.Lit {
	var out []sat.Lit
	for _, i := range list {
		out = append(out, thing(i))
	}
	return out
}

// add puts the problem into a solver. The guards, if any, are one for each root and then one for each group.
func (w problem) add(s *sat.Solver, guarded bool) []sat.Lit {
	for range w.asks {
		s.Var()
	}
	var guards []sat.Lit
	guard := func() sat.Lit {
		if !guarded {
			return sat.LitNone
		}
		guards = append(guards, s.Var().Lit())
		return guards[len(guards)-1]
	}
	for _, options := range w.roots {
		c := things(options)
		if g := guard(); g != sat.LitNone {
			c = append(c, g.Not())
		}
		s.Clause(c...)
	}
	for i, asks := range w.asks {
		for _, options := range asks {
			s.Clause(append(things(options), thing(i).Not())...)
		}
	}
	for _, g := range w.groups {
		s.AtMostOne(guard(), things(g)...)
	}
	return guards
}

// taker is a guide that takes the first option of the first open choice. It writes a log.
type taker struct {
	s     *sat.Solver
	w     problem
	taken []int
	log   []int
}

func (g *taker) Next() sat.Lit {
	for _, i := range g.w.open(g.taken) {
		if g.s.Assigned(thing(i)) != sat.False {
			g.taken = append(g.taken, i)
			g.log = append(g.log, i)
			return thing(i)
		}
	}
	g.log = append(g.log, -1)
	return sat.LitNone
}

func (g *taker) Undo(kept int) {
	g.taken = g.taken[:kept]
	g.log = append(g.log, -2-kept)
}

func drawWorld(t *rapid.T) problem {
	things := rapid.IntRange(2, 14).Draw(t, "things")
	options := func(atLeast int) []int {
		list := rapid.SliceOfNDistinct(rapid.IntRange(0, things-1), atLeast, min(things, 4), rapid.ID[int]).Draw(
			t, "options")
		return list
	}
	w := problem{asks: make([][][]int, things)}
	for range rapid.IntRange(1, 5).Draw(t, "roots") {
		w.roots = append(w.roots, options(1))
	}
	for i := range w.asks {
		for range rapid.IntRange(0, 2).Draw(t, "asks") {
			w.asks[i] = append(w.asks[i], options(0))
		}
	}
	for range rapid.IntRange(0, 6).Draw(t, "groups") {
		w.groups = append(w.groups, options(2))
	}
	return w
}

// TestGuided: the first model is the one that plain backtracking finds first, decision by decision, and two runs
// decide alike (R-RES-7, RESOLVER-NOTES §4). Without a model there is a core of the assumptions.
func TestGuided(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, guarded := drawWorld(t), rapid.Bool().Draw(t, "guarded")
		patience := rapid.IntRange(0, 3).Draw(t, "patience")
		run := func() (sat.Status, *taker, []sat.Lit) {
			s := sat.New()
			s.CountAfter(patience, patience+1)
			guards := w.add(s, guarded)
			g := &taker{s: s, w: w}
			return s.Guided(g, guards...), g, guards
		}
		status, g, guards := run()
		want, ok := w.first(nil)
		if (status == sat.Sat) != ok || (ok && !slices.Equal(g.taken, want)) {
			t.Fatalf("guided: %s %v, backtracking: %t %v, in %v", status, g.taken, ok, want, w)
		}
		for i := range w.asks {
			if ok && g.s.Value(sat.Var(i+1)) != slices.Contains(want, i) {
				t.Fatalf("thing %d is not what the decisions %v leave it, in %v", i, want, w)
			}
		}
		if _, again, _ := run(); !slices.Equal(g.log, again.log) {
			t.Fatalf("two runs decide differently: %v and %v, in %v", g.log, again.log, w)
		}
		if status == sat.Unsat && guarded {
			w.checkCore(t, g.s.Core(), guards)
		}
	})
}

// checkCore leaves out what is not in the core; what is left must be as impossible.
func (w problem) checkCore(t *rapid.T, core, guards []sat.Lit) {
	less := problem{asks: w.asks}
	for i, g := range guards {
		switch {
		case !slices.Contains(core, g):
		case i < len(w.roots):
			less.roots = append(less.roots, w.roots[i])
		default:
			less.groups = append(less.groups, w.groups[i-len(w.roots)])
		}
	}
	if found, ok := less.first(nil); ok {
		t.Fatalf("the core %v has the solution %v, in %v", core, found, w)
	}
}

// TestGuidedFillsUp: what the guide leaves open is false where that is possible, and true where it must be.
func TestGuidedFillsUp(t *testing.T) {
	t.Parallel()
	s := sat.New()
	a, b, c := s.Var(), s.Var(), s.Var()
	s.Clause(a.Lit(), b.Lit())
	if status := s.Guided(&taker{s: s}); status != sat.Sat || s.Value(a) || !s.Value(b) || s.Value(c) {
		t.Fatalf("got %s %t %t %t", status, s.Value(a), s.Value(b), s.Value(c))
	}
}

// TestStepwise: asking for each option whether any model has it, with what was taken before, comes to what Guided comes
// to. A resolver does so when a guided search takes too many conflicts.
func TestStepwise(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		s := sat.New()
		w.add(s, false)
		guide := &taker{s: s, w: w}
		status := s.Guided(guide)
		var taken []int
		for open := w.open(taken); status == sat.Sat && open != nil; open = w.open(taken) {
			i := slices.IndexFunc(open, func(i int) bool {
				return s.Solve(
					append(things(taken), thing(i))...) == sat.Sat
			})
			if i < 0 {
				t.Fatalf("none of %v goes with %v, in %v", open, taken, w)
			}
			taken = append(taken, open[i])
		}
		if status == sat.Sat && !slices.Equal(taken, guide.taken) {
			t.Fatalf("step by step %v, guided %v, in %v", taken, guide.taken, w)
		}
	})
}
