// Package crd decides whether a plan can change a custom resource definition safely, how the change affects existing
// objects, and whether it can be undone (R-CRD-1 … R-CRD-8). Package compare finds the differences between the two
// definitions. This package adds what only the cluster knows: owners, stored versions and live objects, which are
// pruned, defaulted and validated by the API server's own code.
package crd
