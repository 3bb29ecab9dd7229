package sat

// Var is a variable; the first one is 1.
type Var int32

// Lit is a variable or its negation.
type Lit int32

// LitNone is no literal.
const LitNone Lit = 0

// Lit is the literal that is true where the variable is.
func (v Var) Lit() Lit { return Lit(v) << 1 }

// Not is the literal that is true where the variable is false.
func (v Var) Not() Lit { return Lit(v)<<1 | 1 }

// Not is the opposite literal.
func (l Lit) Not() Lit { return l ^ 1 }

// Var is the literal's variable.
func (l Lit) Var() Var { return Var(l >> 1) }

// Negative says whether the literal is a negation.
func (l Lit) Negative() bool { return l&1 == 1 }

// Truth is what a literal is at one moment of a search.
type Truth int8

// The values of a literal.
const (
	False      Truth = -1
	Unassigned Truth = 0
	True       Truth = 1
)

// Status is what a search came to.
type Status int8

// The outcomes.
const (
	Unsat   Status = iota // no model fits the assumptions; see Core
	Sat                   // see Value
	TooHard               // the budget of conflicts is used up, and nothing is known
)

// String names the status.
func (s Status) String() string {
	switch s {
	case Unsat:
		return "unsatisfiable"
	case Sat:
		return "satisfiable"
	default:
		return "too hard"
	}
}
