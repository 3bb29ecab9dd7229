package sat

import "slices"

// scratch is memory that one step after the other uses.
type scratch struct {
	clause []Lit // of Clause, and the clause being learned
	twice  []Lit
	marks  []Lit // literals marked, to be unmarked
	marked []bool
	pair   [2]Lit
	stack  []Lit
	clear  []Var    // variables seen by an analysis
	stamps []uint64 // by level: the conflict that counted it last
}

func (s *Solver) mark(l Lit) {
	for len(s.scratch.marked) < len(s.values) {
		s.scratch.marked = append(s.scratch.marked, false)
	}
	s.scratch.marked[l] = true
	s.scratch.marks = append(s.scratch.marks, l)
}

func (s *Solver) marked(l Lit) bool { return int(l) < len(s.scratch.marked) && s.scratch.marked[l] }

func (s *Solver) unmark() {
	for _, l := range s.scratch.marks {
		s.scratch.marked[l] = false
	}
	s.scratch.marks = s.scratch.marks[:0]
}

// because are the false literals that together with l make up the clause by which l is true, or was to be. The
// list is valid until the next call.
func (s *Solver) because(why cause) []Lit {
	if why.clause != 0 {
		s.arena[why.clause+headUsed] = Lit(s.conflicts)
		return s.lits(why.clause)[1:]
	}
	s.scratch.pair = [2]Lit{why.a.Not(), why.b.Not()}
	if why.b == LitNone {
		return s.scratch.pair[:1]
	}
	return s.scratch.pair[:]
}

// analyse makes a clause of a conflict: its first literal is the one that the conflict's level hangs on (the
// first unique implication point), and all others are false at lower levels. It returns the level to fall back
// to, where the clause makes its first literal true.
func (s *Solver) analyse(c conflict) (clause []Lit, back int) {
	s.scratch.clause = append(s.scratch.clause[:0], LitNone)
	learned := s.scratch.clause
	s.scratch.clear = s.scratch.clear[:0]
	here, open := int32(len(s.levels)), 0
	note := func(l Lit) {
		v := &s.vars[l.Var()]
		if v.seen || v.level == 0 {
			return
		}
		v.seen = true
		s.scratch.clear = append(s.scratch.clear, l.Var())
		s.order.raise(s.vars, l.Var())
		if v.level == here {
			open++
		} else {
			learned = append(learned, l)
		}
	}
	note(c.lit)
	why := c.cause
	for at := len(s.trail) - 1; ; at-- {
		for _, l := range s.because(why) {
			note(l)
		}
		for !s.vars[s.trail[at].Var()].seen || s.vars[s.trail[at].Var()].level != here {
			at--
		}
		open--
		if open == 0 {
			learned[0] = s.trail[at].Not()
			break
		}
		why = s.vars[s.trail[at].Var()].cause
	}
	learned = s.shorten(learned)
	for _, v := range s.scratch.clear {
		s.vars[v].seen = false
	}
	s.scratch.clause = learned
	return learned, s.second(learned)
}

// shorten leaves out literals that follow from the others.
func (s *Solver) shorten(learned []Lit) []Lit {
	var levels uint64
	for _, l := range learned[1:] {
		levels |= s.levelBit(l)
	}
	return slices.DeleteFunc(learned, func(l Lit) bool {
		return l != learned[0] && !s.vars[l.Var()].cause.none() && s.follows(l, levels)
	})
}

// levelBit is a quick test: a literal of a level that the clause does not have cannot follow from it.
func (s *Solver) levelBit(l Lit) uint64 {
	const bits = 64
	return 1 << (s.vars[l.Var()].level % bits)
}

// follows says whether a false literal is false because of others of the clause alone, over any number of steps.
func (s *Solver) follows(l Lit, levels uint64) bool {
	known := len(s.scratch.clear)
	s.scratch.stack = append(s.scratch.stack[:0], l)
	for len(s.scratch.stack) > 0 {
		last := len(s.scratch.stack) - 1
		top := s.scratch.stack[last]
		s.scratch.stack = s.scratch.stack[:last]
		for _, m := range s.because(s.vars[top.Var()].cause) {
			v := &s.vars[m.Var()]
			if v.seen || v.level == 0 {
				continue
			}
			if v.cause.none() || s.levelBit(m)&levels == 0 {
				for _, w := range s.scratch.clear[known:] {
					s.vars[w].seen = false
				}
				s.scratch.clear = s.scratch.clear[:known]
				return false
			}
			v.seen = true
			s.scratch.clear = append(s.scratch.clear, m.Var())
			s.scratch.stack = append(s.scratch.stack, m)
		}
	}
	return true
}

func (c cause) none() bool { return c.clause == 0 && c.a == LitNone }

// second puts the literal of the highest level after the first into the second place, where it is watched, and
// returns that level.
func (s *Solver) second(clause []Lit) int {
	if len(clause) < 2 {
		return 0
	}
	top := 1
	for i := 2; i < len(clause); i++ {
		if s.vars[clause[i].Var()].level > s.vars[clause[top].Var()].level {
			top = i
		}
	}
	clause[1], clause[top] = clause[top], clause[1]
	return int(s.vars[clause[1].Var()].level)
}

// learn keeps a clause and draws its first conclusion.
func (s *Solver) learn(clause []Lit, glue int) {
	if len(clause) == 1 {
		s.assign(clause[0], cause{})
		return
	}
	c := s.attach(clause, glue)
	s.learned = append(s.learned, c)
	s.assign(clause[0], cause{clause: c})
}

// glue counts the levels of a clause's literals.
func (s *Solver) glue(clause []Lit) int {
	for len(s.scratch.stamps) <= len(s.levels) {
		s.scratch.stamps = append(s.scratch.stamps, 0)
	}
	s.clock++
	n := 0
	for _, l := range clause {
		if level := s.vars[l.Var()].level; s.scratch.stamps[level] != s.clock {
			s.scratch.stamps[level] = s.clock
			n++
		}
	}
	return n
}

// blame finds the assumptions by which another one is false. All decisions are assumptions at that point.
func (s *Solver) blame(failed Lit) {
	s.core = append(s.core[:0], failed)
	if s.vars[failed.Var()].level == 0 {
		return
	}
	s.vars[failed.Var()].seen = true
	for at := len(s.trail) - 1; at >= s.levels[0]; at-- {
		v := &s.vars[s.trail[at].Var()]
		if !v.seen {
			continue
		}
		v.seen = false
		if v.cause.none() {
			s.core = append(s.core, s.trail[at])
			continue
		}
		for _, l := range s.because(v.cause) {
			if w := &s.vars[l.Var()]; w.level > 0 {
				w.seen = true
			}
		}
	}
	slices.Sort(s.core)
	s.core = slices.Compact(s.core)
}
