// Package csv decides the phase of a ClusterServiceVersion from what was observed (R-CSV §6.3).
//
// It is pure: Next takes a status and an observation, with the time in it, and returns the next
// transition, one at a time, so that no phase is left out of the history however late the
// observation comes. The executor writes each transition into the object before it asks again; the
// history in the object (Status.Conditions) is therefore free of gaps and of doubles.
//
// What the observation says of API services, webhooks, certificates (R-CSV-40..46), intersections of operator groups
// (R-OG §7.7) and operator conditions (R-COND-3) is found out elsewhere; here it only moves the phase.
package csv
