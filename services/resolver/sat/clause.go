package sat

import (
	"cmp"
	"slices"
)

// ref is where a clause starts in the arena; 0 is none. Its header is the number of literals, its glue (how many
// decision levels it joined when it was learned; 0 for a clause of the formula) and the number of the
// conflict that used it last.
type ref int32

const (
	headSize = iota
	headGlue
	headUsed
	headLen
)

// lits are the clause's literals; the first two are watched.
func (s *Solver) lits(c ref) []Lit {
	at := int(c) + headLen
	return s.arena[at : at+int(s.arena[c+headSize])]
}

// watch says that a clause watches a literal. While the blocker is true the clause need not be visited.
type watch struct {
	clause  ref
	blocker Lit
	next    int32
}

// attach puts a clause of at least two literals into the arena.
func (s *Solver) attach(lits []Lit, glue int) ref {
	c := ref(len(s.arena))
	s.arena = append(s.arena, Lit(len(lits)), Lit(glue), Lit(s.conflicts))
	s.arena = append(s.arena, lits...)
	s.addWatch(c, lits[0], lits[1])
	s.addWatch(c, lits[1], lits[0])
	return c
}

// addWatch makes a clause watch a literal.
func (s *Solver) addWatch(c ref, l, blocker Lit) {
	w := watch{clause: c, blocker: blocker, next: s.lists[l].watch}
	if i := s.unused; i != 0 {
		s.unused = s.watches[i].next
		s.watches[i] = w
		s.lists[l].watch = i
		return
	}
	s.watches = append(s.watches, w)
	s.lists[l].watch = int32(len(s.watches) - 1)
}

const (
	// firstReduction is how many learned clauses are kept at first, laterReduction how many more after each
	// reduction.
	firstReduction = 2000
	laterReduction = 300
	// glueKept is the glue up to which a learned clause is worth keeping for good.
	glueKept = 2
)

// reduce forgets half of the learned clauses: those that join many levels and were not used lately. Clauses
// that are the cause of something stay.
func (s *Solver) reduce() {
	s.keep += laterReduction
	slices.SortFunc(s.learned, func(a, b ref) int {
		return cmp.Or(
			cmp.Compare(s.arena[a+headGlue], s.arena[b+headGlue]),
			cmp.Compare(s.arena[b+headUsed], s.arena[a+headUsed]),
			cmp.Compare(a, b))
	})
	half := len(s.learned) / 2
	stay := s.learned[:half]
	for _, c := range s.learned[half:] {
		if s.arena[c+headGlue] <= glueKept || s.isCause(c) {
			stay = append(stay, c)
		} else {
			s.arena[c+headUsed] = dropped
		}
	}
	s.learned = stay
	slices.Sort(s.learned)
	s.compact()
}

// dropped marks a clause that the next compaction leaves out, and moved one whose size was overwritten by
// the place where it went.
const dropped Lit = -1

func (s *Solver) isCause(c ref) bool {
	l := s.lits(c)[0]
	return s.values[l] == True && s.vars[l.Var()].cause.clause == c
}

// compact copies the clauses that stay into the spare arena. The size of each old clause is then overwritten
// by its new place, from which all references are renewed.
func (s *Solver) compact() {
	s.spare = append(s.spare[:0], 0)
	to := s.spare
	for at := 1; at < len(s.arena); {
		end := at + headLen + int(s.arena[at+headSize])
		if s.arena[at+headUsed] == dropped {
			s.arena[at+headSize] = 0
		} else {
			place := Lit(len(to))
			to = append(to, s.arena[at:end]...)
			s.arena[at+headSize] = place
		}
		at = end
	}
	for i, c := range s.learned {
		s.learned[i] = ref(s.arena[c])
	}
	for _, l := range s.trail {
		if why := &s.vars[l.Var()].cause; why.clause != 0 {
			why.clause = ref(s.arena[why.clause])
		}
	}
	for l := range s.lists {
		s.lists[l].watch = s.renew(s.lists[l].watch)
	}
	s.arena, s.spare = to, s.arena
}

// renew goes through a list of watches, gives them the new places of their clauses and takes out those
// whose clause has none. It returns the first that stays.
func (s *Solver) renew(first int32) int32 {
	link := &first
	for i := first; i != 0; {
		w := &s.watches[i]
		next := w.next
		w.clause = ref(s.arena[w.clause])
		if w.clause == 0 {
			*link = next
			w.next, s.unused = s.unused, i
		} else {
			link = &w.next
		}
		i = next
	}
	return first
}
