package store

// SweepRows is how much one transaction of a sweep takes up.
const SweepRows = sweepRows

// OldStatements are those of a sweep that ask who needs what a decision rests on.
func OldStatements() []string { return []string{oldDocuments, oldInputs, oldExplanations} }
