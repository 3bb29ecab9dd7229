package v2

import (
	"errors"
	"slices"
)

// solution is what one component came to.
type solution struct {
	chosen []*node // by the search, in the order of taking; what is fixed is not among them
	queue  []*choice
	touch  slotSet  // slots whose answer it depends on
	all    bool     // it depends on everything
	owns   slotSet  // slots that its roots or its choice hold
	fail   *failure // a fault in catalog content
	ok     bool
	reads  *asker
}

// problem is one component to be solved: its roots, beside everything that is installed.
type problem struct {
	in       *Input
	catalogs []Catalog
	roots    []root
	// fixed are installed CSVs that no root of this component may move.
	fixed []string
	ops   map[string]*operator // installed, by CSV
	table *slotTable
}

// solve runs the search for a component. explain, where given, hears why choices had no candidate left.
func (p problem) solve(explain func(*world, *choice)) solution {
	ask := newAsker(p.in.View, p.catalogs)
	w := newWorld(ask, p.in.Scope.Namespace, p.table)
	for _, inst := range p.in.Installed {
		w.addInstalled(p.ops[inst.CSV], inst.Subscription)
	}
	limit := p.in.Policy.MaxTries
	if limit <= 0 {
		limit = MaxTries
	}
	s := newSearch(w, limit)
	if explain != nil {
		s.dead = func(c *choice) { explain(w, c) }
	}
	sol := solution{reads: ask}
	sol.record(p.start(s, &sol), s)
	return sol
}

// start queues the roots and runs the search.
func (p problem) start(s *search, sol *solution) error {
	for _, csv := range p.fixed {
		s.hold(s.w.installedNamed(csv))
	}
	for i := range p.roots {
		if r := &p.roots[i]; r.held {
			s.take(s.w.installedNamed(r.csv), nil)
			p.own(r, nil, sol)
		}
	}
	fixed := len(s.chosen)
	for i := range p.roots {
		r := &p.roots[i]
		if r.held {
			continue
		}
		cands, none, err := r.candidates(s.w)
		if err != nil {
			return err
		}
		s.queue = append(s.queue, &choice{root: r, cands: cands, none: none})
		p.own(r, cands, sol)
	}
	ok, err := s.run()
	sol.ok = ok
	if ok {
		sol.chosen, sol.queue = s.chosen[fixed:], s.queue
	}
	return err
}

// own notes what a root has a claim on, whatever comes of it; what its candidates provide decides whom they
// could clash with.
func (p problem) own(r *root, cands []*node, sol *solution) {
	if r.sub != nil {
		sol.owns.add(p.table.id(slotPackage + r.sub.Package))
	}
	if op := p.ops[r.csv]; op != nil {
		sol.owns.add(p.table.slots(op)...)
	}
	for _, n := range cands {
		if !n.installed {
			sol.touch.add(p.table.slots(n.op)...)
		}
	}
}

// record notes what the solution depends on and holds. Every requirement that was looked at counts, also
// those of candidates that were not chosen.
func (sol *solution) record(err error, s *search) {
	var f *failure
	switch {
	case errors.As(err, &f):
		sol.fail = f
	case err != nil:
		sol.fail = &failure{class: ClassTooComplex, statement: tooComplex(s.max)}
	}
	t := s.w.table
	for r := range s.asked {
		r.touched(t, &sol.touch)
	}
	for _, c := range s.queue {
		if c.met != nil {
			sol.touch.add(t.id(slotName + c.met.op.name))
		}
	}
	for k, cands := range s.cache {
		sol.all = k.req.touched(t, &sol.touch) || sol.all
		for _, n := range cands {
			sol.touch.add(t.slots(n.op)...)
		}
	}
	for _, n := range sol.chosen {
		sol.owns.add(t.slots(n.op)...)
	}
}

// planned are the chosen nodes that are not installed, sorted by name.
func (sol *solution) planned() []*node {
	var out []*node
	for _, n := range sol.chosen {
		if !n.installed {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, compareNodes)
	return out
}
