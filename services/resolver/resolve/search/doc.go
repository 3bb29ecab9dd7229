// Package search finds what a partition can have: the first solution in the order of preference, and where there is
// none, which roots have to fail and for which reasons.
//
// OLM makes its choices breadth first: subscriptions, then the requirements of what was chosen, in the order of
// choosing. A choice that something chosen already meets takes nothing; else it takes the first candidate that is not
// contradicted, and a dead end takes the last choice back (RESOLVER-NOTES §4). What comes of that is the first
// solution in the order of preference. The chooser asks the solver of package sat for the same one: it decides in
// OLM's order, and what the solver learns from one dead end spares it the others like it. OLM's order among
// subscriptions is random; here it is that of their names.
//
// Every rule that a person could name is a Reason: that a subscription exists, that a bundle requires something, that
// a package has one operator, that a policy forbids a version. Where there is no solution, a set of reasons is found
// that contradict each other and of which none can be left out. Its subscriptions fail; what is installed for them
// stays, and the rest is solved again (State has the order).
//
// The work is bounded by a count of conflicts, never by a clock, so that any machine gives the same answer.
package search
