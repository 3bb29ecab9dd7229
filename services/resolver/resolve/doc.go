// Package resolve decides what a namespace should run (DESIGN D5): a pure function from recorded inputs
// to plans and explained failures. It reads no clock, draws no random number and does no I/O; what it
// learns of catalogs it asks of a View, and every question is in the result's read set, answered or
// not, so that exactly what was consulted decides what makes the result stale.
//
// # What one resolution is
//
// The roots are the subscriptions of the namespace and the installed CSVs that no subscription follows
// (R-RES-10, R-RES-13). A root has candidates in a fixed order of preference (R-RES-35; ties by name, so that the
// same input gives the same result, R-RES-7); each chosen bundle brings requirements, which have candidates in
// turn. A solution chooses one candidate for every root and requirement such that a package and an API have at
// most one bearer each (R-RES-11, R-RES-12). It goes in steps:
//
//	world    everything that the roots reach is looked up, whether it will be chosen or not (world.go, need.go, root.go)
//	cluster  it is split into parts that nothing connects, each a problem of its own (cluster.go)
//	fault    roots that reach something malformed fail, the others go on (blame.go)
//	search   the first solution in the order of preference (rules.go, choose.go)
//	blame    or a minimal contradiction, whose subscriptions are left out before the rest is solved again (blame.go,
//	         explain.go)
//	piece    a solution is split into what can be carried out apart; each piece is a component (piece.go, plan.go)
//
// # The search
//
// OLM makes its choices breadth first: subscriptions, then the requirements of what was chosen, in the order of
// choosing. A choice that something chosen already meets takes nothing; else it takes the first candidate that is not
// contradicted, and a dead end takes the last choice back (RESOLVER-NOTES §4). What comes of that is the first
// solution in the order of preference. The chooser asks the solver of package sat for the same one: it decides in
// OLM's order, and what the solver has learned from one dead end spares it the others like it. OLM's order among
// subscriptions is random; here it is that of their names.
//
// A bundle may take over an installed CSV that no subscription follows, as its entry replaces it. Where that would leave
// somebody without what it requires, the two exclude each other; OLM takes the CSV away all the same.
//
// The work is bounded by counts, never by a clock: of the conflicts of a cluster (MaxConflicts), and of what is compared
// with requirements for one root (MaxReach).
//
// # When it cannot be
//
// Every rule that a person could name is a reason: that a subscription exists, that a bundle requires something,
// that a package has one operator, that a policy forbids a version. A contradiction is a set of reasons of which none
// can be left out. Its subscriptions fail. What is installed for them stays: with all that it requires if that can
// be, else as it is, keeping what it has (R-RES-2). OLM fails the whole namespace instead; an operator group with
// shared colocation asks for that (R-RES-42, R-RES-63).
//
// # Records
//
// A component's record is that of its cluster: the subscriptions, installed CSVs and bounds of the cluster and the answers
// to its questions. It resolves again to the same bytes, and nothing outside of the cluster changes it. A statement's
// Revision is the digest of the package document that says so, which is among these answers; the catalog's own
// revision is not, since unrelated changes move it.
package resolve
