// Package resolve decides what a namespace should run (DESIGN D5): Resolve is a pure function from recorded inputs
// to plans and explained failures. It reads no clock, draws no random number and does no I/O; what it
// learns of catalogs it asks of a View, and every question is in the result's read set, answered or
// not, so that exactly what was consulted decides what makes the result stale. The types are in package resolution.
//
// The roots are the subscriptions of the namespace and the installed CSVs that no subscription follows
// (R-RES-10, R-RES-13). A root has candidates in a fixed order of preference (R-RES-35; ties by name, so that the
// same input gives the same result, R-RES-7); each chosen bundle brings requirements, which have candidates in
// turn. A solution chooses one candidate for every root and requirement such that a package and an API have at
// most one operator each (R-RES-11, R-RES-12). It goes in steps:
//
//	graph    everything that the roots reach is looked up, and split into partitions that nothing connects
//	search   each partition is solved: the first solution in the order of preference; roots that cannot be had fail, the
//	         others go on
//	explain  failures become statements and sentences
//	plan     a solution is split into parts that can be carried out apart; each part is a component of the result
//
// OLM fails the whole namespace where one subscription cannot be resolved; an operator group with
// shared colocation asks for that (R-RES-42, R-RES-63).
//
// The work is bounded by counts, never by a clock: of the conflicts of a partition (search.MaxConflicts), and of what
// is compared with requirements for one root (graph.MaxReach).
//
// # Records
//
// A component's record is that of its partition: the subscriptions, installed CSVs and bounds of the partition and
// the answers to its questions. It resolves again to the same bytes, and nothing outside of the partition changes it.
// A statement's Revision is the digest of the package document that says so, which is among these answers; the
// catalog's own revision is not, since unrelated changes move it.
package resolve
