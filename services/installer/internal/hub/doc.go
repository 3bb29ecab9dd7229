// Package hub publishes to executors what is wanted. A consumer of the log updates the tables of the installer schema
// and marks the affected scopes (one namespace of one cluster) dirty, in one transaction for each batch. Workers take a
// dirty scope, make sure that the bundles of its plans are in CONTENT, and publish everything that is wanted of the
// scope as the last value of its subject in PLANS.
//
// A message always holds everything, read from the present tables, so that publishing late, twice, or after a stream
// was lost is correct. A guard checks that the streams exist and are those that were filled, and which grants need a
// new signature, and marks scopes dirty.
package hub
