package sat_test

import (
	"slices"
	"testing"

	"github.com/crillab/gophersat/solver"
	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/services/resolver/sat"
)

// maxBrute is how many variables are tried in all combinations.
const maxBrute = 12

// TestSolve: the answer is that of trying all models, a model fits, and a core is a part of the assumptions that
// cannot hold together. The solver is asked again and again while the formula grows (DESIGN §5).
func TestSolve(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		vars := rapid.IntRange(1, maxBrute).Draw(t, "variables")
		s, all := eager(t), formula{vars: vars}
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			more := drawFormula(t, vars)
			more.add(s)
			all.clauses, all.groups = append(all.clauses, more.clauses...), append(all.groups, more.groups...)
			checkAnswer(t, s, all, drawLits(t, vars, 0, 4))
		}
	})
}

func checkAnswer(t *rapid.T, s *sat.Solver, f formula, assumptions []sat.Lit) {
	switch status := s.Solve(assumptions...); {
	case (status == sat.Sat) != f.satisfiable(assumptions):
		t.Fatalf("the solver says %s of %v with %v", status, f, assumptions)
	case status == sat.Sat && !f.meets(modelOf(s), assumptions):
		t.Fatalf("model %b does not fit %v with %v", modelOf(s), f, assumptions)
	case status == sat.Unsat:
		checkCore(t, s.Core(), f, assumptions)
	}
}

func checkCore(t *rapid.T, core []sat.Lit, f formula, assumptions []sat.Lit) {
	for _, l := range core {
		if !slices.Contains(assumptions, l) {
			t.Fatalf("core %v holds %d, which is no assumption", core, l)
		}
	}
	if f.satisfiable(core) {
		t.Fatalf("core %v of %v fits %v", core, assumptions, f)
	}
}

// TestPairwise: a group says what its pairs as clauses say, with a guard and without.
func TestPairwise(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const vars = 30
		f := drawFormula(t, vars)
		native, plain := eager(t), sat.New()
		f.add(native)
		f.pairwise().add(plain)
		assumptions := drawLits(t, vars, 0, 6)
		if a, b := native.Solve(assumptions...), plain.Solve(assumptions...); a != b {
			t.Fatalf("native groups: %s, pairs: %s, for %v with %v", a, b, f, assumptions)
		}
	})
}

// TestIncremental: a solver that was asked before answers like a new one.
func TestIncremental(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const vars = 40
		old, all := eager(t), formula{vars: vars}
		for range 4 {
			more := drawFormula(t, vars/2)
			more.add(old)
			all.clauses, all.groups = append(all.clauses, more.clauses...), append(all.groups, more.groups...)
			fresh := sat.New()
			all.add(fresh)
			assumptions := drawLits(t, vars/2, 0, 6)
			if a, b := old.Solve(assumptions...), fresh.Solve(assumptions...); a != b {
				t.Fatalf("asked before: %s, new: %s, for %v with %v", a, b, all, assumptions)
			}
		}
	})
}

// TestRepeats: equal calls in equal order learn the same and answer the same, byte for byte (R-RES-7).
func TestRepeats(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const vars = 40
		f, g := drawFormula(t, vars), drawFormula(t, vars)
		assumptions := drawLits(t, vars, 0, 6)
		run := func() (*sat.Solver, []sat.Status) {
			s := sat.New()
			s.CountAfter(2, 4)
			f.add(s)
			first := s.Solve(assumptions...)
			g.add(s)
			return s, []sat.Status{first, s.Solve(assumptions...)}
		}
		a, answers := run()
		b, again := run()
		if !slices.Equal(answers, again) || !slices.Equal(a.Clauses(), b.Clauses()) ||
			modelOf(a) != modelOf(b) || !slices.Equal(a.Core(), b.Core()) || a.Conflicts() != b.Conflicts() {
			t.Fatalf("two runs differ for %v with %v", f, assumptions)
		}
	})
}

