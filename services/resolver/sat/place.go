package sat

// settle chooses a place for each literal of each clause: the one for which most clauses compete.
func (p *pigeons) settle() {
	for i := range p.clauses {
		for _, l := range p.s.lits(p.clauses[i].clause) {
			for _, h := range p.of[l] {
				if g := &p.groups[h.group]; g.last != i+1 {
					g.last = i + 1
					g.clauses++
				}
			}
		}
	}
	for i := range p.clauses {
		p.settleClause(i)
	}
}

// settleClause finds where the literals of a clause go. A literal that goes nowhere by itself may need what does: a
// clause that says so takes its place (resolution).
func (p *pigeons) settleClause(i int) {
	c := &p.clauses[i]
	c.from = len(p.holes)
	for _, l := range p.s.lits(c.clause) {
		if p.s.values[l] != Unassigned {
			continue
		}
		if h := p.best(l); p.rivals(h) > 1 {
			p.holes = append(p.holes, h)
			continue
		}
		if !p.replace(c, l) {
			p.holes, c.to = p.holes[:c.from], c.from
			return
		}
	}
	c.counts, c.to = true, len(p.holes)
	for _, h := range p.places(c) {
		p.owner[h.by] = i + 1
	}
}

// replace takes the places of a clause that says what a literal needs.
func (p *pigeons) replace(c *pigeon, l Lit) bool {
	known := len(p.holes)
	for _, d := range p.in[l.Not()] {
		whole := true
		for _, m := range p.s.lits(d) {
			if m == l.Not() || p.s.values[m] != Unassigned {
				continue
			}
			h := p.best(m)
			if whole = p.rivals(h) > 1; !whole {
				break
			}
			p.holes = append(p.holes, h)
		}
		if whole {
			c.with = append(c.with, d)
			return true
		}
		p.holes = p.holes[:known]
	}
	return false
}

// best is the place of a literal for which most clauses compete, and that no other clause has by the same
// literal.
func (p *pigeons) best(l Lit) hole {
	best := hole{}
	for _, h := range p.of[l] {
		if p.owner[h.by] == 0 && (best.lit == LitNone || p.rivals(h) > p.rivals(best)) {
			best = h
		}
	}
	return best
}

// rivals is how many clauses compete for a place with literals of their own; one is none.
func (p *pigeons) rivals(h hole) int {
	if h.lit == LitNone {
		return 0
	}
	return min(p.groups[h.group].clauses, p.groups[h.group].lits)
}

// match finds a place for a clause, moving others where that helps. Where it fails, the places tried and the clauses
// that have them are too many for each other.
func (p *pigeons) match(i int) bool {
	p.clauses[i].round = p.round
	for _, h := range p.places(&p.clauses[i]) {
		g := &p.groups[h.group]
		if g.round == p.round {
			continue
		}
		g.round = p.round
		if g.taken == 0 || p.match(g.taken-1) {
			g.taken, p.clauses[i].took = i+1, h
			return true
		}
	}
	return false
}

// suggest makes the places found the values that Solve tries first.
func (p *pigeons) suggest() {
	for i := range p.clauses {
		c := &p.clauses[i]
		if !c.counts {
			continue
		}
		for _, h := range p.places(c) {
			p.s.vars[h.lit.Var()].was = h.lit.Negative() != (h == c.took)
		}
	}
}

// explain gives the clause that the failed round proves.
func (p *pigeons) explain() []Lit {
	s := p.s
	var out []Lit
	add := func(l Lit) {
		if s.vars[l.Var()].level > 0 && !s.marked(l) {
			s.mark(l)
			out = append(out, l)
		}
	}
	for i := range p.clauses {
		c := &p.clauses[i]
		if c.round != p.round {
			continue
		}
		for _, said := range append(c.with, c.clause) {
			for _, l := range s.lits(said) {
				if s.values[l] == False {
					add(l)
				}
			}
		}
		for _, h := range p.places(c) {
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
func (s *Solver) why(h hole, add func(Lit)) {
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
