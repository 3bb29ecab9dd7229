// Package suggestion finds the nearest changes that would help a subscription that does not resolve, each one
// verified by resolving again with the change applied. It is pure: a resolution's input goes in, changes
// with sentences for people come out.
//
// A change is offered where, with it, every blamed subscription that is left resolves, what it comes to could run as
// far as the hub knows (ClusterFacts), and nothing that resolved or ran before fails. What else would come out
// differently is said with it. Changes are tried by nearness, and equally near ones by name, so that equal inputs get
// equal answers:
//
//  1. an operator group where there is none, one instead of several, or other targets of the one
//  2. the subscription's own intent: startingCSV, channel, catalog, package
//  3. catalogs of the hub that the operator group hides
//  4. the same of another blamed subscription
//  5. a bound of an approval policy, raised as far as needed, else lifted
//  6. an installed operator that may be upgraded, by subscribing to it
//  7. an installed operator that is in the way, removed
//  8. a blamed subscription left out
//  9. an unhealthy catalog disabled, where its namespace is strict
//
// The work is bounded by counts of resolutions and of conflicts of their searches (MaxTrials, MaxConflicts), never by a
// clock; who asks may end it early.
package suggestion
