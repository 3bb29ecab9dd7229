// Package graph holds everything that the subscriptions and installed operators of a namespace can reach: what may be
// chosen for them, what that requires, what may meet those requirements, and so on, whether it will be chosen or not
// (RESOLVER-NOTES 2.8). It is built once, by Build, and does not change afterwards.
//
// A Root is what a resolution is about: a subscription, or an installed CSV that no subscription follows. A Node is
// something that can be chosen: an installed CSV, or an entry of a channel. Nodes of one bundle of one catalog share
// an Operator, which has the requirements. A Slot is what at most one chosen node may have: a package name, or an
// API.
//
// Partitions are the parts of the graph that nothing connects. They are solved one by one.
//
// Every question to the catalogs goes through the Reader, which notes it, so that the read set of a decision is
// complete.
package graph
