package search

import (
	"slices"

	"github.com/chandler-fleet/chandler/services/resolver/resolve/graph"
	"github.com/chandler-fleet/chandler/services/resolver/sat"
)

// Bounds of the search in one partition, in conflicts: a count gives the same answer on any machine. Real
// namespaces have a few; so many take about a quarter of a second.
const (
	MaxConflicts = 10_000
	// guidedConflicts is how long the search in the order of preference goes on by itself. Longer ones are
	// decided option by option, where the solver may search for any solution in any order.
	guidedConflicts = 1_000
)

// Choice is something of which one candidate has to be chosen: for a subscription, or for a requirement of
// something chosen.
type Choice struct {
	Candidates  []graph.NodeID
	Root        int          // -1 for a requirement
	From        graph.NodeID // what requires; graph.None for a subscription
	Requirement int32
	Met         graph.NodeID // what was chosen, or what was there already
}

// chooser makes the choices of a partition in OLM's order (RESOLVER-NOTES §4): subscriptions by name, then what the
// CSVs that stay require, then what was chosen requires, in the order of choosing. A choice that something taken
// meets takes nothing; else the first candidate that is not impossible is taken. It is the guide of the solver.
type chooser struct {
	p     *problem
	s     *sat.Solver
	queue []Choice
	at    int            // the first choice that is not made
	taken []graph.NodeID // in the order of taking
	is    []bool         // taken, by place
	marks []mark         // before each choice that took something
}

type mark struct{ at, queue, taken int }

func newChooser(p *problem, s *sat.Solver) *chooser {
	h := &chooser{p: p, s: s, is: make([]bool, len(p.Members))}
	for i, r := range p.Roots {
		if p.states[i] == Wanted {
			h.queue = append(h.queue, Choice{Candidates: r.Candidates, Root: i, From: graph.None, Met: graph.None})
		}
	}
	for i, r := range p.Roots {
		if p.stays(i) {
			h.take(r.Node)
		}
	}
	return h
}

// choose makes all choices. What it took is in the chooser where the answer is Sat.
func (p *problem) choose(limit int) (*chooser, sat.Status) {
	s := newRules(p, false).s
	h := newChooser(p, s)
	start := mark{queue: len(h.queue), taken: len(h.taken)}
	s.Budget(min(limit, guidedConflicts))
	status := s.Guided(h)
	if status == sat.TooHard && limit > guidedConflicts {
		h.back(start)
		h.marks = nil
		s.Budget(limit - guidedConflicts)
		status = h.stepwise()
	}
	return h, status
}

// Next implements sat.Guide.
func (h *chooser) Next() sat.Lit {
	c := h.front()
	if c == nil {
		return sat.LitNone
	}
	for _, n := range c.Candidates {
		if l := h.p.literal(n); h.s.Assigned(l) != sat.False {
			h.decide(n)
			return l
		}
	}
	return sat.LitNone // not reached: a choice without candidates is a contradiction
}

// front is the first choice that nothing taken meets, nil where all are met.
func (h *chooser) front() *Choice {
	for ; h.at < len(h.queue); h.at++ {
		c := &h.queue[h.at]
		i := slices.IndexFunc(c.Candidates, h.has)
		if i < 0 {
			return c
		}
		c.Met = c.Candidates[i]
	}
	return nil
}

// decide takes a candidate of the front choice.
func (h *chooser) decide(n graph.NodeID) {
	h.marks = append(h.marks, mark{at: h.at, queue: len(h.queue), taken: len(h.taken)})
	h.queue[h.at].Met = n
	h.at++
	h.take(n)
}

func (h *chooser) has(n graph.NodeID) bool { return h.is[h.p.Place[n]] }

// take notes a node as taken and queues what it requires.
func (h *chooser) take(n graph.NodeID) {
	h.taken = append(h.taken, n)
	h.is[h.p.Place[n]] = true
	state := h.p.stateOf(n)
	for _, i := range h.p.OperatorOf(n).Requirements {
		if h.p.counts(state, i) {
			h.queue = append(h.queue, Choice{
				Candidates: h.p.Requirements[i].Candidates, Root: -1, From: n, Requirement: i, Met: graph.None,
			})
		}
	}
}

// Undo implements sat.Guide.
func (h *chooser) Undo(kept int) {
	h.back(h.marks[kept])
	h.marks = h.marks[:kept]
}

func (h *chooser) back(m mark) {
	for _, n := range h.taken[m.taken:] {
		h.is[h.p.Place[n]] = false
	}
	h.taken, h.queue, h.at = h.taken[:m.taken], h.queue[:m.queue], m.at
}

// stepwise asks for each candidate whether any solution has it together with what is taken. The answer is the
// same as that of the guided search; a solution that is known saves most questions.
func (h *chooser) stepwise() sat.Status {
	status := h.s.Solve()
	var assumed []sat.Lit
	for c := h.front(); c != nil && status == sat.Sat; c = h.front() {
		for _, n := range c.Candidates {
			l := h.p.literal(n)
			if status = sat.Sat; !h.s.Value(l.Var()) {
				status = h.s.Solve(append(assumed, l)...)
			}
			if status == sat.Sat {
				assumed = append(assumed, l)
				h.decide(n)
			}
			if status != sat.Unsat {
				break
			}
		}
	}
	return status
}
