package sat_test

import (
	"fmt"
	"testing"

	"github.com/chandler-fleet/chandler/services/resolver/sat"
)

// shape says how pigeons come to their holes.
type shape int

const (
	direct    shape = iota // a pigeon has one option for each hole
	dependent              // each option needs something of its own that stands in the hole
	chosen                 // each pigeon comes in three versions, each of which needs a hole
	asked                  // likewise, but the need has a variable of its own
)

var shapes = map[shape]string{direct: "direct", dependent: "dependent", chosen: "chosen", asked: "asked"}

// pigeonhole gives each pigeon and each hole a guard.
func pigeonhole(s *sat.Solver, pigeons, holes int, sh shape) (guards []sat.Lit) {
	in := make([][]sat.Lit, holes)
	for range pigeons {
		guard := s.Var().Lit()
		guards = append(guards, guard)
		options := []sat.Lit{guard.Not()}
		for h := range in {
			option := s.Var().Lit()
			options = append(options, option)
			if sh == dependent {
				needs := s.Var().Lit()
				s.Clause(option.Not(), needs)
				option = needs
			}
			in[h] = append(in[h], option)
		}
		if sh == asked {
			need := s.Var().Lit()
			s.Clause(append([]sat.Lit{need.Not()}, options[1:]...)...)
			options = []sat.Lit{options[0], need}
		}
		if sh == chosen || sh == asked {
			options = versions(s, options)
		}
		s.Clause(options...)
	}
	for _, options := range in {
		guard := s.Var().Lit()
		guards = append(guards, guard)
		s.AtMostOne(guard, options...)
	}
	return guards
}

// versions makes the options what each of three versions needs.
func versions(s *sat.Solver, options []sat.Lit) []sat.Lit {
	out := []sat.Lit{options[0]}
	for range 3 {
		version := s.Var().Lit()
		s.Clause(append([]sat.Lit{version.Not()}, options[1:]...)...)
		out = append(out, version)
	}
	return out
}

// TestPigeonholes: too many for the places is found by counting, long before the budget of a resolution is used,
// and the core is all that it takes (DESIGN D10).
func TestPigeonholes(t *testing.T) {
	t.Parallel()
	for sh, name := range shapes {
		for _, holes := range []int{4, 9, 25} {
			t.Run(fmt.Sprintf("%s %d into %d", name, holes+1, holes), func(t *testing.T) {
				t.Parallel()
				s := sat.New()
				guards := pigeonhole(s, holes+1, holes, sh)
				s.Budget(5_000)
				if got := s.Solve(guards...); got != sat.Unsat {
					t.Fatalf("got %s after %d conflicts", got, s.Conflicts())
				}
				if len(s.Core()) != len(guards) {
					t.Fatalf("core has %d of %d guards", len(s.Core()), len(guards))
				}
				if got := s.Solve(guards[1:]...); got != sat.Sat {
					t.Fatalf("as many as there are places: got %s after %d conflicts", got, s.Conflicts())
				}
			})
		}
	}
}

// lexical decides for the first literal that is open, as a guide that knows nothing.
type lexical struct {
	s    *sat.Solver
	made int
}

func (g *lexical) Next() sat.Lit {
	for v := range g.s.Vars() {
		if l := sat.Var(v + 1).Lit(); g.s.Assigned(l) == sat.Unassigned {
			g.made++
			return l
		}
	}
	return sat.LitNone
}

func (g *lexical) Undo(kept int) { g.made = kept }

func TestGuidedPigeonholes(t *testing.T) {
	t.Parallel()
	s := sat.New()
	guards := pigeonhole(s, 10, 9, direct)
	s.Budget(5_000)
	if got := s.Guided(&lexical{s: s}, guards...); got != sat.Unsat || len(s.Core()) != len(guards) {
		t.Fatalf("got %s with core %v after %d conflicts", got, s.Core(), s.Conflicts())
	}
}

// parity makes clauses over a ring with chords whose parities cannot all be met (Urquhart's formulas): hard for
// every solver that learns clauses, and no pigeonhole.
func parity(s *sat.Solver, size int) {
	var ring, chord []sat.Lit
	for range size {
		ring = append(ring, s.Var().Lit())
	}
	for range size / 2 {
		chord = append(chord, s.Var().Lit())
	}
	const step = 7 // prime to the size, so that chords are far apart
	at := make([][]sat.Lit, size)
	for i := range size {
		at[i] = append(at[i], ring[i], ring[(i+1)%size])
	}
	for i, l := range chord {
		a, b := (2*i*step)%size, ((2*i+1)*step+size/2)%size
		at[a], at[b] = append(at[a], l), append(at[b], l)
	}
	for i, lits := range at {
		odd := i == 0
		for signs := range 1 << len(lits) {
			flips := 0
			c := make([]sat.Lit, len(lits))
			for k, l := range lits {
				if c[k] = l; signs>>k&1 == 1 {
					c[k] = l.Not()
					flips++
				}
			}
			if (flips%2 == 0) == odd {
				s.Clause(c...)
			}
		}
	}
}

// TestTooHard: the budget is a count of conflicts for all searches together, and ends a search that would go on
// for hours. A new budget lets it go on.
func TestTooHard(t *testing.T) {
	t.Parallel()
	s := sat.New()
	parity(s, 120)
	const budget = 500
	s.Budget(budget)
	if got := s.Solve(); got != sat.TooHard {
		t.Fatalf("got %s after %d conflicts", got, s.Conflicts())
	}
	if got := s.Solve(); got != sat.TooHard || s.Conflicts() > budget+1 {
		t.Fatalf("a second search: got %s after %d conflicts", got, s.Conflicts())
	}
	s.Budget(budget)
	if got := s.Solve(); got != sat.TooHard || s.Conflicts() < 2*budget {
		t.Fatalf("with a new budget: got %s after %d conflicts", got, s.Conflicts())
	}
}
