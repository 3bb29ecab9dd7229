package resolve

import (
	"cmp"
	"slices"

	"github.com/chandler-fleet/chandler/services/resolver/sat"
)

// failed are roots that cannot have what is asked of them, and why.
type failed struct {
	roots       []*root
	explanation Explanation
	reads       []int32 // of the explanation, beside those of the cluster
}

// solution is what a cluster came to.
type solution struct {
	choices  *chooser
	failures []failed
}

// solve finds what a cluster can have. Roots that reach a fault, or have no candidate, fail by themselves. Where
// the rest contradicts itself, a minimal contradiction is explained, its subscriptions are left out, and the others
// are solved again. Likewise where a solution takes from somebody what it requires (keepApart). It ends: in every round
// some root gets less or some bundle is forbidden, and that nothing is asked always has an answer.
func (c *cluster) solve(limit int) solution {
	var out solution
	out.failures = append(out.failures, c.faulty()...)
	for _, r := range c.roots {
		if r.state == wanted && len(r.cands) == 0 {
			out.failures = append(out.failures, c.failure(ClassUnsatisfiable, []*root{r}, r.missing...))
			r.demote()
		}
	}
	for {
		before := c.given()
		h, status := c.choose(limit)
		switch status {
		case sat.Sat:
			if !c.keepApart(h) {
				out.choices = h
				return out
			}
		case sat.Unsat:
			out.failures = append(out.failures, c.blame(limit)...)
		default:
			out.failures = append(out.failures, c.giveUp(limit)...)
		}
		if c.given() == before {
			panic("resolve: a round of blame asked nobody for less") // the same would come again for ever
		}
	}
}

// given counts what a cluster has given up so far.
func (c *cluster) given() int {
	n := len(c.apart)
	for _, r := range c.roots {
		n += int(r.state)
	}
	return n
}

// faulty fails the roots that reach a fault.
func (c *cluster) faulty() []failed {
	if !c.w.faulty() && !slices.ContainsFunc(c.roots, func(r *root) bool { return len(r.faults)+len(r.burden) > 0 }) {
		return nil
	}
	var out []failed
	for _, r := range c.roots {
		own := append(slices.Clone(r.burden), c.w.faults(r.node)...)
		faults := append(slices.Clone(r.faults), c.w.faults(r.cands...)...)
		if faults = append(faults, own...); len(faults) == 0 {
			continue
		}
		var said []Statement
		for _, f := range faults {
			said = append(said, f.statement)
		}
		out = append(out, c.failure(faults[0].class, []*root{r}, said...))
		r.demote()
		if len(own) > 0 && r.state == staying {
			r.demote()
		}
	}
	return out
}

// giveUp fails the subscriptions of a cluster that make it too hard: one after the other is added to those that can
// be had together, and the ones for which that cannot be told within their share of the budget are left out.
// Where all could be added, and the preferred answer is too hard nevertheless, all fail. Where no subscription is
// left, what stays is only held.
func (c *cluster) giveUp(limit int) []failed {
	all := len(c.in(wanted))
	out, knot, beside := c.knot(limit)
	if len(knot) == 0 && len(beside) < all {
		return out // somebody has failed, which makes it another question
	}
	for s := wanted; s < fixed && len(knot) == 0; s++ {
		knot, beside = c.in(s), nil
	}
	out = append(out, c.failure(ClassTooHard, knot, tooHard(limit, knot, beside)))
	for _, r := range knot {
		r.demote()
	}
	return out
}

// in are the roots in a state.
func (c *cluster) in(s state) []*root {
	return slices.DeleteFunc(slices.Clone(c.roots), func(r *root) bool { return r.state != s })
}

