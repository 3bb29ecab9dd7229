// Package sat decides whether clauses and at-most-one groups can hold together: a small deterministic CDCL
// solver (conflict-driven clause learning) for the resolver (DESIGN D5). It knows nothing of packages and
// bundles. It reads no clock, draws no random number, iterates over no map and computes with integers alone:
// equal calls in equal order give equal answers on any machine (R-RES-7), and work is bounded by a count of
// conflicts (Budget), that several solvers may share (Effort).
//
// # Two ways to search
//
// Solve searches for any model, or says which of the assumptions cannot hold together (Core). It may decide in
// any order, so it restarts (Luby) and prefers variables of recent conflicts; ties go to the older variable.
//
// Guided searches for the model that somebody prefers. Decisions come from a Guide, and there are no restarts.
//
// # Why Guided finds the first model in the order of preference
//
// A guide has choices, each with options in a fixed order, and always decides for the first option that is
// not false. Which choice comes next depends only on what was decided before. Plain chronological backtracking
// that tries the options of each choice in order would find the first model in the order of preference; call it
// F. Guided finds F:
//
//   - A literal is false only by unit propagation over the formula, its learned clauses and the decisions made.
//     Learned clauses follow from the formula and the assumptions are decisions, so an option is false only if no
//     model contains it together with the decisions before it. An option that is passed over is thus one that
//     chronological backtracking would have tried in vain.
//   - A conflict takes decisions back and never adds one. Afterwards choices are asked again from where the search
//     fell back to, and by the first point every option passed over on the way is impossible there.
//   - So when all choices are decided and a model is found, each of its decisions is the first option that any
//     model has together with the decisions before it. That is F. If no model exists, some choice runs out of
//     options, which is a conflict, and conflicts end at the top: Unsat.
//
// It ends: a learned clause asserts a literal at a lower level than the conflict's, so the sequence of the levels'
// sizes grows lexicographically, also when learned clauses are forgotten. Counting (below) may send the search back
// to its start; it does so ever less often while it finds nothing, and what it finds is never forgotten.
//
// # At most one
//
// AtMostOne is native: a group of n literals takes memory for n literals, not for n(n-1)/2 clauses. A group may
// have a guard; it holds where the guard is true, and two true literals make the guard false. Reasons name the
// literal and the guard, and are made only when a conflict asks for them.
//
// # Counting
//
// That n+1 things do not fit into n places has no short proof by clause learning. Solve and Guided therefore count,
// once conflicts are many (matching.go). What counting proves becomes a learned clause, so nothing else knows of it.
package sat
