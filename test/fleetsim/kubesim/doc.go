// Package kubesim is a Kubernetes API in memory, for fleets of more clusters than a machine has room for API servers.
//
// It keeps what executors rely on: optimistic concurrency, server-side apply with Kubernetes' own field managers,
// watches that go on from a resourceVersion, definitions that are served once they are established, owners that take
// what they own with them, and the two admission policies of Chandler that the executor tries before it begins. It has
// no admission besides, no validation and no defaults; Deployments are ready as soon as Ready says so. What an
// operator meets in a real cluster is tested on real API servers (test/executor, test/bundles).
package kubesim
