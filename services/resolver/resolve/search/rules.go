package search

import (
	"slices"

	"github.com/chandler-fleet/chandler/services/resolver/resolve/graph"
	"github.com/chandler-fleet/chandler/services/resolver/sat"
)

// Reason is one rule that a solution has to keep, as people would name it. Clauses that say the same to them,
// for the same bundle in two channels for example, have one reason.
type Reason struct {
	Kind ReasonKind
	A, B int32
}

// ReasonKind is what a reason is about.
type ReasonKind uint8

// The kinds of reason, in the order in which an explanation tries to do without them: first it fails as few
// roots as it can, then it prefers what a bundle requires to what excludes it.
const (
	ByRoot        ReasonKind = iota // A: root of the partition
	BySlot                          // A: slot
	ByReplaces                      // A: node, B: the installed CSV that it replaces
	ByPolicy                        // A: operator
	ByDeprecated                    // A: operator
	ByTwice                         // A: operator that lists an API twice
	ByRequirement                   // A: operator, B: requirement
)

// rules puts what a partition demands before a solver. The variables of a partition's nodes are the first ones.
// With guards, each reason can be assumed or left out; without, all hold.
type rules struct {
	p       *problem
	s       *sat.Solver
	guarded bool
	guards  map[Reason]sat.Lit
	order   []sat.Lit          // of guards, as they were made
	reasons map[sat.Lit]Reason // of guards
	met     map[int32]sat.Lit  // by requirement that many have: something meets it
	clause  []sat.Lit
}

// reservedLiterals is about how many literals the rules have for each node.
const reservedLiterals = 4

func newRules(p *problem, guarded bool) *rules {
	r := &rules{p: p, s: sat.New(), guarded: guarded, met: map[int32]sat.Lit{}}
	if guarded {
		r.guards, r.reasons = map[Reason]sat.Lit{}, map[sat.Lit]Reason{}
	}
	r.s.Share(p.Effort)
	r.s.Reserve(len(p.Members), reservedLiterals*len(p.Members))
	for range p.Members {
		r.s.Var()
	}
	for i := range p.Roots {
		r.root(i)
	}
	for _, n := range p.Members {
		r.node(n)
	}
	for _, t := range p.apart {
		r.exclude(t.by, t.csv, Reason{Kind: ByReplaces, A: int32(t.by), B: int32(t.csv)})
	}
	r.slots()
	return r
}

