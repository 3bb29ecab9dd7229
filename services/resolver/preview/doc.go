// Package preview works out what would be decided if events were in the log that are not: it adds them to the state
// of a scope, says what a decision on that state comes to, and what the answer depends on, so that it can be checked
// later. It also compares recorded decisions with those of a shadow run. It is pure, and folds events by State.Evolve
// alone, as the resolver's tables do.
package preview
