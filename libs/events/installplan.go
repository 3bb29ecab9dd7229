package events

import "time"

// installPlanEvents are the events of install plans, in the order of docs/events.md.
func installPlanEvents() []Definition {
	return []Definition{
		define(KindInstallPlan, Resolver, InstallPlanProposed{}, "A plan with its steps, digests and reasons."),
		define(KindInstallPlan, Resolver, InstallPlanSuperseded{},
			"Another decision takes the place of a plan not yet begun."),
		define(KindInstallPlan, Gateway, InstallPlanApproved{}, "A person approved exactly this digest on this base."),
		define(KindInstallPlan, Gateway, InstallPlanObstaclesSettled{},
			"An approver said what holds of objects that several operators bring, or overrode a change of a "+
				"definition that hurts."),
		define(KindInstallPlan, Gateway, InstallPlanApprovalGiven{},
			"One of several people agreed to exactly this digest on this base."),
		define(KindInstallPlan, Gateway, InstallPlanRejected{}, "A person ended the plan."),
		define(KindInstallPlan, Gateway, InstallPlanMetadataChanged{},
			"The plan has other labels or annotations from now on."),
		define(KindInstallPlan, Gateway, InstallPlanCommented{},
			"A person said something about the plan, or why they approved or rejected it."),
		define(KindInstallPlan, Installer, InstallPlanStarted{}, "The executor began."),
		define(KindInstallPlan, Installer, InstallPlanStartUnauthorised{},
			"An executor says that it began a plan that it had no authority to begin: nothing follows from it."),
		define(KindInstallPlan, Installer, InstallPlanBlocked{},
			"The plan waits for something outside and goes on by itself."),
		define(KindInstallPlan, Installer, InstallPlanFinished{}, "Every step is done."),
		define(KindInstallPlan, Installer, InstallPlanFailed{}, "A step failed for good."),
	}
}

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
	// code: Subscribed, ChannelHead, NextStep, SkipRange, RequiredPackage, RequiredAPI, StartingCSV, Rollback
	Reason string `json:"reason"`
	// RequiredBy is the CSV whose requirement brought this bundle in.
	RequiredBy    string   `json:"requiredBy,omitempty"`
	Subscriptions []string `json:"subscriptions,omitempty"`
}

// ReasonRollback is the reason of a bundle to which somebody wants to go back.
const ReasonRollback = "Rollback"

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
	Semantics  string          `json:"semantics"` // rules of the resolution
	Rendering  string          `json:"rendering"` // rules by which the bundles were rendered to steps
	Steps      int             `json:"steps"`
	Base       PlanBase        `json:"base"`
	Bundles    []PlannedBundle `json:"bundles"`
	// Policies are the names of the approval policies that shaped what follows, sorted.
	Policies []string `json:"policies,omitempty"`
	// ManualReasons are codes for why policies want a person, sorted: Install, PatchUpgrade, MinorUpgrade, MajorUpgrade
	// (a rule says so), Rollback, PermissionGrowth, PermissionGrowthUnknown (the two could not be compared).
	ManualReasons []string `json:"manualReasons,omitempty"`
	// Approvers is how many different people must approve; 0 is one.
	Approvers int `json:"approvers,omitempty"`
	// ApprovalSeconds is how long an approval holds that names no end; 0 is the default of 24 hours.
	ApprovalSeconds int64 `json:"approvalSeconds,omitempty"`
	// Windows are when the plan may begin: in every one of the groups, in one window at least. None is always.
	Windows []WindowGroup `json:"windows,omitempty"`
	// TakesOver is the id of a plan that had begun and ended because its rendering cannot be made any more: this one
	// brings the same bundles as they are rendered now, on top of what that one has left.
	TakesOver string `json:"takesOver,omitempty"`
}

// WindowGroup are the maintenance windows of one policy.
type WindowGroup struct {
	Policy  string   `json:"policy"`
	Windows []Window `json:"windows"`
}

// Window is a stretch of time that comes again every week.
type Window struct {
	Days  []string `json:"days,omitempty"` // Mon, Tue, Wed, Thu, Fri, Sat, Sun of the start; none is every day
	Start string   `json:"start"`          // HH:MM on the clock of the time zone
	// how long, in minutes that pass (a change to summer time does not shorten it)
	Minutes  int    `json:"minutes"`
	TimeZone string `json:"timeZone"` // IANA name
}

// EventType implements Payload.
func (InstallPlanProposed) EventType() Type { return "installplan.proposed.v1" }

// InstallPlanSuperseded says that another plan (or none, By empty) takes this one's place before it was begun.
type InstallPlanSuperseded struct {
	By string `json:"by,omitempty"`
	// code: RenderingChanged (the bundles are rendered to other objects by now); "" where something else that the plan
	// rests on has changed
	Reason string `json:"reason,omitempty"`
}

// SupersededRendering is the reason of a plan whose bundles are rendered to other objects by now.
const SupersededRendering = "RenderingChanged"

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

// InstallPlanApprovalGiven is one person's consent to a plan that wants more of them. The approval of the last one
// is InstallPlanApproved.
type InstallPlanApprovalGiven struct {
	Digest  string    `json:"digest"`
	Base    PlanBase  `json:"base"`
	By      string    `json:"by"` // opaque id of the approver, so that the same person does not count twice
	Expires time.Time `json:"expires"`
}

// EventType implements Payload.
func (InstallPlanApprovalGiven) EventType() Type { return "installplan.approval-given.v1" }

