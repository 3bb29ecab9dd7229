// Package executor carries out install plans in one Kubernetes cluster and follows what it installed
// (DESIGN D7, D8). It knows one Kubernetes API and one NATS connection: it reads PLANS and CONTENT,
// writes REPORTS (package protocol), and never touches Postgres. The installer service hosts one for
// each cluster with a stored kubeconfig; the agent is the same code in the cluster itself.
//
// # Who may write
//
// Candidates compete for the Lease chandler-system/chandler-executor. Whoever takes it raises its
// epoch, then raises the fence: a ValidatingAdmissionPolicy that refuses every write by Chandler's
// identity in a lower epoch. The first step waits until a trial shows that the fence stands. A holder
// that was paused and wakes up late is thus refused by the API server itself, whatever it believes,
// for deletes as well as for writes, and no object needs a stamp. A holder that cannot renew stops
// before its next step. In a cluster of several API servers each loads the policy within a second or so of
// the others; the wait for the lease to run out covers that, except after a restart under the same name.
//
// # What is authoritative
//
// In the cluster: the PlanExecution of a plan (its step log), the status of a ClusterServiceVersion (its
// phase and history), the lease (the epoch) and chandler-seen (the position of the record that was
// acted on). All are written by compare-and-set. What is in memory can be lost at any point. In the
// hub: what is wanted. A message about a scope that is older than what was acted on there is refused:
// it comes from a record that lost commits, and must not drag the cluster back (DESIGN D1).
//
// # A plan
//
//	(not begun) ── grant, digests, operator group, predecessor, stop switch ──▶ Started
//	   the steps one by one: Taken in the log, applied, Done in the log ──▶ Finished
//	   │ ▲
//	   ▼ │ by itself, with back-off kept in the log
//	Blocked (transient, conflict, expired, stopped)        Failed (permanent)
//
// A step that is Done never runs again. One that is Taken, after a crash or a failed try, is first
// looked at: where the object already carries the step's digest it is not written again. One write of
// the log ends a step and takes the next. Expiry of the grant and the base count before the first
// step only: once begun, a plan is finished or aborted by name (DESIGN D6).
//
// Objects go in by server-side apply, under one field manager for each operator (package and namespace).
// Added to what was rendered are only Chandler's own label and annotations, an owner reference to the
// ClusterServiceVersion for objects in its namespace (R-IP-23), and in the ClusterServiceVersion the
// spec.replaces that the plan decided. Fields of other managers are taken over only in objects that
// Chandler wrote before; in anybody else's they block the plan as a conflict. A namespace that is
// missing is created: it is the subscription's own.
//
// # Failures
//
// Transient: the API server or the hub is away, forbidden (R-IP-40: granting the right lets the plan go on),
// an API not served, a namespace missing. Conflict: another manager's fields, another base, no or
// several operator groups (R-IP-42). Permanent: the API server calls the object invalid, or the digests do
// not agree. Deployments wait until the ClusterServiceVersion's requirements are met (R-CSV-20).
// A panic is transient for the plan, or the namespace, that it met; the others go on.
//
// A plan that was begun is reported as long as its log is kept, whether the hub still names it or not: to the
// hub, one that was superseded while its first step was on the way was never begun until it is told.
//
// # A ClusterServiceVersion
//
// Package csv decides its phase, the executor writes one transition at a time into its status, so that
// the history there is free of gaps and doubles. Upgrade (R-CSV-50): the old one becomes Replacing, the
// new one installs, and when it is Succeeded the old one becomes Deleting; its last words go into the
// PlanExecution that replaced it, then what it alone owns is removed, then it itself, each with the
// UID that was looked at. One that somebody deleted is reported as such, and what it leaves
// outside its namespace is removed.
package executor
