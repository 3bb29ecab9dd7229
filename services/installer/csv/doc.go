// Package csv decides the phase of a ClusterServiceVersion from an observation (R-CSV §6.3).
//
// It is pure. Next takes a status and an observation, which includes the time, and returns the next transition. There
// is one transition at a time, so that the history contains every phase, however late the observation comes. The
// executor adds each transition to the status (Status.Apply) before it calls Next again, so that the history in the
// object (Status.Conditions) has no gaps and no duplicates.
//
// Other packages find out about API services, webhooks, certificates (R-CSV-40..46), intersections of operator groups
// (R-OG §7.7) and operator conditions (R-COND-3); here they only affect the phase.
package csv
