// Package readiness finds out why a Deployment is not ready, from its conditions, its ReplicaSets, its Pods and, if
// these do not show the cause, Events.
//
// It is pure. The same problem always gives the same message, whichever Pod shows it: names of Pods, addresses, times
// and counters are left out, so that a changed message means a changed problem. Reasons are codes and may be part of
// events; messages are for people and are not recorded.
package readiness