// guard is the literal of a reason, LitNone where reasons have no guards.
func (r *rules) guard(why Reason) sat.Lit {
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

func (r *rules) add(lits []sat.Lit, why Reason) {
	if g := r.guard(why); g != sat.LitNone {
		lits = append(lits, g.Not())
	}
	r.s.Clause(lits...)
	r.clause = lits[:0]
}

// exclude lets at most one of two nodes be chosen.
func (r *rules) exclude(a, b graph.NodeID, why Reason) {
	r.add(append(r.clause[:0], r.p.literal(a).Not(), r.p.literal(b).Not()), why)
}

// root demands a candidate for a subscription that wants one, or the CSV that stays.
func (r *rules) root(i int) {
	rt, why := r.p.Roots[i], Reason{Kind: ByRoot, A: int32(i)}
	switch {
	case r.p.states[i] == Absent:
	case r.p.stays(i):
		r.add(append(r.clause[:0], r.p.literal(rt.Node)), why)
	default:
		lits := r.clause[:0]
		for _, n := range rt.Candidates {
			lits = append(lits, r.p.literal(n))
		}
		r.add(lits, why)
		r.replaces(rt)
	}
}

// replaces excludes what is installed from staying beside what replaces it. Where both are of one package
// that is so anyway; the package of a CSV may be unknown.
func (r *rules) replaces(rt *graph.Root) {
	if rt.Node == graph.None {
		return
	}
	pkg := r.p.Op(rt.Node).Package
	for _, n := range rt.Candidates {
		if n == rt.Node || pkg != "" && r.p.Op(n).Package == pkg {
			continue
		}
		r.exclude(n, rt.Node, Reason{Kind: ByReplaces, A: int32(n), B: int32(rt.Node)})
	}
}

// node adds what a node demands, and what forbids it.
func (r *rules) node(n graph.NodeID) {
	l, at := r.p.literal(n), r.p.Nodes[n].Operator
	op := &r.p.Operators[at]
	state := r.p.stateOf(n)
	if !state.rigid() {
		r.forbid(l, at, op)
	}
	for j, i := range op.Requirements {
		if !r.p.counts(state, i) || r.guarded && r.redundant(op.Requirements[j:]) {
			continue
		}
		r.add(r.meeting(r.clause[:0], i, l.Not()), Reason{Kind: ByRequirement, A: at, B: i})
	}
}

// meeting adds to a clause that something meets a requirement, and further literals. Where many have the requirement,
// one variable represents its candidates, so that these are written down once.
func (r *rules) meeting(lits []sat.Lit, requirement int32, more ...sat.Lit) []sat.Lit {
	req := &r.p.Requirements[requirement]
	if req.Users == 1 || len(req.Candidates) <= fewCandidates {
		for _, m := range req.Candidates {
			lits = append(lits, r.p.literal(m))
		}
		return append(lits, more...)
	}
	met, ok := r.met[requirement]
	if !ok {
		met = r.s.Var().Lit()
		r.met[requirement] = met
		all := append(make([]sat.Lit, 0, len(req.Candidates)+1), met.Not())
		for _, m := range req.Candidates {
			all = append(all, r.p.literal(m))
		}
		r.s.Clause(all...)
	}
	return append(append(lits, met), more...)
}

// fewCandidates are written down each time.
const fewCandidates = 2

// redundant says whether the first of some requirements of one bundle says no more than a later one: nothing at all
// meets either. One is enough for an explanation, and OLM names the last (RESOLVER-NOTES §10).
func (r *rules) redundant(requirements []int32) bool {
	unmet := func(i int32) bool { return len(r.p.Requirements[i].Candidates) == 0 }
	return unmet(requirements[0]) && slices.ContainsFunc(requirements[1:], unmet)
}

func (r *rules) forbid(l sat.Lit, at int32, op *graph.Operator) {
	if op.Offer.Deprecated {
		r.add(append(r.clause[:0], l.Not()), Reason{Kind: ByDeprecated, A: at})
	}
	if op.Offer.Twice != "" {
		r.add(append(r.clause[:0], l.Not()), Reason{Kind: ByTwice, A: at})
	}
	if op.Bound >= 0 {
		r.add(append(r.clause[:0], l.Not()), Reason{Kind: ByPolicy, A: at})
	}
}

// slots lets every slot have one holder. CSVs that are rigid keep theirs, whoever else of what is
// installed has it, too; and nothing new gets it.
func (r *rules) slots() {
	seen := make(map[graph.SlotID]bool, len(r.p.Members))
	for _, n := range r.p.Members {
		for _, s := range r.p.OperatorOf(n).Slots {
			if holders := r.p.Holders(s); len(holders) > 1 && !seen[s] && r.contested(s, holders) {
				seen[s] = true
				r.slot(s, holders)
			}
		}
	}
}

func (r *rules) slot(s graph.SlotID, holders []graph.NodeID) {
	why := Reason{Kind: BySlot, A: int32(s)}
	lits := r.clause[:0]
	var keepers []graph.NodeID
	for _, n := range holders {
		if r.p.stateOf(n).rigid() {
			keepers = append(keepers, n)
			continue
		}
		lits = append(lits, r.p.literal(n))
	}
	r.clause = lits
	r.s.AtMostOne(r.guard(why), lits...)
	for _, k := range keepers {
		for _, n := range holders {
			if !r.p.IsInstalled(n) {
				r.exclude(n, k, why)
			}
		}
	}
}

// contested says whether a slot excludes anything that the package does not exclude already. Most APIs are
// those of one package.
func (r *rules) contested(s graph.SlotID, holders []graph.NodeID) bool {
	if r.p.Slot(s).Package != "" {
		return true
	}
	pkg := r.p.Op(holders[0]).Package
	for _, n := range holders {
		if p := r.p.Op(n).Package; p != pkg || p == "" {
			return true
		}
	}
	return false
}
