package sat

// conflict is a literal that is false although its cause says that it is true; for a clause of false
// literals the literal is its first.
type conflict struct {
	lit   Lit
	cause cause
}

func (c conflict) found() bool { return c.lit != LitNone }

// assign makes a literal true at the present level. It may be true already; one that is false already, which
// happens at the top only, leaves the formula without a model.
func (s *Solver) assign(l Lit, why cause) {
	switch s.values[l] {
	case True:
		return
	case False:
		s.broken = true
		return
	case Unassigned:
	}
	s.values[l], s.values[l.Not()] = True, False
	v := &s.vars[l.Var()]
	v.cause, v.level, v.was = why, int32(len(s.levels)), !l.Negative()
	s.trail = append(s.trail, l)
}

// propagate assigns what follows from the trail, until nothing does or something contradicts itself.
func (s *Solver) propagate() conflict {
	for s.head < len(s.trail) {
		l := s.trail[s.head]
		s.head++
		if c := s.inClauses(l.Not()); c.found() {
			return c
		}
		if c := s.inGroups(l); c.found() {
			return c
		}
	}
	return conflict{}
}

// inClauses visits the clauses that watch a literal which is false now.
func (s *Solver) inClauses(f Lit) conflict {
	before := int32(0)
	for i := s.lists[f].watch; i != 0; {
		w := &s.watches[i]
		next := w.next
		if s.values[w.blocker] == True {
			before, i = i, next
			continue
		}
		c := s.lits(w.clause)
		if c[0] == f {
			c[0], c[1] = c[1], c[0]
		}
		w.blocker = c[0]
		if s.values[c[0]] != True && s.watchOther(i, c, before) {
			i = next
			continue
		}
		switch s.values[c[0]] {
		case True:
		case False:
			return conflict{lit: c[0], cause: cause{clause: w.clause}}
		case Unassigned:
			s.assign(c[0], cause{clause: w.clause})
		}
		before, i = i, next
	}
	return conflict{}
}

// watchOther moves a watch from the second literal of a clause, which is false, to one that is not. before is
// the watch before it in its list.
func (s *Solver) watchOther(i int32, c []Lit, before int32) bool {
	for k := 2; k < len(c); k++ {
		if s.values[c[k]] == False {
			continue
		}
		f := c[1]
		c[1], c[k] = c[k], f
		w := &s.watches[i]
		if before == 0 {
			s.lists[f].watch = w.next
		} else {
			s.watches[before].next = w.next
		}
		w.next = s.lists[c[1]].watch
		s.lists[c[1]].watch = i
		return true
	}
	return false
}

// inGroups visits the groups of a literal that is true now, and at those that it guards.
func (s *Solver) inGroups(l Lit) conflict {
	for i := s.lists[l].use; i != 0; i = s.uses[i].next {
		g := s.groups[s.uses[i].group]
		holder := l
		if s.uses[i].guard {
			if holder = s.holder(g, LitNone); holder == LitNone {
				continue
			}
		}
		if c := s.held(g, holder); c.found() {
			return c
		}
	}
	return conflict{}
}

// holder is a true member of a group other than one; LitNone where there is none.
func (s *Solver) holder(g group, other Lit) Lit {
	for _, m := range s.members[g.from:g.to] {
		if m != other && s.values[m] == True {
			return m
		}
	}
	return LitNone
}

// held makes all other members of a group false, or the guard where two are true.
func (s *Solver) held(g group, holder Lit) conflict {
	if g.guard != LitNone && s.values[g.guard] != True {
		if s.values[g.guard] == Unassigned {
			if second := s.holder(g, holder); second != LitNone {
				s.assign(g.guard.Not(), cause{a: holder, b: second})
			}
		}
		return conflict{}
	}
	why := cause{a: holder, b: g.guard}
	for _, m := range s.members[g.from:g.to] {
		if m == holder {
			continue
		}
		switch s.values[m] {
		case False:
		case True:
			return conflict{lit: m.Not(), cause: why}
		case Unassigned:
			s.assign(m.Not(), why)
		}
	}
	return conflict{}
}

// descend opens a decision level. A literal that is true already leaves it empty.
func (s *Solver) descend(l Lit) {
	s.levels = append(s.levels, len(s.trail))
	s.assign(l, cause{})
}

// retreat takes back all levels above one.
func (s *Solver) retreat(level int) {
	if len(s.levels) <= level {
		return
	}
	from := s.levels[level]
	for _, l := range s.trail[from:] {
		v := l.Var()
		s.values[l], s.values[l.Not()] = Unassigned, Unassigned
		s.free = min(s.free, v)
		if s.vars[v].place < 0 {
			s.order.push(s.vars, v)
		}
	}
	s.trail, s.levels, s.head = s.trail[:from], s.levels[:level], from
}