// knot are the subscriptions that cannot be told to be possible beside the others. Those that are found to be
// impossible fail for that.
func (c *cluster) knot(limit int) (out []failed, knot, beside []*root) {
	b := newBlamer(c, limit)
	for i, r := range c.roots {
		b.left[int32(i)] = r.state == wanted
	}
	for i, r := range c.roots {
		if r.state != wanted || b.stale {
			continue
		}
		b.left[int32(i)] = false
		b.rules.s.Budget(limit / len(c.roots))
		switch b.rules.s.Solve(b.assumed()...) {
		case sat.Sat:
			beside = append(beside, r)
		case sat.Unsat:
			if f, news := b.failure(b.shrink(slices.Clone(b.rules.s.Core()))); news {
				out = append(out, f)
			}
			beside = slices.DeleteFunc(beside, func(o *root) bool { return o.state != wanted })
		default:
			b.left[int32(i)] = true
			knot = append(knot, r)
		}
	}
	return out, knot, beside
}

// blame finds contradictions among the reasons of a cluster, each minimal, until what is left of the roots
// can be solved. Where a CSV is installed for a root that fails, the reasons of others change with it, and the cluster
// has to be looked at afresh.
func (c *cluster) blame(limit int) []failed {
	b := newBlamer(c, limit)
	var out []failed
	for {
		status := b.rules.s.Solve(b.assumed()...)
		if status == sat.Sat {
			return out
		}
		if status == sat.TooHard && len(out) > 0 {
			return out // somebody has failed, which makes it another question
		}
		if status == sat.TooHard {
			return c.giveUp(limit)
		}
		f, news := b.failure(b.shrink(slices.Clone(b.rules.s.Core())))
		if news {
			out = append(out, f)
		}
		if b.stale {
			return out
		}
	}
}

// blamer looks for contradictions.
type blamer struct {
	c     *cluster
	rules *rules
	left  map[int32]bool // roots that were blamed already
	// coarse says that the last contradiction may have reasons that it does not need.
	coarse bool
	stale  bool // what was blamed has a CSV installed: the rules are not those of the cluster any more
}

func newBlamer(c *cluster, limit int) *blamer {
	b := &blamer{c: c, rules: newRules(c, true), left: map[int32]bool{}}
	b.rules.s.Budget(limit)
	return b
}

// assumed are the guards of all reasons but those of roots that were blamed.
func (b *blamer) assumed() []sat.Lit {
	var out []sat.Lit
	for _, g := range b.rules.order {
		if why := b.rules.reasons[g]; why.kind != byRoot || !b.left[why.a] {
			out = append(out, g)
		}
	}
	return out
}

// maxShrinks bounds how many reasons of a contradiction are tried to be left out, those that fail somebody first. Each
// try takes time for all reasons; an explanation shows some tens of them.
const maxShrinks = 300

// shrink leaves out of a contradiction what it does not need. Where a bound ends that, the rest stays in, and the
// blamer notes it.
func (b *blamer) shrink(core []sat.Lit) []sat.Lit {
	slices.SortFunc(core, func(x, y sat.Lit) int { return b.compare(b.rules.reasons[x], b.rules.reasons[y]) })
	b.coarse = false
	tries, i := 0, 0
	for ; i < len(core) && tries < maxShrinks; tries++ {
		less := slices.Delete(slices.Clone(core), i, i+1)
		if status := b.rules.s.Solve(less...); status != sat.Unsat {
			b.coarse = b.coarse || status == sat.TooHard
			i++
			continue
		}
		needed := b.rules.s.Core() // sorted
		core = slices.DeleteFunc(less, func(l sat.Lit) bool {
			_, found := slices.BinarySearch(needed, l)
			return !found
		})
	}
	b.coarse = b.coarse || i < len(core)
	return core
}

// compare orders reasons by how gladly an explanation does without them. Of several requirements that cannot be
// met the last one of a bundle is told, as OLM does (RESOLVER-NOTES §10).
func (b *blamer) compare(x, y reason) int {
	if x.kind == byRoot && y.kind == byRoot {
		return cmp.Compare(y.a, x.a)
	}
	if d := cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.a, y.a)); d != 0 || x.kind != byNeed {
		return cmp.Or(d, cmp.Compare(x.b, y.b))
	}
	needs := b.c.w.shapes[x.a].needs
	return cmp.Compare(slices.Index(needs, x.b), slices.Index(needs, y.b))
}

