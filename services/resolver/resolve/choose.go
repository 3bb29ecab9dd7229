package resolve

import (
	"slices"

	"github.com/chandler-fleet/chandler/services/resolver/sat"
)

// Bounds of the search in one cluster, in conflicts: a count gives the same answer on any machine. Real
// namespaces have a few; so many take about a quarter of a second.
const (
	MaxConflicts = 10_000
	// guidedConflicts is how long the search in the order of preference goes on by itself. Longer ones are
	// decided option by option, where the solver may look for any solution in any order.
	guidedConflicts = 1_000
)

// choice is something of which one candidate has to be chosen: for a subscription, or for a requirement of
// something chosen.
type choice struct {
	cands []nodeID
	root  *root  // nil for a requirement
	from  nodeID // who requires; none for a subscription
	need  int32
	met   nodeID // what was chosen, or what was there already
}

// chooser makes the choices of a cluster in OLM's order (RESOLVER-NOTES §4): subscriptions by name, then what the
// CSVs that stay require, then what was chosen requires, in the order of choosing. A choice that something taken
// meets takes nothing; else the first candidate that is not impossible is taken. It is the guide of the solver.
type chooser struct {
	c     *cluster
	s     *sat.Solver
	queue []choice
	at    int      // the first choice that is not made
	taken []nodeID // in the order of taking
	is    []bool   // taken, by variable
	marks []mark   // before each choice that took something
}

type mark struct{ at, queue, taken int }

func newChooser(c *cluster, s *sat.Solver) *chooser {
	h := &chooser{c: c, s: s, is: make([]bool, len(c.nodes)+1)}
	for _, r := range c.roots {
		if r.state == wanted {
			h.queue = append(h.queue, choice{cands: r.cands, root: r, from: none, met: none})
		}
	}
	for _, r := range c.roots {
		if r.stays() {
			h.take(r.node)
		}
	}
	return h
}

// choose makes all choices. What it took is in the chooser where the answer is Sat.
func (c *cluster) choose(limit int) (*chooser, sat.Status) {
	s := newRules(c, false).s
	h := newChooser(c, s)
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
	for _, n := range c.cands {
		if l := h.c.w.lits[n]; h.s.Assigned(l) != sat.False {
			h.decide(n)
			return l
		}
	}
	return sat.LitNone // not reached: a choice without candidates is a contradiction
}

// front is the first choice that nothing taken meets, nil where all are met.
func (h *chooser) front() *choice {
	for ; h.at < len(h.queue); h.at++ {
		c := &h.queue[h.at]
		i := slices.IndexFunc(c.cands, h.has)
		if i < 0 {
			return c
		}
		c.met = c.cands[i]
	}
	return nil
}

// decide takes a candidate of the front choice.
func (h *chooser) decide(n nodeID) {
	h.marks = append(h.marks, mark{at: h.at, queue: len(h.queue), taken: len(h.taken)})
	h.queue[h.at].met = n
	h.at++
	h.take(n)
}

func (h *chooser) has(n nodeID) bool { return h.is[h.c.w.lits[n].Var()] }

// take notes a node as taken and queues what it requires.
func (h *chooser) take(n nodeID) {
	w := h.c.w
	h.taken = append(h.taken, n)
	h.is[w.lits[n].Var()] = true
	rt := h.c.of(n)
	for _, i := range w.shapes[w.nodes[n].shape].needs {
		if !rt.rigid() || rt.keeps(w, i) {
			h.queue = append(h.queue, choice{cands: w.needs[i].cands, from: n, need: i, met: none})
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
		h.is[h.c.w.lits[n].Var()] = false
	}
	h.taken, h.queue, h.at = h.taken[:m.taken], h.queue[:m.queue], m.at
}

// stepwise asks for each candidate whether any solution has it together with what is taken. The answer is the
// same as that of the guided search; a solution that is known saves most questions.
func (h *chooser) stepwise() sat.Status {
	status := h.s.Solve()
	var assumed []sat.Lit
	for c := h.front(); c != nil && status == sat.Sat; c = h.front() {
		for _, n := range c.cands {
			l := h.c.w.lits[n]
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
