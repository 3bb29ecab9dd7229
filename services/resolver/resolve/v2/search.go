package v2

import (
	"errors"
	"slices"
)

// MaxTries bounds the candidates tried for one component, so that a hostile catalog meets a fixed bound and
// a named error (DESIGN D10). Real namespaces need some hundreds; a try takes some microseconds.
const MaxTries = 50_000

var errTooComplex = errors.New("too complex")

// choice is a root or a requirement of a chosen node: one of its candidates has to be chosen.
type choice struct {
	root   *root
	from   *node // who requires; nil for a root
	req    *requirement
	cands  []*node
	filled bool        // cands of a requirement were looked up
	none   []Statement // why a root has no candidates

	met     *node // what meets it, valid while chosen
	watch   [2]*node
	watched bool
}

// meets says whether a chosen node satisfies the choice.
func (c *choice) meets(n *node) bool {
	if c.req != nil {
		return c.req.matches(n.op)
	}
	return slices.Contains(c.cands, n)
}

// search finds the first solution in the order of preference by choosing and undoing. It works on one
// world; its state is the chosen nodes and the queue of choices.
type search struct {
	w      *world
	queue  []*choice
	chosen []*node
	tries  int
	max    int
	cache  map[requirementKey][]*node
	asked  map[*requirement]bool // every requirement of every node that was chosen for a while
	// dead collects why choices had no candidate left, when an explanation is wanted.
	dead func(*choice)
}

type requirementKey struct {
	req *requirement
	own CatalogKey
}

func newSearch(w *world, limit int) *search {
	return &search{w: w, max: limit, cache: map[requirementKey][]*node{}, asked: map[*requirement]bool{}}
}

type mark struct{ queue, chosen int }

func (s *search) mark() mark { return mark{len(s.queue), len(s.chosen)} }

// undo takes back everything after m. The choices that the taken-back nodes brought stand at the end of the
// queue, since choices are added in the order in which nodes are taken.
func (s *search) undo(m mark) {
	for _, n := range s.chosen[m.chosen:] {
		n.chosen, n.why = false, nil
		for _, sl := range n.slots {
			s.w.holder[sl] = nil
		}
	}
	s.chosen, s.queue = s.chosen[:m.chosen], s.queue[:m.queue]
}

// hold makes a node part of the solution without its requirements.
func (s *search) hold(n *node) {
	n.chosen = true
	s.chosen = append(s.chosen, n)
	for _, sl := range n.slots {
		s.w.holder[sl] = n
	}
}

// take chooses a node and queues its requirements.
func (s *search) take(n *node, why *choice) {
	s.hold(n)
	n.why = why
	for i := range n.op.requires {
		r := &n.op.requires[i]
		s.asked[r] = true
		s.queue = append(s.queue, &choice{from: n, req: r})
	}
}

// fill looks up the candidates of a requirement, only when something chosen does not meet it already, so
// that catalogs that do not matter are not read.
func (s *search) fill(c *choice) error {
	if c.req == nil || c.filled {
		return nil
	}
	k := requirementKey{c.req, c.from.catalog.Key}
	cands, ok := s.cache[k]
	if !ok {
		var err error
		if cands, err = s.w.candidates(c.req, c.from.catalog.Key); err != nil {
			return err
		}
		for _, n := range cands {
			if err := malformed(n.catalog, n.op.pkg, n.op); err != nil && !n.installed {
				return err
			}
		}
		s.cache[k] = cands
	}
	c.cands, c.filled = cands, true
	return nil
}

// run solves what is queued. False means that there is no solution.
func (s *search) run() (bool, error) {
	start := s.mark()
	ok, err := s.propagate()
	if err != nil {
		return false, err
	}
	if !ok {
		s.undo(start)
		return false, nil
	}
	c := s.open()
	if c == nil {
		return true, nil
	}
	before := s.mark()
	for _, n := range c.cands {
		s.tries++
		if s.tries > s.max {
			return false, errTooComplex
		}
		if !s.w.fits(n) {
			continue
		}
		s.take(n, c)
		if ok, err := s.run(); ok || err != nil {
			return ok, err
		}
		s.undo(before)
	}
	s.undo(start)
	return false, nil
}

// propagate takes what there is no choice about, until nothing changes. False is a dead end.
func (s *search) propagate() (bool, error) {
	for changed := true; changed; {
		changed = false
		for i := 0; i < len(s.queue); { // it grows meanwhile
			c := s.queue[i]
			i++
			if s.isMet(c) {
				continue
			}
			if err := s.fill(c); err != nil {
				return false, err
			}
			only, n := s.remaining(c)
			if n == 0 {
				if s.dead != nil {
					s.dead(c)
				}
				return false, nil
			}
			if n == 1 {
				s.take(only, c)
				changed = true
			}
		}
	}
	return true, nil
}

// remaining counts candidates that still fit: 0, 1 with the one, or 2 for more. Two that fitted are
// remembered and looked at first.
func (s *search) remaining(c *choice) (*node, int) {
	if c.watched && s.w.fits(c.watch[0]) && s.w.fits(c.watch[1]) {
		return nil, 2
	}
	var first *node
	for _, n := range c.cands {
		if !s.w.fits(n) {
			continue
		}
		if first != nil {
			c.watch, c.watched = [2]*node{first, n}, true
			return nil, 2
		}
		first = n
	}
	if first == nil {
		return nil, 0
	}
	return first, 1
}

func (s *search) isMet(c *choice) bool {
	if c.met != nil && c.met.chosen {
		return true
	}
	for _, n := range s.chosen {
		if c.meets(n) {
			c.met = n
			return true
		}
	}
	return false
}

// open is the first choice that nothing chosen meets; nil where all are met.
func (s *search) open() *choice {
	for _, c := range s.queue {
		if !s.isMet(c) {
			return c
		}
	}
	return nil
}