// failure tells of a contradiction and lowers what is asked of those of its roots that yield first. news is false
// where all of them failed before, as what a subscription follows does when it cannot stay as it is.
func (b *blamer) failure(core []sat.Lit) (f failed, news bool) {
	var reasons []reason
	first := fixed.rank(false)
	for _, l := range core {
		why := b.rules.reasons[l]
		reasons = append(reasons, why)
		if why.kind == byRoot {
			first = min(first, b.c.roots[why.a].rank())
		}
	}
	var to []*root
	for _, why := range reasons {
		if why.kind == byRoot && b.c.roots[why.a].rank() == first {
			to = append(to, b.c.roots[why.a])
			b.left[why.a] = true
		}
	}
	slices.SortFunc(to, compareRoots)
	if first == held.rank(false) {
		if keepers, said := b.c.keepers(to); len(keepers) > 0 {
			b.stale = true
			return b.c.keep(keepers, said), true
		}
	}
	if news = first == wanted.rank(true) || first == staying.rank(false); news {
		f = b.c.conflict(to, reasons)
		if b.coarse {
			f.explanation = f.explanation.coarse()
		}
		if b.c.watch != nil {
			b.c.watch(f, reasons)
		}
	}
	for _, r := range to {
		r.demote()
		b.stale = b.stale || r.node != none
	}
	return f, news
}

// rank orders roots by who yields first in a contradiction: subscriptions, then the CSVs of those that failed before,
// then CSVs that no subscription follows.
func (r *root) rank() int { return r.state.rank(r.sub != nil) }

func (s state) rank(followed bool) int {
	if s == staying && followed {
		return 2*int(s) - 1
	}
	return 2 * int(s)
}

// keepers are the roots of installed CSVs that alone meet what held ones require today, and the sentences that say so.
// Before something installed loses what it has, they stay as they are (R-RES-2).
func (c *cluster) keepers(lacking []*root) (out []*root, said []Statement) {
	t := c.tell()
	for _, r := range lacking {
		at := c.w.nodes[r.node].shape
		for _, i := range c.w.shapes[at].needs {
			for _, n := range c.w.needs[i].cands {
				k := c.of(n)
				if k == nil || k.rigid() || slices.Contains(out, k) {
					continue
				}
				out = append(out, k)
				said = append(said, t.requires(at, i))
			}
		}
	}
	slices.SortFunc(out, compareRoots)
	return out, said
}

// keep fails roots whose CSVs have to stay as they are.
func (c *cluster) keep(keepers []*root, said []Statement) failed {
	f := c.failure(ClassUnsatisfiable, keepers, said...)
	for _, r := range keepers {
		r.state = held
	}
	return f
}

// Contradiction is why some roots of an input cannot be had together, for tests of explanations: none of the reasons
// can be left out.
type Contradiction struct {
	Explanation Explanation
	// Solvable says whether what the reasons demand can be met, first all of them, then all but each one. It is worked
	// out afresh, from nothing but the reasons.
	Solvable []bool
}

// Contradictions finds those of an input that Resolve explains.
func Contradictions(in Input) []Contradiction {
	r := newResolution(in)
	if s, _ := r.prevented(); s != nil {
		return nil
	}
	var out []Contradiction
	for _, c := range r.clusters() {
		c.watch = func(f failed, reasons []reason) {
			found := Contradiction{Explanation: f.explanation, Solvable: []bool{c.solvable(reasons)}}
			for i := range reasons {
				found.Solvable = append(found.Solvable, c.solvable(slices.Delete(slices.Clone(reasons), i, i+1)))
			}
			out = append(out, found)
		}
		c.solve(r.limit())
	}
	return out
}

// solvable says whether reasons can hold together.
func (c *cluster) solvable(reasons []reason) bool {
	b := newRules(c, true)
	var assumed []sat.Lit
	for _, why := range reasons {
		assumed = append(assumed, b.guards[why])
	}
	return b.s.Solve(assumed...) == sat.Sat
}
