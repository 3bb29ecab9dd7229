package scope

import "context"

// Stage is a part of a reconcile. What it has found out it leaves in the scope, for the stages after it. Its error ends
// the reconcile; what fails for one operator alone it notes (Attempts.Alone) and goes on.
type Stage interface {
	Reconcile(ctx context.Context, sc *Scope) (Result, error)
}

// Result is what a stage comes to.
type Result struct {
	// Again is set where the phases of the operators are to be reconciled, and the stage once more after that; Why says
	// what it waits for.
	Again bool
	Why   string
}
