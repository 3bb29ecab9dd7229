package sat

// CountAfter makes searches count places after so few conflicts, and forget clauses after so few learned ones.
func (s *Solver) CountAfter(conflicts, learned int) { s.counting.patience, s.keep = conflicts, learned }

// Clauses is the memory of all clauses, learned ones included.
func (s *Solver) Clauses() []Lit { return s.arena }
