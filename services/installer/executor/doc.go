// Package executor carries out install plans in one Kubernetes cluster and follows what it installed
// (DESIGN D7, D8). It knows one Kubernetes API and one NATS connection: it reads PLANS and CONTENT,
// writes REPORTS (package protocol), and never touches Postgres. The installer service hosts one for
// each cluster with a stored kubeconfig; the agent is the same code in the cluster itself.
//
// # Who may write
//
// Candidates compete for the Lease chandler-system/chandler-executor. Whoever takes it raises its epoch, then
// raises the fence: a ValidatingAdmissionPolicy that refuses every write by Chandler's identity in a lower epoch.
// The first step waits until a trial write was refused. A holder that was paused and wakes up late is thus refused
// by the API server itself, for deletes as well as for writes, and no object needs a stamp. A holder that cannot
// renew stops before its next step. In a cluster of several API servers each loads the policy within a second or so
// of the others; the wait for the lease to run out covers that, except after a restart under the same name.
//
// # What is authoritative
//
// In the cluster: the PlanExecution of a plan or removal (its step log), the InstalledOperator (what is installed,
// its phase and history; a ClusterServiceVersion is a copy of it, and uninstalls nothing when it is deleted), the
// lease (the epoch) and the ConfigMaps chandler-seen-* (the position of the record that was acted on). All are written
// by compare-and-set. What is in memory can be lost at any point. In the hub: what is wanted. A message about a
// namespace that is older than what was acted on there is refused: it comes from a record that lost commits, and
// must not drag the cluster back (DESIGN D1).
//
// # A reconcile
//
// A session lasts from the lease to its loss. It has a queue of namespaces; messages of the hub, watches and timers
// put one there. A reconcile of a namespace reads it into a scope.Scope and runs the stages (session.stageList has
// their order and why). A stage is a scope.Stage; a package whose subject comes up several times in a reconcile has
// several, each a small type of its own. No stage's package imports another: what one has found out the next finds in
// the scope, and what a stage asks of another it asks through a small interface of its own; newStages wires them.
// Packages failure, scope, overlay, objects, steplog, kube, hubclient and watch are what stages stand on.
//
// What a stage decides is in its decide.go, as functions of values; TestDecisionsArePure keeps it so. Some decisions
// are packages of services/installer: csv, permissions, crd, readiness and sharedobject, which several stages ask;
// removal, which the hub asks, too; and mirror, which is too large for one package with its stage.
//
//	stage          reads                                decides and writes
//	clusterconfig  proxy, pull secrets                  copies of pull secrets
//	group          operator group, targets, claims      roles in targets, roles of users, labels of namespaces
//	serving        Secrets, CRDs                        certificates, conversion of CRDs
//	plan           PLANS, CONTENT, step logs            steps of plans
//	uninstall      removals, step logs                  steps of removals; what gone operators leave
//	rerender       inputs of the overlays               objects that are to look otherwise by now
//	condition      what operators say of upgrades       OperatorConditions and their status
//	lifecycle      Deployments, requirements            phases; lost Deployments; replaced operators
//	deferred       kinds that are served by now         steps that plans have left
//	drift          what a watch says has moved          what others changed
//	mirror         everything                           objects of OLM's kinds, for people and tools
//	report         everything                           REPORTS
//
// # A plan
//
//	(not begun) ── grant, digests, operator group, predecessor, stop switch, rights, definitions ──▶ Started
//	   the steps one by one: Taken in the log, applied, Done in the log ──▶ Finished
//	   │ ▲
//	   ▼ │ by itself, with back-off kept in the log
//	Blocked (transient, conflict, expired, stopped)        Failed (permanent)
//
// A step that is Done never runs again. One that is Taken, after a crash or a failed try, is read first: where the
// object already carries the step's digest it is not written again. One write of the log ends a batch of steps and
// takes the next. Expiry of the grant and the base count before the first step only: once begun, a plan is finished
// or aborted by name (DESIGN D6): the removal of one of its operators ends one that is stuck, and a plan whose
// InstalledOperator somebody deleted fails. The log alone says whether a plan is under way: while it cannot be read,
// the phases of its operators stay as they are.
//
// Deployments, and what has the API server call them, depend on the phase of their operator. The plan returns that
// it waits; the phases are reconciled, and the plan goes on where it was.
//
// Objects go in by server-side apply, under one field manager for each operator (package and namespace). Added to
// what was rendered are Chandler's own label and annotations, an owner reference to the InstalledOperator for objects
// in its namespace (R-IP-23), the spec.replaces that the plan decided, and the overlays. Fields of other managers are
// taken over only in objects that Chandler wrote before; in anybody else's they block the plan as a conflict. A
// namespace that is missing is created: it is the subscription's own.
//
// # Before the first step
//
// Where the operator group names a service account, the plan's objects are written through it, by impersonation in
// the holder's epoch, so that the fence holds for them, too; CRDs, APIServices and what Chandler keeps of the operator
// are written by Chandler itself (R-OG-60, R-OG-61). The account is fixed when the plan is begun; what is kept up
// afterwards is Chandler's, so that a running operator keeps what it was given (R-OG-64). All rights that the account
// lacks are found before the first step, the API server's check against escalation included (package permissions), and
// so is every definition whose change would hurt owners or objects (package crd). Both are a block that ends when the
// cause is fixed. Anybody may ask for the same before a plan is approved, over NATS (protocol.RPCCheckPlan): nothing
// is written. An object that is not there when a plan is checked is created, and nothing of it is taken over: where
// somebody created it meanwhile, it is treated as if it had been there. So one request is enough for an object.
//
// # Objects of several operators
//
// Operators may bring an object under one name (package sharedobject, ADR 0021). Equal ones have several owners; of
// different ones a person says before the first step which form holds, and that is noted in ConfigMap chandler-shared
// before the object is written. Its holder applies the whole, others no more than the note that they have it; each
// under its own manager. An object that came between the check and the step may need a person's choice for a plan
// that has begun. What an approver says of a definition whose change hurts goes the same way.
//
// # What decides a phase
//
// Each reconcile observes an operator anew (package csv has the table). What it requires is asked of the cluster as it
// is: CRDs, APIs, accounts, and of each account, in its own name, what it may do in the targets and in the whole
// cluster, whoever granted it. That an operator lacks nothing is remembered for a while, or until a watch reports a
// change (package facts). An operator says through its OperatorCondition whether it lets itself be upgraded; it is read
// right before the first step of an upgrade, and once more while the new one is Pending (package condition).
//
// Why a Deployment is not ready is asked of the cluster only while one is not (packages unready and readiness). What an
// admission webhook refuses is reported with the operator that it belongs to (package webhooks), of plans, too; the
// check of a plan tries one object of each kind that a webhook is asked about, without effect.
//
// # Webhooks and API services
//
// A Deployment that the API server calls has a certificate in a Secret (packages serving and certs), which is no step
// of a plan, since its content is generated in the cluster: it is there before the first object that needs it, a CRD
// with a conversion webhook or the Deployment. Its CA is put into whatever has the API server call. Webhook
// configurations and APIServices come last, when the Deployments answer; where these failed, the plan ends without,
// and the steps that it left are carried out when they have recovered. A renewal is the phase NeedsCertRotation: the
// Secret, then the new CA beside the former one wherever the API server looks for it, then the pods. Where an operator
// goes without a successor its CRDs are converted by name again (R-CSV-46).
//
// A CRD in the form of a new version keeps the conversion and the stored version that it had (certs.Keep has the
// table) until the Deployments that are to convert answer. Only then is it written whole; only after that is the new
// version Succeeded, and only after that the former one, with its Service, goes: at each point between somebody
// converts. Who converts is read from the CRD as it is, so a crash at any of these points changes nothing. An operator
// that waits behind a successor, which may be Failed for weeks, is kept up as long as it is there: its certificates are
// renewed, and what is not its successor's by now follows the overlays, Deployments included (R-CSV-50).
//
// # Operator groups
//
// Targets are found anew in each reconcile: listed ones, those that a selector chooses now, or all. Roles of the
// operators are copied to the targets, or become ClusterRoles, before the Deployments go in, and follow the targets
// from then on (R-OG-44, R-OG-45); the label of the group follows them, too. Which operator provides which API is a
// claim: the annotation olm.providedAPIs of its InstalledOperator, judged against the groups of all namespaces
// (R-OG §7.7, package group). What users get, the roles of a group and of each API, comes after a phase was reported.
// Without exactly one group nothing is known of targets: operators are Failed, and what runs stays as it is.
//
// # Overlays
//
// What depends on the cluster as it is now is no part of a plan: the namespaces that the group serves, serving
// certificates, the proxy, pull secrets. Each is an overlay, a function of rendered body and live input. A digest of
// both is an annotation of the object; when an input changes, the operators at rest are rendered again, Deployments
// through their phases, as OLM does.
//
// # Drift
//
// A watch of metadata reports which objects moved, and by whom: Chandler's own writes are known by their resource
// versions. What somebody else wrote is compared with what Chandler would write, by a trial of the API server where
// plain comparison does not settle it, then put right or only reported, as the cluster's settings say (R-CSV-24). News
// of a watch is a hint: an object counts as gone when a read of it says so, never because a list does not show it.
//
// # Failures
//
// Transient: the API server or the hub is away, forbidden (R-IP-40: granting the right lets the plan go on), an API not
// served, a namespace missing. Conflict: another manager's fields, another base, no or several operator groups
// (R-IP-42). Permanent: the API server calls the object invalid, or the digests do not agree. Deployments wait until
// the ClusterServiceVersion's requirements are met (R-CSV-20). A panic is transient for the plan, or the namespace,
// that it met; the others go on.
//
// A plan that was begun is reported as long as its log is kept, whether the hub still names it or not: to the hub, one
// that was superseded while its first step was on the way was never begun until a report says so.
//
// # Upgrades
//
// The executor makes one transition after the other, and writes those that follow from one state of the cluster into
// the status of an InstalledOperator together: the history there is free of gaps and doubles. In an upgrade (R-CSV-50)
// the old operator becomes Replacing, the new one installs, and when it is Succeeded the old one becomes Deleting; its
// final report goes into the PlanExecution that replaced it, then what it alone owns is removed, then it itself, each
// with the UID that was read. One that somebody deleted is reported as such, and what it leaves outside its namespace
// is removed.
//
// # Removals
//
// Package removal decides what goes and what stays, or refuses. The PlanExecution of the request keeps that as its step
// log, so that what is carried out is what was decided, object by object with its UID. Batch by batch: custom resources
// where they were asked for, while the operator runs and is followed, since it ends their finalizers; from then on
// nobody repairs it; conversion; webhooks and API services; Deployments; the rest; definitions, unless an operator owns
// them that was installed since; at last what was made meanwhile, the final report, and the InstalledOperator. A batch
// is carried out again after a crash. Whose finalizers a removal waits for is reported.
package executor
