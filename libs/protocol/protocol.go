// Package protocol is the messages between hub and executor over NATS (DESIGN D8). An
// executor knows one Kubernetes API, the scopes it reads here, the content it fetches and the
// reports it writes; it never touches Postgres.
//
// Both directions are level-triggered: a ScopePlans message is the complete desired state of one
// namespace of one cluster, a ScopeReport its complete observed state. Each is the last value of its
// subject, so losing one, or the whole stream, costs only the time until it is written again.
package protocol

import (
	"encoding/json"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
)

// Kinds of JetStream streams (StreamName), and the subjects' fixed words. <tenant>, <cluster> and <scope> are
// tenant id, cluster stream UUID and UUIDv5 of the namespace; names travel in the messages.
const (
	StreamPlans   = "PLANS"   // chandler.plans.<tenant>.<cluster>.<scope>, MaxMsgsPerSubject 1
	StreamReports = "REPORTS" // chandler.reports.<tenant>.<cluster>.<scope|cluster>, MaxMsgsPerSubject 1
	StreamEvents  = "EVENTS"  // chandler.evt.<tenant>.<kind>.<stream uuid>: hints
	StreamContent = "CONTENT" // chandler.content.<tenant>.<digest hex>.<chunk number>, MaxMsgsPerSubject 1
	SubjectPlans  = "chandler.plans"
	SubjectReport = "chandler.reports"
	SubjectChunks = "chandler.content"
	SubjectEvents = "chandler.evt"
)

// ContentChunkBytes is the size of one content chunk: half of NATS' default limit of 1 MiB a
// message, so that headers never matter.
const ContentChunkBytes = 512 << 10

// Header names on content chunks: how many there are, and the digest of the whole canonical bundle.
const (
	HeaderChunks = "Chandler-Chunks"
	HeaderDigest = "Chandler-Digest"
)

// Scope is one namespace of one cluster.
type Scope struct {
	Tenant    string `json:"tenant"`
	Cluster   string `json:"cluster"` // name
	ClusterID string `json:"clusterId"`
	Namespace string `json:"namespace"`
}

// ScopePlans is everything that the executor of a cluster has to do in one namespace.
type ScopePlans struct {
	Scope    Scope           `json:"scope"`
	Position events.Position `json:"position"` // of the newest event this message takes into account
	// Proof is the hub's signature of Position (ProvePosition).
	Proof []byte `json:"proof,omitempty"`
	// Stopped is set while effects are stopped; the executor finishes no further step.
	Stopped bool `json:"stopped,omitempty"`
	// OperatorGroups counts the groups of the namespace; a plan starts only with exactly one (R-IP-42).
	OperatorGroups int           `json:"operatorGroups"`
	OperatorGroup  OperatorGroup `json:"operatorGroup"`
	// Plans are approved and not yet recorded as finished, failed or superseded, oldest first.
	Plans []Plan `json:"plans"`
	// Installed are the CSVs of this namespace in the event log, to be followed.
	Installed []Installed `json:"installed,omitempty"`
	// Removals are requested and have not ended, oldest first.
	Removals []Removal `json:"removals,omitempty"`
	// Settings are those of the cluster, the same in the messages of all its scopes.
	Settings events.ClusterSettings `json:"settings,omitzero"`
	// Subscriptions are set if Settings.Mirror is all, and only for the mirrors in the cluster.
	Subscriptions []Subscription `json:"subscriptions,omitempty"`
	// Waiting are plans that may not start yet, set like Subscriptions and for the same purpose.
	Waiting []WaitingPlan `json:"waiting,omitempty"`
}

// Subscription is one subscription of the namespace, without its configuration.
type Subscription struct {
	Name string                  `json:"name"`
	Spec events.SubscriptionSpec `json:"spec"`
	// Failed is the resolver's reason why it does not resolve; "" if it does, or that is not known yet.
	Failed      string    `json:"failed,omitempty"`
	FailedSince time.Time `json:"failedSince,omitzero"`
	// Catalog is the one that it names; nil if there is none of that name.
	Catalog *CatalogState `json:"catalog,omitempty"`
	// Deprecations are those of the package, the channel and the installed version.
	Deprecations []Deprecation `json:"deprecations,omitempty"`
	Metadata
}

// Metadata are the labels and annotations of an intent, for its mirror in the cluster. They are left out if a message
// would become too large.
type Metadata struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Deprecation is what a catalog says of an element that it deprecates (R-CAT-13).
type Deprecation struct {
	Schema  string `json:"schema"` // olm.package, olm.channel, olm.bundle
	Name    string `json:"name"`
	Message string `json:"message"`
}

