// Package binaries builds the programs of a test cluster from their Go modules and keeps them.
//
// What is built is written down in tools/k8s and tools/kwok: go.mod pins the versions, go.sum the bytes. A finished set
// lies in .cache/k8s/<key>/bin, where the key names the Kubernetes version, the Go version and everything in these files;
// so a set is never changed, and another version is built beside it. CHANDLER_CACHE moves .cache elsewhere.
//
// The first build takes five minutes on two idle cores, and twelve on busy ones. Only one process builds; others wait for it.
package binaries
