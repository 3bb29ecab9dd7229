// Package render turns a bundle into the objects that a cluster gets. It is pure, ordered and
// deterministic: the resolver renders to name a plan's steps by digest, the executor renders again
// and refuses a plan whose digests differ.
//
// Order (R-IP-20): the ClusterServiceVersion, CRDs, then service accounts, roles and bindings,
// optional objects, and Deployments last, since the executor holds them back until the
// ClusterServiceVersion's requirements are met. No object holds an id, a time, or anything of the
// plan. Owner references are not here either: they need the UID that the ClusterServiceVersion has in
// the cluster, so the executor adds them.
//
// Objects are built from the manifests as they were written, not through the Kubernetes API types,
// so that a digest does not move when those types gain a field.
//
// A bundle that declares webhooks or aggregated APIs (R-CSV-40..46) renders without their
// certificates, Services and webhook configurations; Unserved names what is left out.
package render