// What an approver may choose of an obstacle that a person may settle.
const (
	// ChoiceKeep leaves an object that several operators bring as it is; ChoiceTake has the plan's form of it hold.
	ChoiceKeep = "Keep"
	ChoiceTake = "Take"
	// ChoiceOverride has a custom resource definition changed although the change hurts.
	ChoiceOverride = "Override"
	// ChoiceAllow lets one bundle, by its digest, have what gives the cluster away: see the check of the plan.
	ChoiceAllow = "Allow"
)

// PlanChoice is what an approver says of one obstacle.
type PlanChoice struct {
	Object  string `json:"object"`  // Kind/name, in the plan's namespace or of the cluster
	Choice  string `json:"choice"`  // Keep, Take, Override, Allow
	Finding string `json:"finding"` // digest of what the approver saw: another finding is another obstacle
	// Reason is the commitment to the approver's words.
	Reason string `json:"reason,omitempty"`
}

// InstallPlanObstaclesSettled is what one approver says of obstacles of exactly this digest on this base. Where several
// people must approve, a choice counts when as many of them have made it.
type InstallPlanObstaclesSettled struct {
	Digest  string       `json:"digest"`
	Base    PlanBase     `json:"base"`
	By      string       `json:"by"` // opaque id of the approver, so that the same person does not count twice
	Choices []PlanChoice `json:"choices"`
}

// EventType implements Payload.
func (InstallPlanObstaclesSettled) EventType() Type { return "installplan.obstacles-settled.v1" }

// InstallPlanRejected ends a plan by a person's decision.
type InstallPlanRejected struct {
	Digest string `json:"digest"`
}

// EventType implements Payload.
func (InstallPlanRejected) EventType() Type { return "installplan.rejected.v1" }

// What a comment on a plan gives the reason of; "" is a comment by itself.
const (
	CommentApproval  = "Approval"
	CommentRejection = "Rejection"
)

// InstallPlanCommented is what a person said of a plan. Nothing is decided by it.
type InstallPlanCommented struct {
	By      string `json:"by"`              // opaque id of the person
	About   string `json:"about,omitempty"` // Approval, Rejection; "" for a comment by itself
	Comment string `json:"comment"`         // commitment to the words, which can be erased
}

// EventType implements Payload.
func (InstallPlanCommented) EventType() Type { return "installplan.commented.v1" }

// InstallPlanStarted says that the executor began with the first step.
type InstallPlanStarted struct {
	Steps int `json:"steps"`
}

// EventType implements Payload.
func (InstallPlanStarted) EventType() Type { return "installplan.started.v1" }

// InstallPlanStartUnauthorised says that the holder of a cluster reports to have begun a plan that it could not begin.
// The plan stays as it is. It is appended once for each hold.
type InstallPlanStartUnauthorised struct {
	Epoch  int64  `json:"epoch"`  // of the hold that reports it
	Reason string `json:"reason"` // a code, one of those below
}

// Why a start was not authorised.
const (
	StartSuperseded   = "Superseded"
	StartRejected     = "Rejected"
	StartNotApproved  = "NotApproved"
	StartNoGrant      = "NoGrant"      // the hub has not signed a grant for it
	StartGrantExpired = "GrantExpired" // the approval, the window or the grant had ended
)

// EventType implements Payload.
func (InstallPlanStartUnauthorised) EventType() Type { return "installplan.start-unauthorised.v1" }

// InstallPlanBlocked says that a plan waits for something outside; it goes on by itself. It is
// appended when the reason changes.
type InstallPlanBlocked struct {
	Class  string `json:"class"`  // transient, conflict, expired, stopped
	Reason string `json:"reason"` // a code, such as ClusterUnreachable, Forbidden, NoOperatorGroup
}

// EventType implements Payload.
func (InstallPlanBlocked) EventType() Type { return "installplan.blocked.v1" }

// Reasons of blocked and failed plans that have the resolver look at the plan again: what the executor renders is not
// what the plan names.
const (
	// RenderingGone: the rules that the plan names are not part of the executor's release any more.
	RenderingGone = "RenderingGone"
	// RenderingDiffers: the rules that the plan names give other objects than those that it names.
	RenderingDiffers = "RenderingDiffers"
	// RenderingAhead: the rules that the plan names belong to a later release than the executor's.
	RenderingAhead = "RenderingAhead"
)

// Reasons for which the hub signs no grant for a plan that nothing else keeps from beginning (ADR 0034). The first is
// an obstacle of the executor as well; an administrator may settle it for one digest of a bundle.
const (
	// AllowanceNeeded: a bundle would give the cluster away.
	AllowanceNeeded = "AllowanceNeeded"
	// ApprovalDiffers: subscriptions and policies ask for more people, time or windows than the plan says.
	ApprovalDiffers = "ApprovalDiffers"
	// SignatureNotVerified: a bundle is of a catalog with a signature policy, and no signature of that policy is known
	// for this content.
	SignatureNotVerified = "SignatureNotVerified"
	// PlanUnreadable: what the plan would do cannot be read, and so not be checked.
	PlanUnreadable = "PlanUnreadable"
)

// InstallPlanFinished says that every step is done; csv.* events record the health of CSVs.
type InstallPlanFinished struct {
	Steps   int    `json:"steps"`
	StepLog string `json:"stepLog"` // digest of the step log, in the installer schema
	// Warnings is how many warnings the API server gave, and fields it would not keep; the step log has their texts.
	Warnings int `json:"warnings,omitempty"`
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

// InstallPlanMetadataChanged carries all labels and annotations that the plan has from now on.
type InstallPlanMetadataChanged struct {
	Metadata Metadata `json:"metadata"`
}

// EventType implements Payload.
func (InstallPlanMetadataChanged) EventType() Type { return "installplan.metadata-changed.v1" }
