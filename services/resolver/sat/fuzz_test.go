package sat_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/services/resolver/sat"
)

// FuzzSolve reads bytes as a formula of ten variables and as assumptions, and compares the answer with that of
// trying all models.
func FuzzSolve(f *testing.F) {
	f.Add([]byte{0, 2, 5, 0, 3, 4, 1, 0, 6, 8, 10, 0, 3, 2})
	f.Add([]byte{1, 3, 2, 4, 6, 8, 0, 2, 4, 6, 0, 8, 10})
	f.Fuzz(func(t *testing.T, data []byte) {
		const vars, longest = 10, 200
		if len(data) > longest {
			return
		}
		s := sat.New()
		s.CountAfter(1, 2)
		all, assumptions := read(data, vars)
		all.add(s)
		for range 2 {
			status := s.Solve(assumptions...)
			if (status == sat.Sat) != all.satisfiable(assumptions) {
				t.Fatalf("the solver says %s of %v with %v", status, all, assumptions)
			}
			if status == sat.Sat && !all.meets(modelOf(s), assumptions) {
				t.Fatalf("model %b does not fit %v with %v", modelOf(s), all, assumptions)
			}
			assumptions = s.Core() // a core is enough to have no model, and no core is a model
		}
	})
}

// read takes a sequence of items: 0 begins a clause, 1 and a literal begin a guarded group, other bytes are
// literals of what was begun, or assumptions where nothing was.
func read(data []byte, vars int) (formula, []sat.Lit) {
	f := formula{vars: vars}
	var assumptions []sat.Lit
	into := &assumptions
	for len(data) > 0 {
		b := data[0]
		data = data[1:]
		switch {
		case b == 0:
			f.clauses = append(f.clauses, nil)
			into = &f.clauses[len(f.clauses)-1]
		case b == 1 && len(data) > 0:
			f.groups = append(f.groups, group{guard: literal(data[0], vars)})
			into = &f.groups[len(f.groups)-1].lits
			data = data[1:]
		default:
			*into = append(*into, literal(b, vars))
		}
	}
	return f, assumptions
}

func literal(b byte, vars int) sat.Lit {
	l := sat.Var(int(b)/2%vars + 1).Lit()
	if b%2 == 1 {
		return l.Not()
	}
	return l
}
