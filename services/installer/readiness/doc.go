// Package readiness says why a Deployment is not ready, from what a cluster shows of it: its conditions, its ReplicaSets,
// its Pods and, where these do not say, Events.
//
// It is pure. What it says is steady: the same trouble gives the same text, however often it is looked at and whichever Pod
// shows it. So names of Pods, addresses, times and counters are left out, and a text that changed is news. Reasons are codes and may
// stand in events; messages are for people and stay out of the log.
package readiness