// CatalogState is the state of a catalog.
type CatalogState struct {
	// Subject is its name, or cluster/namespace/name of a cluster's own.
	Subject  string `json:"subject,omitempty"`
	Priority int    `json:"priority,omitempty"`
	State    string `json:"state"` // Loading, Ready, Failed
	Reason   string `json:"reason,omitempty"`
	// DisplayName and Publisher are what people see of it.
	DisplayName string `json:"displayName,omitempty"`
	Publisher   string `json:"publisher,omitempty"`
	Metadata
}

// WaitingPlan is a plan that waits for people, or for its maintenance windows.
type WaitingPlan struct {
	ID      string                 `json:"id"`
	Name    string                 `json:"name"`
	Bundles []events.PlannedBundle `json:"bundles"`
	// Approved is set if it waits for something other than approval, which is in Message.
	Approved bool   `json:"approved,omitempty"`
	Message  string `json:"message,omitempty"`
}

// OperatorGroup is the one group of the namespace.
type OperatorGroup struct {
	// ID is the UUID of the group's stream: labels in the cluster name the group by it.
	ID   string                   `json:"id,omitempty"`
	Name string                   `json:"name"`
	Spec events.OperatorGroupSpec `json:"spec"`
	Metadata
}

// Installed names a CSV that is to be followed and the content that it came from.
type Installed struct {
	CSV string `json:"csv"`
	// Content is what the plan installs under this name, "" if no plan of the event log does: reports do not prove it.
	Content string `json:"content"`
	Plan    string `json:"plan"`
	// Config is the present configuration of its subscription (R-SUB-14), sealed as Plan.Configs, null for none. If it
	// is absent, the plan's
	// configuration holds: the operator has no subscription, or its configuration was erased.
	Config json.RawMessage `json:"config,omitempty"`
	// Overrides count in the place of the operator's own conditions; nil where none do.
	Overrides *Overrides `json:"overrides,omitempty"`
}

// Overrides are what spec.overrides of an OperatorCondition is to say.
type Overrides struct {
	Conditions []events.ConditionOverride `json:"conditions"`
	Since      time.Time                  `json:"since"` // when they were set
}

// Plan is one approved plan with the grant under which it may be executed.
type Plan struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Digest    string          `json:"digest"`
	Component string          `json:"component"`
	Document  json.RawMessage `json:"document"` // installplan.Document, canonical JSON
	// Configs are subscription configurations (R-SUB §4.2) by CSV name, sealed to the executors of the cluster
	// (libs/configseal): whoever carries or keeps the message reads no values. They are never in an event.
	Configs     map[string]json.RawMessage `json:"configs,omitempty"`
	Grant       Grant                      `json:"grant"`
	TraceParent string                     `json:"traceparent,omitempty"`
}

// Grant is the signed and expiring permission to execute one plan (DESIGN D6). Signature is Ed25519
// over the canonical JSON of the grant without it.
type Grant struct {
	Plan      string `json:"plan"`
	Digest    string `json:"digest"`
	Cluster   string `json:"cluster"` // cluster id
	Namespace string `json:"namespace"`
	// Account is the name of the service account that writes the plan's objects, "" for Chandler itself (R-OG-60).
	Account string `json:"account,omitempty"`
	// Operators are what the plan brings; a grant of before it was written down here names none.
	Operators []GrantedOperator `json:"operators,omitempty"`
	// Choices are what approvers said of obstacles that a person may settle. They count for a plan that has begun, too.
	Choices   []Choice  `json:"choices,omitempty"`
	Expires   time.Time `json:"expires"`
	Signature []byte    `json:"signature,omitempty"`
}

// ScopeReport is everything the executor knows of one namespace. Histories are complete lists of
// transitions, so that a report that was lost hides nothing.
type ScopeReport struct {
	Scope Scope `json:"scope"`
	Epoch int64 `json:"epoch"` // of the holder that reports
	// Session and Sequence order reports: a session's later report has the higher number.
	Session  string          `json:"session"`
	Sequence int64           `json:"sequence"`
	Seen     events.Position `json:"seen"`            // highest position that this cluster has acted on
	Proof    []byte          `json:"proof,omitempty"` // of Seen, as it came with ScopePlans
	Plans    []PlanReport    `json:"plans,omitempty"`
	CSVs     []CSVReport     `json:"csvs,omitempty"`
	Removals []RemovalReport `json:"removals,omitempty"`
	// Group is absent while nothing can be said of it.
	Group *GroupReport `json:"group,omitempty"`
	// Cut is what was left out of all of the report, what CSVs and Removals say for themselves included.
	Cut Cut `json:"cut,omitzero"`
	// Reported is the executor's clock, for people: nothing is decided by it.
	Reported time.Time `json:"reported"`
}

// Phases of a plan in a report.
const (
	PlanBlocked  = "Blocked"
	PlanStarted  = "Started"
	PlanFinished = "Finished"
	PlanFailed   = "Failed"
)

