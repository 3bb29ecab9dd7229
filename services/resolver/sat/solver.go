package sat

// Solver holds a formula, what was learned from it, and the state of the search that is going on. It is not
// safe for concurrent use. Clauses, groups and variables may be added between searches, never by a Guide.
type Solver struct {
	values []Truth // by literal
	lists  []lists // by literal
	vars   []variable
	model  []bool // by variable, of the last Sat

	arena   []Lit // clauses one after the other, each behind its header
	spare   []Lit // the arena before the last reduction, to be used again
	learned []ref
	watches []watch // two of each clause; number 0 is none
	unused  int32   // list of watches that no clause has any more

	groups  []group
	members []Lit // of the groups, one after the other
	uses    []use // of literals in groups; number 0 is none

	trail  []Lit // true literals in the order of assignment
	levels []int // where each decision level starts in the trail
	head   int   // what of the trail is propagated
	broken bool  // the formula has no model whatever is assumed

	order order
	free  Var // no variable below is unassigned; for filling up a guided model
	clock uint64

	core      []Lit
	conflicts int
	limit     int // of conflicts; negative is none
	effort    *Effort
	keep      int // learned clauses kept until the next reduction
	counting  counting
	matching  matching

	scratch scratch
}

// variable is what the search knows of one.
type variable struct {
	cause    cause
	level    int32
	place    int32  // in the heap of the order; -1 is not there
	activity uint64 // from conflicts
	seen     bool   // by the analysis going on
	was      bool   // the value that it had last
}

// lists are the first of the watches and uses of a literal.
type lists struct{ watch, use int32 }

// cause is why a literal is true: a clause, one or two true literals of a group (a is not LitNone), or
// neither for a decision or a fact.
type cause struct {
	clause ref
	a, b   Lit
}

// group is an at-most-one constraint over members[from:to].
type group struct {
	guard    Lit // LitNone: always
	from, to int32
}

// use says that a literal belongs to a group, or guards it.
type use struct {
	group, next int32
	guard       bool
}

// noLimit is the budget until one is set.
const noLimit = -1

// New returns a solver without variables.
func New() *Solver {
	return &Solver{
		values: make([]Truth, 2), lists: make([]lists, 2), vars: make([]variable, 1), model: make([]bool, 1),
		arena: make([]Lit, 1), watches: make([]watch, 1), uses: make([]use, 1),
		limit: noLimit, keep: firstReduction, counting: counting{patience: firstCount, gap: countGap},
		order: order{bump: 1},
	}
}

// Reserve makes room for variables and literals in clauses and groups, where their number is known beforehand.
func (s *Solver) Reserve(variables, literals int) {
	s.values = reserve(s.values, 2*variables)
	s.lists = reserve(s.lists, 2*variables)
	s.vars = reserve(s.vars, variables)
	s.model = reserve(s.model, variables)
	s.trail = reserve(s.trail, variables)
	s.order.heap = reserve(s.order.heap, variables)
	s.arena = reserve(s.arena, literals)
	s.watches = reserve(s.watches, literals)
	s.members = reserve(s.members, literals)
	s.uses = reserve(s.uses, literals)
}

func reserve[T any](list []T, more int) []T {
	if cap(list)-len(list) >= more {
		return list
	}
	return append(make([]T, 0, len(list)+more), list...)
}

// Var creates a variable.
func (s *Solver) Var() Var {
	v := Var(len(s.vars))
	s.vars = append(s.vars, variable{place: -1})
	s.values = append(s.values, Unassigned, Unassigned)
	s.lists = append(s.lists, lists{}, lists{})
	s.model = append(s.model, false)
	s.order.push(s.vars, v)
	return v
}

// Vars is how many variables there are.
func (s *Solver) Vars() int { return len(s.vars) - 1 }

// Clause demands that one of the literals is true. An empty clause cannot be met.
func (s *Solver) Clause(lits ...Lit) {
	if s.broken {
		return
	}
	c := s.scratch.clause[:0]
	always := false
	for _, l := range lits {
		if s.values[l] == True || s.marked(l.Not()) {
			always = true
			break
		}
		if s.values[l] == False || s.marked(l) {
			continue
		}
		s.mark(l)
		c = append(c, l)
	}
	s.unmark()
	s.scratch.clause = c
	switch {
	case always:
	case len(c) == 0:
		s.broken = true
	case len(c) == 1:
		s.assign(c[0], cause{})
	default:
		s.attach(c, 0)
	}
}

// AtMostOne demands that at most one of the literals is true wherever the guard is; LitNone guards nothing, the
// group always holds. A literal that is listed twice counts twice, so it excludes itself.
func (s *Solver) AtMostOne(guard Lit, lits ...Lit) {
	if s.broken || (guard != LitNone && s.values[guard] == False) {
		return
	}
	from := int32(len(s.members))
	twice := s.scratch.twice[:0]
	for _, l := range lits {
		switch {
		case s.values[l] == False:
		case s.marked(l):
			twice = append(twice, l)
		default:
			s.mark(l)
			s.members = append(s.members, l)
		}
	}
	s.unmark()
	s.scratch.twice = twice
	s.enlist(guard, from)
	for i := range twice {
		s.exclude(guard, twice[i])
	}
}

// enlist makes a group of the members from a place on. What is known already has to be visited again.
func (s *Solver) enlist(guard Lit, from int32) {
	to := int32(len(s.members))
	if to-from < 2 {
		s.members = s.members[:from]
		return
	}
	g := int32(len(s.groups))
	s.groups = append(s.groups, group{guard: guard, from: from, to: to})
	for _, l := range s.members[from:to] {
		s.useIn(g, l, false)
	}
	if guard != LitNone {
		s.useIn(g, guard, true)
	}
	s.head = 0
}

func (s *Solver) useIn(g int32, l Lit, guard bool) {
	s.uses = append(s.uses, use{group: g, next: s.lists[l].use, guard: guard})
	s.lists[l].use = int32(len(s.uses) - 1)
}

func (s *Solver) exclude(guard, l Lit) {
	if guard == LitNone {
		s.Clause(l.Not())
		return
	}
	s.Clause(guard.Not(), l.Not())
}

// Assigned is what a literal is at this moment of a search; for guides.
func (s *Solver) Assigned(l Lit) Truth { return s.values[l] }

// Value is a variable's value in the model of the last Sat.
func (s *Solver) Value(v Var) bool { return s.model[v] }

// Core are assumptions of the last Unsat that cannot hold together, sorted; empty if nothing can hold. The
// list is valid until the next search.
func (s *Solver) Core() []Lit { return s.core }

// Budget allows so many conflicts from now on, for all further searches together; a negative number is no limit.
func (s *Solver) Budget(conflicts int) {
	s.limit = noLimit
	if conflicts >= 0 {
		s.limit = s.conflicts + conflicts
	}
}

// Conflicts is how many there were in all searches.
func (s *Solver) Conflicts() int { return s.conflicts }
