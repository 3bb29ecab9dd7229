package sat

import "slices"

// Counting finds what clause learning cannot find in reasonable time: more clauses than places. Take clauses of
// which every literal needs a place, where a place is an at-most-one group that holds and that the literal, or
// something that follows from it, stands in. No two of the clauses can have the same place, unless by the same
// literal, and such clauses are not counted together. So if the clauses cannot be matched with places, some of them,
// together with all places that they could have, are a contradiction (Hall's theorem). It becomes a clause of what
// made it so, is learned like any other, and with it all that follows for other assumptions.
//
// It costs a propagation for every literal, so it is done only after some conflicts, then on the way down through the
// first decisions, and less and less often where it finds nothing.

const (
	firstCount = 100  // conflicts of a search before it counts
	countGap   = 50   // conflicts between two counts; it doubles as long as they find nothing
	countDepth = 32   // decisions on the way down from the assumptions before which is counted, ever less often
	countLits  = 4096 // literals up to which is counted
	// countFailed is how many literals that contradict themselves may make a search count anew.
	countFailed = 64
)

// counting is when a solver counts next.
type counting struct {
	patience int // conflicts of a search before it counts
	at       int // conflicts of all searches
	gap      int
}

// due says whether to count at this point of the search, where everything is propagated. Every so often the
// search goes back to the assumptions to begin.
func (q *search) due() bool {
	s := q.s
	if q.counts == 0 {
		if q.conflicts < s.counting.patience || s.conflicts < s.counting.at {
			return false
		}
		s.counting.at, q.counts = s.conflicts+s.counting.gap, countDepth
		s.counting.gap *= 2
		q.fallBack(len(q.assumptions))
	}
	if len(s.levels) < len(q.assumptions) {
		return false
	}
	q.counts--
	down := countDepth - q.counts
	return down&(down-1) == 0
}

// counted says whether a count learned something.
func (q *search) counted() bool {
	s, p := q.s, &q.s.pigeons
	p.reset(s)
	p.collect()
	if c := p.probe(); c.found() {
		q.failed++
		if q.failed <= countFailed {
			q.counts = countDepth // begin again with what is known now
		}
		q.conflict(c)
		return true
	}
	p.settle()
	for i := range p.clauses {
		p.round++
		if p.clauses[i].counts && !p.match(i) {
			s.counting.at, s.counting.gap, q.counts = s.conflicts+countGap, countGap, 0
			q.clash(p.explain())
			return true
		}
	}
	p.suggest()
	return false
}

// clash takes a clause of false literals as a conflict.
func (q *search) clash(clause []Lit) {
	s := q.s
	if len(clause) == 0 {
		s.broken = true
		return
	}
	for i := range clause {
		if s.vars[clause[i].Var()].level > s.vars[clause[0].Var()].level {
			clause[0], clause[i] = clause[i], clause[0]
		}
	}
	s.second(clause)
	top := int(s.vars[clause[0].Var()].level)
	if len(clause) == 1 {
		q.fallBack(0)
		s.assign(clause[0], cause{})
		return
	}
	q.fallBack(top)
	c := s.attach(clause, glueKept) // never forgotten, so that it need not be found again
	s.learned = append(s.learned, c)
	q.conflict(conflict{lit: clause[0], cause: cause{clause: c}})
}

// pigeons is one count. Its memory is used again for the next.
type pigeons struct {
	s       *Solver
	clauses []pigeon
	holes   []hole   // of the clauses, one after the other
	lits    []Lit    // open ones of the clauses, each once
	reached []bool   // by literal: it is one that takes places
	of      [][]hole // by literal
	in      [][]ref  // by literal: the clauses that it stands in
	groups  []place
	owner   []int // by literal that takes a place: the clause, counted from 1, that may use it
	round   int
}

// pigeon is a clause that is not met yet.
type pigeon struct {
	clause ref
	with   []ref // clauses that took the place of some of its literals
	counts bool
	from   int // its holes are holes[from:to]: where each of its open literals goes
	to     int
	took   hole // the one of these that it got
	round  int  // when it was tried last
}

// hole is a place and the literal that takes it if lit is true.
type hole struct {
	lit, by Lit
	group   int32
}

// place is a group while it is counted.
type place struct {
	clauses int // that could go there
	last    int // the last one of them, counted from 1
	lits    int // that could take it
	taken   int // the clause, counted from 1
	round   int // when it was tried last
}

// reset forgets the last count.
func (p *pigeons) reset(s *Solver) {
	p.s, p.clauses, p.holes, p.lits = s, p.clauses[:0], p.holes[:0], p.lits[:0]
	p.groups = cleared(p.groups, len(s.groups))
	p.owner, p.reached = cleared(p.owner, len(s.values)), cleared(p.reached, len(s.values))
	p.of, p.in = emptied(p.of, len(s.values)), emptied(p.in, len(s.values))
}

func cleared[T any](list []T, n int) []T {
	list = slices.Grow(list[:0], n)[:n]
	clear(list)
	return list
}

func emptied[T any](lists [][]T, n int) [][]T {
	lists = slices.Grow(lists, max(0, n-len(lists)))[:n]
	for i := range lists {
		lists[i] = lists[i][:0]
	}
	return lists
}

func (p *pigeons) places(c *pigeon) []hole { return p.holes[c.from:c.to] }

// collect finds the clauses that nothing true meets.
func (p *pigeons) collect() {
	s := p.s
	for at := ref(1); int(at) < len(s.arena); at += headLen + ref(s.arena[at+headSize]) {
		if s.arena[at+headGlue] != 0 || s.met(at) {
			continue
		}
		p.clauses = append(p.clauses, pigeon{clause: at})
		for _, l := range s.lits(at) {
			if s.values[l] != Unassigned {
				continue
			}
			p.in[l] = append(p.in[l], at)
			if !s.marked(l) {
				s.mark(l)
				p.lits = append(p.lits, l)
			}
		}
	}
	s.unmark()
	if len(p.lits) > countLits {
		p.lits, p.clauses = p.lits[:0], p.clauses[:0]
	}
}

func (s *Solver) met(c ref) bool {
	for _, l := range s.lits(c) {
		if s.values[l] == True {
			return true
		}
	}
	return false
}

// probe finds the places that each literal would take. A literal that contradicts itself is a conflict, at a
// level of its own.
func (p *pigeons) probe() conflict {
	s := p.s
	here := len(s.levels)
	for _, l := range p.lits {
		if s.values[l] != Unassigned {
			continue
		}
		s.descend(l)
		if c := s.propagate(); c.found() {
			return c
		}
		for _, by := range s.trail[s.levels[here]:] {
			for i := s.lists[by].use; i != 0; i = s.uses[i].next {
				u := s.uses[i]
				if u.guard || !s.holds(s.groups[u.group].guard, here) {
					continue
				}
				p.of[l] = append(p.of[l], hole{lit: l, by: by, group: u.group})
				if !p.reached[by] {
					p.groups[u.group].lits++
				}
			}
			p.reached[by] = true
		}
		s.retreat(here)
	}
	return conflict{}
}

// holds says whether a guard is true by what is assigned up to a level.
func (s *Solver) holds(guard Lit, level int) bool {
	return guard == LitNone || (s.values[guard] == True && int(s.vars[guard.Var()].level) <= level)
}
