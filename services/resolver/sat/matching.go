package sat

import "slices"

// Counting finds what clause learning cannot find in reasonable time: more clauses than places. Take clauses of
// which every literal needs a place, where a place is an at-most-one group that holds and that the literal, or
// something that follows from it, belongs to. No two of the clauses can have the same place, unless by the same
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
	s, p := q.s, &q.s.matching
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

// matching is one count. Its memory is used again for the next.
type matching struct {
	s       *Solver
	clauses []openClause
	options []option   // of the clauses, one after the other
	lits    []Lit      // open ones of the clauses, each once
	reached []bool     // by literal: it is one that takes places
	of      [][]option // by literal
	in      [][]ref    // by literal: the clauses that have it
	groups  []groupState
	owner   []int // by literal that takes a place: the clause, counted from 1, that may use it
	round   int
}

// openClause is a clause that is not met yet.
type openClause struct {
	clause ref
	with   []ref // clauses that took the place of some of its literals
	counts bool
	from   int // its options are options[from:to]: where each of its open literals goes
	to     int
	took   option // the one of these that it got
	round  int    // when it was tried last
}

// option is a place and the literal that takes it if lit is true.
type option struct {
	lit, by Lit
	group   int32
}

// groupState is a group while it is counted.
type groupState struct {
	clauses int // that could go there
	last    int // the last one of them, counted from 1
	lits    int // that could take it
	taken   int // the clause, counted from 1
	round   int // when it was tried last
}