// PlanReport is how far a plan is.
type PlanReport struct {
	ID    string `json:"id"`
	Phase string `json:"phase"`
	Begun bool   `json:"begun"` // the first step was taken, whatever the phase now
	// Started is when that was by the executor's clock.
	Started time.Time `json:"started,omitzero"`
	Steps   int       `json:"steps"`
	Done    int       `json:"done"`
	// Class is of a block or failure: transient, conflict, permanent, expired, stopped.
	Class   string `json:"class,omitempty"`
	Reason  string `json:"reason,omitempty"`  // a code
	Message string `json:"message,omitempty"` // for people; stays out of the log
	// Warnings counts those of the API server, and fields that it would not keep (R-IP-25).
	Warnings int `json:"warnings,omitempty"`
	// StepLog is the step log's canonical JSON, once the plan is Finished or Failed.
	StepLog     json.RawMessage `json:"stepLog,omitempty"`
	TraceParent string          `json:"traceparent,omitempty"`
}

// CSVReport is one ClusterServiceVersion with its whole history of phases, oldest first.
type CSVReport struct {
	Name    string       `json:"name"`
	Package string       `json:"package"`
	Version string       `json:"version"`
	Content string       `json:"content"`
	Plan    string       `json:"plan"`
	UID     string       `json:"uid"` // of the object in the cluster; another one is another life
	History []Transition `json:"history"`
	// Dropped counts transitions that were left out of History before its first entry.
	Dropped int  `json:"dropped,omitempty"`
	Removed bool `json:"removed,omitempty"`
	// RemovedReason is Replaced, Deleted or Uninstalled.
	RemovedReason string `json:"removedReason,omitempty"`
	Removal       string `json:"removal,omitempty"` // of one that was uninstalled
	TraceParent   string `json:"traceparent,omitempty"`
	// Requirements are requirementStatus of the object (R-CSV-5).
	Requirements json.RawMessage    `json:"requirements,omitempty"`
	Condition    *OperatorCondition `json:"condition,omitempty"`
	Drift        []Drift            `json:"drift,omitempty"`
	Components   []Component        `json:"components,omitempty"`
	// Message is that of the present phase: it may have changed since the transition that History holds.
	Message string `json:"message,omitempty"`
	// NotReady are the Deployments that are not ready, by name.
	NotReady []NotReady `json:"notReady,omitempty"`
	// Conditions are what is out of the ordinary whatever the phase; none where nothing is.
	Conditions []Condition `json:"conditions,omitempty"`
	Cut        Cut         `json:"cut,omitzero"` // of this one
}

// Transition is one change of phase.
type Transition struct {
	Phase   string    `json:"phase"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Time    time.Time `json:"time"`
}

// ClusterReport is what the executor knows of a cluster as a whole.
type ClusterReport struct {
	Tenant    string `json:"tenant"`
	Cluster   string `json:"cluster"`
	ClusterID string `json:"clusterId"`
	// Connected, Unreachable, Unauthorized, Refused, HeldElsewhere
	State             string `json:"state"`
	Reason            string `json:"reason,omitempty"` // a code
	Message           string `json:"message,omitempty"`
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	TokenAuth         string `json:"tokenAuth,omitempty"` // one of TokenAuth…, "" while it is not known
	// Facts are what the cluster is made of, nil while that is not known and where they did not change; without the
	// digest of the APIs, which are listed as group/version.
	Facts       *events.ClusterFacts `json:"facts,omitempty"`
	APIs        []string             `json:"apis,omitempty"`
	HolderEpoch int64                `json:"holderEpoch"`
	Session     string               `json:"session"`  // as in ScopeReport
	Sequence    int64                `json:"sequence"` // as in ScopeReport
	Seen        events.Position      `json:"seen"`
	Proof       []byte               `json:"proof,omitempty"` // as in ScopeReport
	Reported    time.Time            `json:"reported"`        // as in ScopeReport
	// HeartbeatSeconds is how often this report is written though nothing changes; 0, of an earlier release, is 15.
	HeartbeatSeconds int `json:"heartbeatSeconds,omitempty"`
	// Acted is the highest position with which anything began in the cluster, as it keeps it, and ActedProof its proof.
	// A record that was restored and has gone on comes to lie beyond it: only the hash in the proof tells.
	Acted      events.Position `json:"acted,omitzero"`
	ActedProof []byte          `json:"actedProof,omitempty"`
	// Scopes are the newest reports of the namespaces, as REPORTS took them of this session. It is absent from an
	// executor that repeats them instead.
	Scopes *ReportSet `json:"scopes,omitempty"`
}

// Clouds whose short-lived tokens the operators of a cluster get (R-TOK-1).
const (
	TokenAuthNone  = "None"
	TokenAuthAWS   = "AWS"
	TokenAuthAzure = "Azure"
	TokenAuthGCP   = "GCP"
)
