package events

import "time"

// PlannedBundle is one bundle that a plan installs or upgrades to, and why.
type PlannedBundle struct {
	CSV      string `json:"csv"`
	Package  string `json:"package"`
	Version  string `json:"version"`
	Channel  string `json:"channel"`
	Catalog  string `json:"catalog"`
	Revision string `json:"revision"`           // catalog revision that it was taken from
	Content  string `json:"content"`            // digest of the canonical bundle
	Replaces string `json:"replaces,omitempty"` // installed CSV that it follows
	Reason   string `json:"reason"`             // code: Subscribed, ChannelHead, NextStep, SkipRange, RequiredPackage, RequiredAPI, StartingCSV
	// RequiredBy is the CSV whose requirement brought this bundle in.
	RequiredBy    string   `json:"requiredBy,omitempty"`
	Subscriptions []string `json:"subscriptions,omitempty"`
}

// PlanBase is what an approval is bound to beside the plan's digest (DESIGN D6). Each field is a digest.
type PlanBase struct {
	Installed     string `json:"installed"`     // installed bundles of the component
	CRDs          string `json:"crds"`          // CRDs touched
	OperatorGroup string `json:"operatorGroup"` // its spec
	Config        string `json:"config"`        // configuration of the subscriptions
	Policy        string `json:"policy"`        // approval modes
}

// InstallPlanProposed opens a plan. Subject: the plan's name (install-<5 characters>) behind
// cluster/namespace/. The plan's key is its random id.
type InstallPlanProposed struct {
	Plan       string          `json:"plan"` // random id, a UUID
	Name       string          `json:"name"`
	Cluster    string          `json:"cluster"`
	Namespace  string          `json:"namespace"`
	Generation int64           `json:"generation"`
	Component  string          `json:"component"` // stable name of the set of operators planned together
	Approval   string          `json:"approval"`  // Automatic, Manual
	Digest     string          `json:"digest"`    // content only: no id, time or generation
	Document   string          `json:"document"`  // digest of the plan document in the resolver schema
	Input      string          `json:"input"`     // digest of the resolution's input
	Semantics  string          `json:"semantics"`
	Steps      int             `json:"steps"`
	Base       PlanBase        `json:"base"`
	Bundles    []PlannedBundle `json:"bundles"`
}

// EventType implements Payload.
func (InstallPlanProposed) EventType() Type { return "installplan.proposed.v1" }

// InstallPlanSuperseded says that another plan (or none, By empty) takes this one's place before it was begun.
type InstallPlanSuperseded struct {
	By string `json:"by,omitempty"`
}

// EventType implements Payload.
func (InstallPlanSuperseded) EventType() Type { return "installplan.superseded.v1" }

// InstallPlanApproved names what was approved (DESIGN D6). The approver is the envelope's authid.
type InstallPlanApproved struct {
	Digest  string    `json:"digest"`
	Base    PlanBase  `json:"base"`
	Expires time.Time `json:"expires"`
}

// EventType implements Payload.
func (InstallPlanApproved) EventType() Type { return "installplan.approved.v1" }

// InstallPlanRejected ends a plan by a person's decision.
type InstallPlanRejected struct {
	Digest string `json:"digest"`
}

// EventType implements Payload.
func (InstallPlanRejected) EventType() Type { return "installplan.rejected.v1" }

// InstallPlanStarted says that the executor began with the first step.
type InstallPlanStarted struct {
	Steps int `json:"steps"`
}

// EventType implements Payload.
func (InstallPlanStarted) EventType() Type { return "installplan.started.v1" }

// InstallPlanBlocked says that a plan waits for something outside; it goes on by itself. It is
// appended when the reason changes.
type InstallPlanBlocked struct {
	Class  string `json:"class"`  // transient, conflict, expired, stopped
	Reason string `json:"reason"` // a code, such as ClusterUnreachable, Forbidden, NoOperatorGroup
}

// EventType implements Payload.
func (InstallPlanBlocked) EventType() Type { return "installplan.blocked.v1" }

// InstallPlanFinished says that every step is done; CSV health is told by csv.* events.
type InstallPlanFinished struct {
	Steps   int    `json:"steps"`
	StepLog string `json:"stepLog"` // digest of the step log, in the installer schema
}

// EventType implements Payload.
func (InstallPlanFinished) EventType() Type { return "installplan.finished.v1" }

// InstallPlanFailed says that a step failed for good.
type InstallPlanFailed struct {
	Step    int    `json:"step"` // 1-based
	Reason  string `json:"reason"`
	StepLog string `json:"stepLog"`
}

// EventType implements Payload.
func (InstallPlanFailed) EventType() Type { return "installplan.failed.v1" }
