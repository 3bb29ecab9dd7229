// Package binaries builds the programs of a test cluster from their Go modules and keeps them.
//
// What is built is written down in tools/k8s: go.mod pins the versions, go.sum the bytes, main.go puts all of them into
// one program, which is the one by whose name it is called. A finished set is that program and links to it. It lies in
// ~/.cache/chandler/k8s/<key>/bin ($XDG_CACHE_HOME moves ~/.cache), which all checkouts of a user share: the key names
// the Kubernetes version, the Go version and everything in these files, so a set is never changed, and another version
// is built beside it. CHANDLER_CACHE names another folder instead of ~/.cache/chandler.
//
// How long the first build takes stands in docs/benchmarks.md. Only one process builds and reports; others wait for it.
package binaries
