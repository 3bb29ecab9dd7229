// Package kube is the executor's side towards one Kubernetes API: bootstrap, lease, fence,
// server-side apply, the plan executions with their step logs, and watches.
//
// Two identities are used. The kubeconfig's own (Base) makes what Chandler itself needs: its
// namespace, its CRDs, the lease and the fence. Everything else is done as the service account
// chandler-system/chandler-executor, impersonated, with the holder's epoch as an extra of the user;
// the fence refuses any such write whose epoch is lower than the newest holder's (DESIGN D7).
package kube
