package sat

import "math/bits"

// Guide decides what a guided search tries. It may ask Assigned, and must not change the solver.
type Guide interface {
	// Next is the next decision: a literal that is not false. It is asked when everything that follows from the
	// decisions so far is assigned without contradiction. A literal that is true already counts as a decision, too, so
	// that guide and solver count alike. LitNone: all that is wanted is decided, and the rest is to be false.
	Next() Lit
	// Undo takes back all decisions but the first kept ones.
	Undo(kept int)
}

// restartUnit is how many conflicts the shortest run between two restarts has.
const restartUnit = 64

// Solve searches for a model in which the assumptions are true.
func (s *Solver) Solve(assumptions ...Lit) Status {
	return s.run(&search{s: s, assumptions: assumptions, until: restartUnit})
}

// Guided searches for the first model in the guide's order of preference in which the assumptions are true. After
// Sat the guide is at its last decision; after anything else its state is that of some point of the search.
func (s *Solver) Guided(g Guide, assumptions ...Lit) Status {
	return s.run(&search{s: s, assumptions: assumptions, guide: g})
}

// search is one call of Solve or Guided. The first levels are those of the assumptions.
type search struct {
	s           *Solver
	assumptions []Lit
	guide       Guide
	guided      int // decisions of the guide, which have the levels after those of the assumptions
	conflicts   int
	restarts    uint
	until       int // conflicts before the next restart
	counts      int // decisions on the way down before which is still counted
	failed      int // literals that contradicted themselves in counts
}

func (s *Solver) run(q *search) Status {
	s.core = s.core[:0]
	s.free = 1
	status := q.status()
	if status == Sat {
		for v := range s.model {
			s.model[v] = s.values[Var(v).Lit()] == True
		}
	}
	s.retreat(0)
	return status
}

func (q *search) status() Status {
	s := q.s
	for !s.broken {
		if c := s.propagate(); c.found() {
			if len(s.levels) == 0 {
				s.broken = true
				break
			}
			if s.limit != noLimit && s.conflicts >= s.limit || s.effort.Spent() {
				return TooHard
			}
			q.conflict(c)
			continue
		}
		if len(s.learned) >= s.keep {
			s.reduce()
		}
		if q.guide == nil && q.conflicts >= q.until {
			q.restart()
		}
		if q.due() && q.counted() {
			continue
		}
		if done, status := q.decide(); done {
			return status
		}
	}
	return Unsat
}

// conflict learns from a contradiction and falls back to where the learned clause says something new.
func (q *search) conflict(c conflict) {
	s := q.s
	s.conflicts++
	s.effort.conflict()
	q.conflicts++
	clause, back := s.analyse(c)
	glue := s.glue(clause)
	q.fallBack(back)
	s.learn(clause, glue)
	s.order.age()
}

// fallBack takes back all levels above one, and notifies the guide.
func (q *search) fallBack(level int) {
	q.s.retreat(level)
	if kept := max(0, level-len(q.assumptions)); kept < q.guided {
		q.guided = kept
		q.guide.Undo(kept)
	}
}

func (q *search) restart() {
	q.restarts++
	q.until = q.conflicts + restartUnit*luby(q.restarts)
	q.s.retreat(0)
}

// luby is the sequence 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 …, from 0 on.
func luby(i uint) int {
	for {
		i++
		if i&(i+1) == 0 {
			return int(i+1) / 2
		}
		i -= 1<<(bits.Len(i)-1) - 1
		i--
	}
}

// decide opens the next level: an assumption, what the guide wants, or what is left. done says that the search
// has ended.
func (q *search) decide() (done bool, status Status) {
	s := q.s
	for len(s.levels) < len(q.assumptions) {
		l := q.assumptions[len(s.levels)]
		if s.values[l] == False {
			s.blame(l)
			return true, Unsat
		}
		s.descend(l)
		if s.head < len(s.trail) {
			return false, 0
		}
	}
	next := q.wanted()
	if next == LitNone {
		return true, Sat
	}
	s.descend(next)
	return false, 0
}

// wanted is the next decision after the assumptions; LitNone where everything is assigned.
func (q *search) wanted() Lit {
	s := q.s
	if q.guide == nil {
		return s.active()
	}
	if len(s.levels) == len(q.assumptions)+q.guided {
		if l := q.guide.Next(); l != LitNone {
			if s.values[l] == False {
				panic("sat: the guide decided for a literal that is false")
			}
			q.guided++
			return l
		}
	}
	for ; int(s.free) < len(s.vars); s.free++ {
		if s.values[s.free.Not()] == Unassigned {
			return s.free.Not()
		}
	}
	return LitNone
}

// active is the most active unassigned variable, with the value that it had last.
func (s *Solver) active() Lit {
	for v := s.order.pop(s.vars); v != 0; v = s.order.pop(s.vars) {
		if s.values[v.Lit()] != Unassigned {
			continue
		}
		if s.vars[v].was {
			return v.Lit()
		}
		return v.Not()
	}
	return LitNone
}
