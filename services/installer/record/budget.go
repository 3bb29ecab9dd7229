package record

import "time"

// Allowance bounds how many facts reports may begin: Burst at once, and one more each Every. The limits of each operator
// (FlapLimit, NoteLimit) say nothing of a cluster that invents operators, or of a thousand that flap together.
type Allowance struct {
	Burst int
	Every time.Duration
}

// ScopeAllowance is that of one namespace of a cluster, ClusterAllowance that of all of a cluster: some ten facts are an
// install or an upgrade with what is told beside it, so that two hundred operators may come at once into a namespace and a
// thousand into a cluster. What goes on for ever is a fact every three seconds of a namespace, one a second of a cluster.
var (
	ScopeAllowance   = Allowance{Burst: 2000, Every: 3 * time.Second}
	ClusterAllowance = Allowance{Burst: 10_000, Every: time.Second}
)

// Budget is how much of an allowance is used up. Its zero value is nothing.
type Budget struct {
	Spent int       `json:"spent,omitempty"`
	Since time.Time `json:"since,omitzero"` // up to when what has passed was given back
	// Next is the operator to begin with: those before it had their turn when the budget was used up.
	Next string `json:"next,omitempty"`
}

// At is the budget at a time.
func (b Budget) At(a Allowance, now time.Time) Budget {
	back := int(now.Sub(b.Since) / a.Every)
	switch {
	case b.Spent <= back || b.Spent == 0:
		b.Spent, b.Since = 0, now
	case back > 0:
		b.Spent -= back
		b.Since = b.Since.Add(time.Duration(back) * a.Every)
	}
	return b
}

// Left is how many facts may still be begun. Facts that belong together go over it together: it is never negative, and
// what is over is given back first.
func (b Budget) Left(a Allowance) int { return max(0, a.Burst-b.Spent) }
