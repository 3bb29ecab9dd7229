// Package hub tells executors what is wanted. A consumer of the log keeps the tables of the installer
// schema and marks the touched scopes (one namespace of one cluster) dirty, all in one transaction per
// batch; workers take a dirty scope, compute the whole of what is wanted of it and publish that as the
// last value of its subject in PLANS, having made sure that the content which it names is in CONTENT.
//
// Nothing here happens in the order of events only: what is published is always everything, from the
// tables as they are, so that publishing late, twice, or after the stream was lost is right. A guard
// looks whether the streams are there and are the ones that were filled, and whether grants need to
// be signed again, and marks scopes dirty.
package hub
