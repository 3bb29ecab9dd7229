// Package removal decides what uninstalling an operator does (R-UNI, P14): what is deleted and in which order, what
// stays and why, which operators depend on it, and whether a request is carried out at all. It is pure: the state of
// the cluster comes in as data, a protocol.RemovalPlan goes out. The same input gives the same plan, byte for byte.
//
// The order makes sure that every object can still be deleted when its turn comes: first custom resources, while the
// operator runs, since it removes their finalizers; then what routes requests of the API server to the operator, so
// that no request reaches a missing backend; then Deployments; the rest; custom resource definitions; and last the
// InstalledOperator, which lists what was installed.
package removal