// TestOracle compares with another solver, which knows clauses alone and must not run in two goroutines at once.
func TestOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vars := rapid.IntRange(20, 120).Draw(t, "variables")
		f := formula{vars: vars}
		for range rapid.IntRange(3*vars, 5*vars).Draw(t, "clauses") {
			f.clauses = append(f.clauses, drawLits(t, vars, 3, 3))
		}
		for range rapid.IntRange(0, 4).Draw(t, "groups") {
			f.groups = append(f.groups, group{guard: drawLit(t, vars), lits: drawLits(t, vars, 2, 6)})
		}
		s := eager(t)
		f.add(s)
		status := s.Solve()
		if oracle := f.oracle(); (status == sat.Sat) != oracle {
			t.Fatalf("the solver says %s, the oracle satisfiable %t, of %v", status, oracle, f)
		}
	})
}

func (f formula) oracle() bool {
	var cnf [][]int
	for _, c := range f.pairwise().clauses {
		var ints []int
		for _, l := range c {
			n := int(l.Var())
			if l.Negative() {
				n = -n
			}
			ints = append(ints, n)
		}
		cnf = append(cnf, ints)
	}
	return solver.New(solver.ParseSlice(cnf)).Solve() == solver.Sat
}

// TestEdges are formulas that have nothing to decide.
func TestEdges(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		add  func(s *sat.Solver, a, b sat.Lit)
		with func(a, b sat.Lit) []sat.Lit
		want sat.Status
		core int
	}{
		"nothing":      {want: sat.Sat},
		"empty clause": {add: func(s *sat.Solver, _, _ sat.Lit) { s.Clause() }, want: sat.Unsat},
		"both ways": {
			add:  func(s *sat.Solver, a, _ sat.Lit) { s.Clause(a); s.Clause(a.Not()) },
			want: sat.Unsat,
		},
		"a tautology says nothing": {add: func(s *sat.Solver, a, _ sat.Lit) { s.Clause(a, a.Not()) }, want: sat.Sat},
		"a literal twice in a clause is one": {
			add:  func(s *sat.Solver, a, _ sat.Lit) { s.Clause(a, a) },
			with: func(a, _ sat.Lit) []sat.Lit { return []sat.Lit{a.Not()} }, want: sat.Unsat, core: 1,
		},
		"a literal twice in a group excludes itself": {
			add: func(s *sat.Solver, a, _ sat.Lit) { s.AtMostOne(sat.LitNone, a, a); s.Clause(a) }, want: sat.Unsat,
		},
		"twice under a guard excludes itself where the guard holds": {
			add:  func(s *sat.Solver, a, b sat.Lit) { s.AtMostOne(b, a, a) },
			with: func(a, b sat.Lit) []sat.Lit { return []sat.Lit{a, b} }, want: sat.Unsat, core: 2,
		},
		"an assumption and its opposite": {
			with: func(a, _ sat.Lit) []sat.Lit { return []sat.Lit{a, a.Not()} },
			want: sat.Unsat, core: 2,
		},
		"an assumption twice": {with: func(a, _ sat.Lit) []sat.Lit { return []sat.Lit{a, a} }, want: sat.Sat},
		"a group of what is known": {
			add:  func(s *sat.Solver, a, b sat.Lit) { s.Clause(a); s.Clause(b); s.AtMostOne(sat.LitNone, a, b) },
			want: sat.Unsat,
		},
		"a guard that is known": {
			add:  func(s *sat.Solver, a, b sat.Lit) { s.Clause(a); s.AtMostOne(a, a, b) },
			with: func(_, b sat.Lit) []sat.Lit { return []sat.Lit{b} }, want: sat.Unsat, core: 1,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sat.New()
			a, b := s.Var().Lit(), s.Var().Lit()
			if c.add != nil {
				c.add(s, a, b)
			}
			var assumptions []sat.Lit
			if c.with != nil {
				assumptions = c.with(a, b)
			}
			if got := s.Solve(assumptions...); got != c.want || len(s.Core()) != c.core {
				t.Fatalf("got %s with core %v, want %s with %d", got, s.Core(), c.want, c.core)
			}
		})
	}
}
