package resolve

import (
	"errors"
	"slices"
)

// solution is what one component came to.
type solution struct {
	chosen []*node // by the search, in the order of taking; what is fixed is not among them
	queue  []*choice
	touch  map[string]bool // slots whose answer it depends on
	all    bool            // it depends on everything
	owns   map[string]bool // slots that its roots or its choice hold
	fail   *failure        // a fault in catalog content
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
}

// solve runs the search for a component. explain, where given, hears why choices had no candidate left.
func (p problem) solve(explain func(*world, *choice)) solution {
	ask := newAsker(p.in.View, p.catalogs)
	w := newWorld(ask, p.in.Scope.Namespace)
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
	sol := solution{touch: map[string]bool{}, owns: map[string]bool{}, reads: ask}
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

// own notes what a root has a claim on, whatever comes of it.
func (p problem) own(r *root, cands []*node, sol *solution) {
	if r.sub != nil {
		sol.owns[slotPackage+r.sub.Package] = true
	}
	if op := p.ops[r.csv]; op != nil {
		for _, s := range op.slots {
			sol.owns[s] = true
		}
	}
	for _, n := range cands {
		if n.installed {
			continue
		}
		// What candidates provide decides whom they could clash with.
		for _, s := range n.op.slots {
			sol.touch[s] = true
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
	for r := range s.asked {
		r.touched(sol.touch)
	}
	for _, c := range s.queue {
		if c.met != nil {
			sol.touch[slotName+c.met.op.name] = true
		}
	}
	for k, cands := range s.cache {
		sol.all = k.req.touched(sol.touch) || sol.all
		for _, n := range cands {
			for _, t := range n.op.slots {
				sol.touch[t] = true
			}
		}
	}
	for _, n := range sol.chosen {
		for _, t := range n.op.slots {
			sol.owns[t] = true
		}
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
