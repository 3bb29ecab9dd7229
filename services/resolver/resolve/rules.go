package resolve

import (
	"slices"

	"github.com/chandler-fleet/chandler/services/resolver/sat"
)

// reason is one rule that a solution has to keep, as people would name it. Clauses that say the same to them,
// for the same bundle in two channels for example, have one reason.
type reason struct {
	kind reasonKind
	a, b int32
}

type reasonKind uint8

// The kinds of reason, in the order in which an explanation tries to do without them: first it blames as few
// roots as it can, then it prefers what a bundle asks for to what excludes it.
const (
	byRoot       reasonKind = iota // a: root of the cluster
	bySlot                         // a: slot
	byReplaces                     // a: node, b: the installed CSV that it takes the place of
	byPolicy                       // a: shape
	byDeprecated                   // a: shape
	byTwice                        // a: shape
	byNeed                         // a: shape, b: need
)

// rules puts what a cluster demands before a solver. The variables of a cluster's nodes are the first ones.
// With guards, each reason can be assumed or left out; without, all hold.
type rules struct {
	c       *cluster
	s       *sat.Solver
	guarded bool
	guards  map[reason]sat.Lit
	order   []sat.Lit          // of guards, as they were made
	reasons map[sat.Lit]reason // of guards
	met     map[int32]sat.Lit  // by need that many have: something meets it
	clause  []sat.Lit
}

// reservedLiterals is about how many literals the rules have for each node.
const reservedLiterals = 4

func newRules(c *cluster, guarded bool) *rules {
	r := &rules{c: c, s: sat.New(), guarded: guarded, met: map[int32]sat.Lit{}}
	if guarded {
		r.guards, r.reasons = map[reason]sat.Lit{}, map[sat.Lit]reason{}
	}
	r.s.Share(c.w.effort)
	r.s.Reserve(len(c.nodes), reservedLiterals*len(c.nodes))
	for range c.nodes {
		r.s.Var()
	}
	for i := range c.roots {
		r.root(int32(i))
	}
	for _, n := range c.nodes {
		r.node(n)
	}
	for _, t := range c.apart {
		r.add(append(r.clause[:0], c.w.lits[t.by].Not(), c.w.lits[t.csv].Not()), reason{kind: byReplaces, a: int32(t.by), b: int32(t.csv)})
	}
	r.slots()
	return r
}

// guard is the literal of a reason, LitNone where reasons are not told apart.
func (r *rules) guard(why reason) sat.Lit {
	if !r.guarded {
		return sat.LitNone
	}
	g, ok := r.guards[why]
	if !ok {
		g = r.s.Var().Lit()
		r.guards[why] = g
		r.order = append(r.order, g)
		r.reasons[g] = why
	}
	return g
}

func (r *rules) add(lits []sat.Lit, why ...reason) {
	for _, w := range why {
		if g := r.guard(w); g != sat.LitNone {
			lits = append(lits, g.Not())
		}
	}
	r.s.Clause(lits...)
	r.clause = lits[:0]
}

// root demands a candidate for a subscription that wants one, or the CSV that stays.
func (r *rules) root(i int32) {
	w, rt := r.c.w, r.c.roots[i]
	switch {
	case rt.state == absent:
	case rt.stays():
		r.add(append(r.clause[:0], w.lits[rt.node]), reason{kind: byRoot, a: i})
	default:
		lits := r.clause[:0]
		for _, n := range rt.cands {
			lits = append(lits, w.lits[n])
		}
		r.add(lits, reason{kind: byRoot, a: i})
		r.replaces(rt)
	}
}

// replaces excludes what is installed from staying beside what takes its place. Where both are of one package
// that is so anyway; the package of a CSV may be unknown.
func (r *rules) replaces(rt *root) {
	if rt.node == none {
		return
	}
	w := r.c.w
	pkg := w.op(rt.node).Package
	for _, n := range rt.cands {
		if n == rt.node || pkg != "" && w.op(n).Package == pkg {
			continue
		}
		r.add(append(r.clause[:0], w.lits[n].Not(), w.lits[rt.node].Not()), reason{kind: byReplaces, a: int32(n), b: int32(rt.node)})
	}
}

