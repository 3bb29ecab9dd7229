// Package why explains why an operator is what it is: what newer versions its catalogs offer and, for each one,
// why it is not taken; and why the operator is there at all. It is pure: the state of a namespace, the
// resolution of it and what was decided upon come in as data, the moment too.
//
// For each newer version all reasons that are known without trying are given: an approval policy, a deprecation,
// another catalog or channel, an entry that is skipped. Where none of them holds, the first that applies:
//
//	it is what the plan moves to                → what the plan waits for
//	something of its operators is under way     → that
//	the plan moves to a newer one               → passed over
//	no edge of the channel leads to it          → one step at a time, or no way at all
//	resolving with it fails                     → the statements of that failure
//	the subscription does not resolve anyway    → the statements of that failure
//	nobody follows the operator                 → that
//	otherwise                                   → what is preferred comes first (R-RES-35)
//
// Resolving with a version means: the namespace as it is, without what is installed of the package, and a
// subscription that starts with that very version. The work is bounded by counts (MaxProbes, MaxConflicts,
// MaxNotTaken); who asks may end it early.
package why