// reset forgets the last count.
func (m *matching) reset(s *Solver) {
	m.s, m.clauses, m.options, m.lits = s, m.clauses[:0], m.options[:0], m.lits[:0]
	m.groups = cleared(m.groups, len(s.groups))
	m.owner, m.reached = cleared(m.owner, len(s.values)), cleared(m.reached, len(s.values))
	m.of, m.in = emptied(m.of, len(s.values)), emptied(m.in, len(s.values))
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

func (m *matching) optionsOf(c *openClause) []option { return m.options[c.from:c.to] }

// collect finds the clauses that nothing true meets.
func (m *matching) collect() {
	s := m.s
	for at := ref(1); int(at) < len(s.arena); at += headLen + ref(s.arena[at+headSize]) {
		if s.arena[at+headGlue] != 0 || s.met(at) {
			continue
		}
		m.clauses = append(m.clauses, openClause{clause: at})
		for _, l := range s.lits(at) {
			if s.values[l] != Unassigned {
				continue
			}
			m.in[l] = append(m.in[l], at)
			if !s.marked(l) {
				s.mark(l)
				m.lits = append(m.lits, l)
			}
		}
	}
	s.unmark()
	if len(m.lits) > countLits {
		m.lits, m.clauses = m.lits[:0], m.clauses[:0]
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
func (m *matching) probe() conflict {
	s := m.s
	here := len(s.levels)
	for _, l := range m.lits {
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
				m.of[l] = append(m.of[l], option{lit: l, by: by, group: u.group})
				if !m.reached[by] {
					m.groups[u.group].lits++
				}
			}
			m.reached[by] = true
		}
		s.retreat(here)
	}
	return conflict{}
}

// holds says whether a guard is true by what is assigned up to a level.
func (s *Solver) holds(guard Lit, level int) bool {
	return guard == LitNone || (s.values[guard] == True && int(s.vars[guard.Var()].level) <= level)
}

// settle chooses a place for each literal of each clause: the one for which most clauses compete.
func (m *matching) settle() {
	for i := range m.clauses {
		for _, l := range m.s.lits(m.clauses[i].clause) {
			for _, h := range m.of[l] {
				if g := &m.groups[h.group]; g.last != i+1 {
					g.last = i + 1
					g.clauses++
				}
			}
		}
	}
	for i := range m.clauses {
		m.settleClause(i)
	}
}

// settleClause finds where the literals of a clause go. A literal that goes nowhere by itself may need what does: a
// clause that says so takes its place (resolution).
func (m *matching) settleClause(i int) {
	c := &m.clauses[i]
	c.from = len(m.options)
	for _, l := range m.s.lits(c.clause) {
		if m.s.values[l] != Unassigned {
			continue
		}
		if h := m.best(l); m.rivals(h) > 1 {
			m.options = append(m.options, h)
			continue
		}
		if !m.replace(c, l) {
			m.options, c.to = m.options[:c.from], c.from
			return
		}
	}
	c.counts, c.to = true, len(m.options)
	for _, h := range m.optionsOf(c) {
		m.owner[h.by] = i + 1
	}
}

// replace takes the places of a clause that says what a literal needs.
func (m *matching) replace(c *openClause, l Lit) bool {
	known := len(m.options)
	for _, d := range m.in[l.Not()] {
		whole := true
		for _, other := range m.s.lits(d) {
			if other == l.Not() || m.s.values[other] != Unassigned {
				continue
			}
			h := m.best(other)
			if whole = m.rivals(h) > 1; !whole {
				break
			}
			m.options = append(m.options, h)
		}
		if whole {
			c.with = append(c.with, d)
			return true
		}
		m.options = m.options[:known]
	}
	return false
}

// best is the place of a literal for which most clauses compete, and that no other clause has by the same
// literal.
func (m *matching) best(l Lit) option {
	best := option{}
	for _, h := range m.of[l] {
		if m.owner[h.by] == 0 && (best.lit == LitNone || m.rivals(h) > m.rivals(best)) {
			best = h
		}
	}
	return best
}

// rivals is how many clauses compete for a place with literals of their own; one is none.
func (m *matching) rivals(h option) int {
	if h.lit == LitNone {
		return 0
	}
	return min(m.groups[h.group].clauses, m.groups[h.group].lits)
}

// match finds a place for a clause, moving others where that helps. Where it fails, the places tried and the clauses
// that have them are too many for each other.
func (m *matching) match(i int) bool {
	m.clauses[i].round = m.round
	for _, h := range m.optionsOf(&m.clauses[i]) {
		g := &m.groups[h.group]
		if g.round == m.round {
			continue
		}
		g.round = m.round
		if g.taken == 0 || m.match(g.taken-1) {
			g.taken, m.clauses[i].took = i+1, h
			return true
		}
	}
	return false
}

// suggest makes the places found the values that Solve tries first.
func (m *matching) suggest() {
	for i := range m.clauses {
		c := &m.clauses[i]
		if !c.counts {
			continue
		}
		for _, h := range m.optionsOf(c) {
			m.s.vars[h.lit.Var()].was = h.lit.Negative() != (h == c.took)
		}
	}
}

// explain gives the clause that the failed round proves.
func (m *matching) explain() []Lit {
	s := m.s
	var out []Lit
	add := func(l Lit) {
		if s.vars[l.Var()].level > 0 && !s.marked(l) {
			s.mark(l)
			out = append(out, l)
		}
	}
	for i := range m.clauses {
		c := &m.clauses[i]
		if c.round != m.round {
			continue
		}
		for _, said := range append(c.with, c.clause) {
			for _, l := range s.lits(said) {
				if s.values[l] == False {
					add(l)
				}
			}
		}
		for _, h := range m.optionsOf(c) {
			if guard := s.groups[h.group].guard; guard != LitNone {
				add(guard.Not())
			}
			s.why(h, add)
		}
	}
	s.unmark()
	return out
}

// why adds what beside the literal itself makes it take its place.
func (s *Solver) why(h option, add func(Lit)) {
	here := len(s.levels)
	s.descend(h.lit)
	s.propagate()
	s.vars[h.by.Var()].seen = true
	for at := len(s.trail) - 1; at >= s.levels[here]; at-- {
		v := &s.vars[s.trail[at].Var()]
		if !v.seen {
			continue
		}
		v.seen = false
		if at == s.levels[here] {
			break // the literal itself
		}
		for _, l := range s.because(v.cause) {
			if w := &s.vars[l.Var()]; int(w.level) > here {
				w.seen = true
			} else {
				add(l)
			}
		}
	}
	s.retreat(here)
}
