// Package removal decides what uninstalling an operator does (R-UNI, P14): what goes and in which order, what
// stays and why, who needs what goes, and whether a request is carried out at all. It is pure: what the cluster
// holds comes in as data, a protocol.RemovalPlan goes out. The same input gives the same plan, byte for byte.
//
// The order is the one in which nothing is left that only something removed before could have ended: custom
// resources while the operator runs, since it ends their finalizers; what sends the API server's requests to the
// operator, so that none fails for its absence; Deployments; the rest; custom resource definitions; the
// InstalledOperator last, since it is the memory of what there was.
package removal
