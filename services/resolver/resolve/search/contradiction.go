package search

import (
	"cmp"
	"slices"

	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/graph"
	"github.com/chandler-fleet/chandler/services/resolver/sat"
)

// finder searches for contradictions among the reasons of a problem.
type finder struct {
	p     *problem
	rules *rules
	left  map[int32]bool // roots that failed already
	// coarse says that the last contradiction may have reasons that it does not need.
	coarse bool
	stale  bool // a root that failed has a CSV installed: the rules are not those of the problem any more
}

func newFinder(p *problem, limit int) *finder {
	f := &finder{p: p, rules: newRules(p, true), left: map[int32]bool{}}
	f.rules.s.Budget(limit)
	return f
}

// assumed are the guards of all reasons but those of roots that failed.
func (f *finder) assumed() []sat.Lit {
	var out []sat.Lit
	for _, g := range f.rules.order {
		if why := f.rules.reasons[g]; why.Kind != ByRoot || !f.left[why.A] {
			out = append(out, g)
		}
	}
	return out
}

// maxShrinks bounds how many reasons of a contradiction are tried to be left out, those that fail somebody first. Each
// try takes time for all reasons; an explanation shows some tens of them.
const maxShrinks = 300

// shrink leaves out of a contradiction what it does not need. Where a bound ends that, the rest stays in, and the
// contradiction is coarse.
func (f *finder) shrink(core []sat.Lit) []sat.Lit {
	slices.SortFunc(core, func(x, y sat.Lit) int { return f.compare(f.rules.reasons[x], f.rules.reasons[y]) })
	f.coarse = false
	tries, i := 0, 0
	for ; i < len(core) && tries < maxShrinks; tries++ {
		less := slices.Delete(slices.Clone(core), i, i+1)
		if status := f.rules.s.Solve(less...); status != sat.Unsat {
			f.coarse = f.coarse || status == sat.TooHard
			i++
			continue
		}
		needed := f.rules.s.Core() // sorted
		core = slices.DeleteFunc(less, func(l sat.Lit) bool {
			_, found := slices.BinarySearch(needed, l)
			return !found
		})
	}
	f.coarse = f.coarse || i < len(core)
	return core
}

// compare orders reasons by which one an explanation leaves out first. Of several requirements of one bundle that
// cannot be met the last one is kept, as OLM does (RESOLVER-NOTES §10).
func (f *finder) compare(x, y Reason) int {
	if x.Kind == ByRoot && y.Kind == ByRoot {
		return cmp.Compare(y.A, x.A)
	}
	if d := cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.A, y.A)); d != 0 || x.Kind != ByRequirement {
		return cmp.Or(d, cmp.Compare(x.B, y.B))
	}
	of := f.p.Operators[x.A].Requirements
	return cmp.Compare(slices.Index(of, x.B), slices.Index(of, y.B))
}

// failContradiction fails those roots of a contradiction that yield first, and lowers what is asked of them. It is no
// failure of its own where all of them failed before, as what a subscription follows does when it cannot stay as it
// is.
func (f *finder) failContradiction(core []sat.Lit) {
	p := f.p
	var reasons []Reason
	first := rank(Fixed, false)
	for _, l := range core {
		why := f.rules.reasons[l]
		reasons = append(reasons, why)
		if why.Kind == ByRoot {
			first = min(first, p.rank(int(why.A)))
		}
	}
	var to []int
	for _, why := range reasons {
		if why.Kind == ByRoot && p.rank(int(why.A)) == first {
			to = append(to, int(why.A))
			f.left[why.A] = true
		}
	}
	slices.Sort(to)
	if first == rank(Held, false) && p.keepProviders(to) {
		f.stale = true
		return
	}
	if first == rank(Wanted, true) || first == rank(Staying, false) {
		p.fail(Failure{Class: resolution.ClassUnsatisfiable, Roots: to, Reasons: reasons, Coarse: f.coarse})
	}
	for _, r := range to {
		p.demote(r)
		f.stale = f.stale || p.Roots[r].Node != graph.None
	}
}

// rank orders roots by which yields first in a contradiction: subscriptions, then the CSVs of those that failed before,
// then CSVs that no subscription follows.
func (p *problem) rank(root int) int { return rank(p.states[root], p.Roots[root].Sub != nil) }

func rank(s State, followed bool) int {
	if s == Staying && followed {
		return 2*int(s) - 1
	}
	return 2 * int(s)
}

// keepProviders fails the roots of installed CSVs that alone meet what held ones require today; they stay as they
// are, before something installed loses what it has (R-RES-2). It returns false where there are none.
func (p *problem) keepProviders(lacking []int) bool {
	var out []int
	var kept []Reason
	for _, l := range lacking {
		at := p.Nodes[p.Roots[l].Node].Operator
		for _, i := range p.Operators[at].Requirements {
			for _, n := range p.Requirements[i].Candidates {
				r := p.decider(n)
				if r < 0 || p.states[r].rigid() || slices.Contains(out, r) {
					continue
				}
				out = append(out, r)
				kept = append(kept, Reason{Kind: ByRequirement, A: at, B: i})
			}
		}
	}
	if len(out) == 0 {
		return false
	}
	slices.Sort(out)
	p.fail(Failure{Class: resolution.ClassUnsatisfiable, Roots: out, Kept: kept})
	for _, r := range out {
		p.states[r] = Held
	}
	return true
}
