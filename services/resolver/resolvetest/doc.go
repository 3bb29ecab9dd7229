// Package resolvetest compares package resolve with a resolver that is slow and obviously right: it knows the rules
// of RESOLVER-NOTES §2 to §8 and nothing else. It tries what may be chosen in the order of preference, by plain
// recursion: no propagation, no learning, no index, no partitions. Both are given small random namespaces with
// everything that matters for a choice: packages with channels, skips and skip ranges, several catalogs with
// priorities, requirements of all kinds, deprecations, installed operators with and without a subscription.
//
// The package holds tests alone.
package resolvetest
