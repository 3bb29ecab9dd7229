package sat_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/chandler-fleet/chandler/services/resolver/sat"
)

// catalogLike makes what a namespace looks like: packages with a chain of versions, each version asking for one or two
// other packages further on, of which some share an API. Every package's first versions need a version that its
// neighbour does not take.
func catalogLike(packages, versions int) problem {
	draw := rand.New(rand.NewPCG(1, 2))
	w := problem{asks: make([][][]int, packages*versions)}
	pkg := func(p int) []int {
		var all []int
		for v := range versions {
			all = append(all, p*versions+v)
		}
		return all
	}
	for p := range packages {
		w.groups = append(w.groups, pkg(p))
		if p < 5 {
			w.roots = append(w.roots, pkg(p))
		}
		for v := range versions {
			for range 1 + draw.IntN(2) {
				if next := p + 1 + draw.IntN(packages/4+1); next < packages {
					i := p*versions + v
					w.asks[i] = append(w.asks[i], pkg(next)[draw.IntN(versions/2+1):])
				}
			}
		}
	}
	for p := 3; p < packages; p += 3 {
		w.groups = append(w.groups, []int{p * versions, (p - 1) * versions, (p-2)*versions + 1})
	}
	return w
}

// quick is a guide as fast as a resolver's: it keeps a queue and looks at each choice once.
type quick struct {
	s     *sat.Solver
	w     problem
	queue [][]int
	is    []bool
	marks []mark
	taken []int
	at    int
}

type mark struct{ queue, taken, at int }

func (g *quick) Next() sat.Lit {
	for ; g.at < len(g.queue); g.at++ {
		if g.met(g.queue[g.at]) {
			continue
		}
		for _, i := range g.queue[g.at] {
			if g.s.Assigned(thing(i)) != sat.False {
				g.marks = append(g.marks, mark{len(g.queue), len(g.taken), g.at})
				g.queue, g.taken = append(g.queue, g.w.asks[i]...), append(g.taken, i)
				g.is[i] = true
				return thing(i)
			}
		}
	}
	return sat.LitNone
}

func (g *quick) met(options []int) bool {
	for _, i := range options {
		if g.is[i] {
			return true
		}
	}
	return false
}

func (g *quick) Undo(kept int) {
	m := g.marks[kept]
	for _, i := range g.taken[m.taken:] {
		g.is[i] = false
	}
	g.queue, g.taken, g.at, g.marks = g.queue[:m.queue], g.taken[:m.taken], m.at, g.marks[:kept]
}

// BenchmarkGuided builds and decides one resolution of a size.
func BenchmarkGuided(b *testing.B) {
	for _, size := range [][2]int{{5, 4}, {20, 10}, {100, 20}} {
		w := catalogLike(size[0], size[1])
		b.Run(fmt.Sprintf("variables=%d", len(w.asks)), func(b *testing.B) {
			b.ReportAllocs()
			conflicts := 0
			for b.Loop() {
				s := sat.New()
				w.add(s, false)
				g := &quick{s: s, w: w, queue: w.roots, is: make([]bool, len(w.asks))}
				if s.Guided(g) != sat.Sat {
					b.Fatal("no model")
				}
				conflicts = s.Conflicts()
			}
			b.ReportMetric(float64(conflicts), "conflicts")
		})
	}
}

// BenchmarkPigeonholes: one more than there are places, with a guard for each.
func BenchmarkPigeonholes(b *testing.B) {
	for _, holes := range []int{9, 25, 50} {
		b.Run(fmt.Sprintf("holes=%d", holes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := sat.New()
				guards := pigeonhole(s, holes+1, holes, direct)
				if s.Solve(guards...) != sat.Unsat {
					b.Fatal("has a model")
				}
			}
		})
	}
}

// BenchmarkBudget is what a search costs that uses up the budget of a resolution without an answer.
func BenchmarkBudget(b *testing.B) {
	const budget = 20_000
	for _, size := range []int{120, 600} {
		b.Run(fmt.Sprintf("parity=%d", size), func(b *testing.B) {
			for b.Loop() {
				s := sat.New()
				parity(s, size)
				s.Budget(budget)
				if got := s.Solve(); got != sat.TooHard {
					b.Fatalf("got %s after %d conflicts", got, s.Conflicts())
				}
			}
		})
	}
	b.Run("random=400", func(b *testing.B) {
		for b.Loop() {
			const vars, clauses = 400, 1760
			draw := rand.New(rand.NewPCG(1, 2))
			s := sat.New()
			f := formula{vars: vars}
			for range clauses {
				var c []sat.Lit
				for range 3 {
					c = append(c, literal(byte(draw.IntN(2)), 1)+sat.Lit(2*draw.IntN(vars)))
				}
				f.clauses = append(f.clauses, c)
			}
			f.add(s)
			s.Budget(budget)
			if got := s.Solve(); got != sat.TooHard {
				b.Fatalf("got %s after %d conflicts", got, s.Conflicts())
			}
		}
	})
}