// node adds what a node demands, and what forbids it.
func (r *rules) node(n nodeID) {
	w := r.c.w
	l, at := w.lits[n], w.nodes[n].shape
	sh := &w.shapes[at]
	rt := r.c.of(n)
	rigid := rt.rigid()
	if !rigid {
		r.forbid(l, at, sh)
	}
	for j, i := range sh.needs {
		if rigid && !rt.keeps(w, i) || r.guarded && w.untold(sh.needs[j:]) {
			continue
		}
		r.add(r.meeting(r.clause[:0], i, l.Not()), reason{kind: byNeed, a: at, b: i})
	}
}

// meeting adds to a clause that something meets a requirement, and further literals. Where many have the requirement,
// one variable stands for its candidates, so that these are written down once.
func (r *rules) meeting(lits []sat.Lit, need int32, more ...sat.Lit) []sat.Lit {
	n := &r.c.w.needs[need]
	if n.asked == 1 || len(n.cands) <= fewCandidates {
		for _, m := range n.cands {
			lits = append(lits, r.c.w.lits[m])
		}
		return append(lits, more...)
	}
	met, ok := r.met[need]
	if !ok {
		met = r.s.Var().Lit()
		r.met[need] = met
		all := append(make([]sat.Lit, 0, len(n.cands)+1), met.Not())
		for _, m := range n.cands {
			all = append(all, r.c.w.lits[m])
		}
		r.s.Clause(all...)
	}
	return append(append(lits, met), more...)
}

// fewCandidates are written down each time.
const fewCandidates = 2

// untold says whether the first of some needs of one bundle says no more than a later one: nothing at all meets
// either. One is enough for an explanation, and OLM tells the last (RESOLVER-NOTES §10).
func (w *world) untold(needs []int32) bool {
	unmet := func(i int32) bool { return len(w.needs[i].cands) == 0 }
	return unmet(needs[0]) && slices.ContainsFunc(needs[1:], unmet)
}

func (r *rules) forbid(l sat.Lit, at int32, sh *shape) {
	if sh.op.Deprecated {
		r.add(append(r.clause[:0], l.Not()), reason{kind: byDeprecated, a: at})
	}
	if sh.op.Twice != "" {
		r.add(append(r.clause[:0], l.Not()), reason{kind: byTwice, a: at})
	}
	if sh.policy >= 0 {
		r.add(append(r.clause[:0], l.Not()), reason{kind: byPolicy, a: at})
	}
}

// rigid says whether a root's CSV is there whatever speaks against it.
func (r *root) rigid() bool { return r != nil && (r.state == held || r.state == fixed) }

// keeps says whether a requirement of a rigid CSV counts: what is met by something installed stays so.
func (r *root) keeps(w *world, need int32) bool {
	cands := w.needs[need].cands // what is installed comes first
	return r.state == held && len(cands) > 0 && w.isInstalled(cands[0])
}

// slots lets every slot have one holder. Where CSVs hold one that may not, they keep it, whoever else of what is
// installed has it, too; and nothing new gets it.
func (r *rules) slots() {
	w := r.c.w
	seen := make(map[slotID]bool, len(r.c.nodes))
	for _, n := range r.c.nodes {
		for _, s := range w.shapes[w.nodes[n].shape].slots {
			if holders := w.slots.holders[s]; len(holders) > 1 && !seen[s] && w.contested(s, holders) {
				seen[s] = true
				r.slot(s, holders)
			}
		}
	}
}

func (r *rules) slot(s slotID, holders []nodeID) {
	w := r.c.w
	why := reason{kind: bySlot, a: int32(s)}
	lits := r.clause[:0]
	var keepers []nodeID
	for _, n := range holders {
		if r.c.of(n).rigid() {
			keepers = append(keepers, n)
			continue
		}
		lits = append(lits, w.lits[n])
	}
	r.clause = lits
	r.s.AtMostOne(r.guard(why), lits...)
	for _, k := range keepers {
		for _, n := range holders {
			if !w.isInstalled(n) {
				r.add(append(r.clause[:0], w.lits[n].Not(), w.lits[k].Not()), why)
			}
		}
	}
}

// contested says whether a slot excludes anything that the package does not exclude already. Most APIs are
// those of one package.
func (w *world) contested(s slotID, holders []nodeID) bool {
	if w.slots.all[s].pkg != "" {
		return true
	}
	pkg := w.op(holders[0]).Package
	for _, n := range holders {
		if p := w.op(n).Package; p != pkg || p == "" {
			return true
		}
	}
	return false
}
