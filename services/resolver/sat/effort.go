package sat

// Effort is what several solvers may spend together, beside what each of them may. It is used by one search at a time.
type Effort struct {
	// Conflicts are those that are left.
	Conflicts int
	// Stop is asked at every conflict whether nobody waits for an answer any more; nil is never.
	Stop func() bool
}

// Spent says whether nothing is left. A nil effort is without end.
func (e *Effort) Spent() bool {
	if e == nil {
		return false
	}
	if e.Conflicts > 0 && e.Stop != nil && e.Stop() {
		e.Conflicts = 0
	}
	return e.Conflicts <= 0
}

// Share lets the solver's conflicts count against an effort, too: where that is spent, searches end as TooHard with
// their next conflict.
func (s *Solver) Share(e *Effort) { s.effort = e }

// conflict takes one conflict of what is left.
func (e *Effort) conflict() {
	if e != nil {
		e.Conflicts--
	}
}
