// Package groups keeps what operator groups come to in a cluster: which namespaces there are, which operator has
// claimed which API, and the roles that follow from both. What it says of them in memory was read from the cluster,
// by a watch or at the start of a session, and can be read there again.
package groups
