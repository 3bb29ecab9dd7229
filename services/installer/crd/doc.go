// Package crd says whether a custom resource definition may be changed as a plan wants, what that does to the objects
// that a cluster holds, and whether it can be undone (R-CRD-1 … R-CRD-8). What differs between the two definitions comes from
// package compare; here it meets what only the cluster knows: owners, stored versions and live objects, which are
// pruned, defaulted and validated by the API server's own code.
package crd
