// Package v2 decides what a namespace should run (DESIGN D5): a pure function from recorded inputs
// to plans and explained failures. It reads no clock, draws no random number and does no I/O; what it
// learns of catalogs it asks of a View, and every question is in the result's read set, answered or
// not, so that exactly what was consulted decides what makes the result stale.
//
// These are the rules of versions 1 and 2 as they were, so that what was decided by them can be decided again; new
// decisions are made by package resolve. Nothing here changes any more: recorded decisions in testdata hold it.
//
// # What one resolution is
//
// The roots are the subscriptions of the namespace and the installed CSVs that no subscription follows
// (R-RES-10, R-RES-13). Each root has candidates in a fixed order of preference (R-RES-35; ties by name,
// so that the same input gives the same result, R-RES-7); each chosen bundle brings requirements,
// which have candidates in turn. A solution chooses one candidate for every root and requirement such
// that a package, an API and a CSV name have at most one bearer each (R-RES-11, R-RES-12).
//
// # Components
//
// OLM solves a namespace as one problem, so one impossible subscription blocks all. Here every root is
// solved by itself first; roots whose solutions touch (the same package or API asked for or chosen, or a
// requirement met by what the other one may upgrade) are solved together, until nothing touches. Each
// resulting component gets its own plan. In a component that cannot be solved, a minimal set of roots
// that cannot live together is explained and left out, and the others are solved again without it.
//
// # The search
//
// Choices are made breadth first: roots, then requirements in the order in which bundles were chosen. A
// choice that something chosen already meets takes nothing new; one with a single possible candidate
// takes it at once; one with none undoes the last free choice. The work is bounded by a count of
// candidates tried (MaxTries), never by a clock.
package v2
