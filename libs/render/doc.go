// Package render turns a bundle into the objects that a cluster gets. It is pure, ordered and
// deterministic: the resolver renders to name a plan's steps by digest, the executor renders again
// and refuses a plan whose digests differ.
//
// Order (R-IP-20): the ClusterServiceVersion, CRDs, then service accounts, roles and bindings, optional
// objects and the Services of webhooks and aggregated APIs; then Deployments, since the executor holds them
// back until the ClusterServiceVersion's requirements are met; last what makes the API server call them
// (R-CSV-40..46). No object holds an id, a time, or anything of the plan or of the cluster: no target
// namespace, certificate or proxy. The executor applies those as overlays. Owner references are not here either: they
// need a UID of the cluster, so the executor adds them.
//
// Objects are built from the manifests as they were written, not through the Kubernetes API types,
// so that a digest does not move when those types gain a field.
package render
