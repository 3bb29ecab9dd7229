package model

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// PlannedBundle is one bundle that a plan brings, and why.
type PlannedBundle struct {
	CSV           string   `json:"csv"`
	Package       string   `json:"package"`
	Version       string   `json:"version"`
	Channel       string   `json:"channel"`
	Catalog       string   `json:"catalog"`
	Revision      string   `json:"revision"`
	Content       string   `json:"content"`
	Replaces      string   `json:"replaces,omitempty"`
	Reason        string   `json:"reason" doc:"Code: Subscribed, ChannelHead, NextStep, SkipRange, RequiredPackage, RequiredAPI, StartingCSV"`
	RequiredBy    string   `json:"requiredBy,omitempty"`
	Subscriptions []string `json:"subscriptions,omitempty" nullable:"false"`
}

// PlanBase is what an approval is bound to beside the plan's digest.
type PlanBase struct {
	Installed     string `json:"installed"`
	CRDs          string `json:"crds"`
	OperatorGroup string `json:"operatorGroup"`
	Config        string `json:"config"`
	Policy        string `json:"policy"`
}

// InstallPlan is a decision about a namespace and what became of it (R-IP §5.1).
type InstallPlan struct {
	ID        string `json:"id" format:"uuid"`
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Name      string `json:"name" example:"install-7xk2p"`
	Metadata
	Generation int64           `json:"generation"`
	Component  string          `json:"component" doc:"Operators that are planned together"`
	Approval   string          `json:"approval" enum:"Automatic,Manual"`
	Phase      string          `json:"phase" enum:"RequiresApproval,Installing,Complete,Failed,Superseded,Rejected"`
	Digest     string          `json:"digest" doc:"Of the content; an approval names it"`
	Steps      int             `json:"steps"`
	Base       PlanBase        `json:"base"`
	Bundles    []PlannedBundle `json:"bundles" nullable:"false"`
	Begun      bool            `json:"begun" doc:"The first step was taken: the plan is brought to its end"`
	Blocked    *PlanBlock      `json:"blocked,omitempty" doc:"Why it waits; it goes on by itself"`
	Failure    *PlanFailure    `json:"failure,omitempty"`
	Message    string          `json:"message,omitempty" doc:"Sentence of the executor"`
	Approved   *PlanApproval   `json:"approved,omitempty" doc:"The consent that completed the approval"`
	PlanTerms
	Choices  []PlanChoice `json:"choices,omitempty" nullable:"false" doc:"What approvers said of obstacles, one for each person and object"`
	Comments int          `json:"comments,omitempty" doc:"How many comments there are, reasons of approvals and rejections included (list-installplan-comments)"`
	// SupersededBy is the id of the plan that took its place.
	SupersededBy string `json:"supersededBy,omitempty"`
	// SupersededReason is a code for why.
	SupersededReason string `json:"supersededReason,omitempty" doc:"RenderingChanged: this release renders its bundles to other objects"`
	// TakesOver is the id of a plan that had begun and could not be rendered any more.
	TakesOver   string       `json:"takesOver,omitempty"`
	Rendering   string       `json:"rendering,omitempty" doc:"Rules by which the bundles are rendered to steps"`
	ProposedAt  time.Time    `json:"proposedAt"`
	StartedAt   *time.Time   `json:"startedAt,omitempty"`
	EndedAt     *time.Time   `json:"endedAt,omitempty"`
	UpdatedAt   time.Time    `json:"updatedAt"`
	Stream      string       `json:"stream,omitempty" doc:"Id of its stream of events"`
	Version     int64        `json:"version,omitempty" doc:"Of its stream"`
	Position    string       `json:"position,omitempty" doc:"Of the write, in answers to writes"`
	RemovedAPIs []RemovedAPI `json:"removedAPIs,omitempty" nullable:"false" doc:"What it writes and the next minor version of Kubernetes no longer serves, in answers about one plan (R-CSV-61)"`
	// Document and StepLog are given in answers about one plan.
	Document json.RawMessage `json:"document,omitempty" doc:"The whole decision: bundles with reasons, and every step with its digest"`
	StepLog  json.RawMessage `json:"stepLog,omitempty" doc:"What was done, step by step"`
	// Changes are given in answers about one plan: what each replacement changes for those who have it.
	Changes    []Upgrade    `json:"changes,omitempty" nullable:"false" doc:"What each replaced version's end changes: custom resource definitions and rights"`
	Unreadable []Unreadable `json:"unreadable,omitempty" nullable:"false" doc:"What of it is stored and cannot be opened: it is left out"`
}

// InstallPlanAt is a plan as the API shows it at a moment, without what stands outside the log.
func (s PlanState) InstallPlanAt(now time.Time) InstallPlan {
	p := s.Plan.Proposed
	out := InstallPlan{
		ID: p.Plan, Cluster: p.Cluster, Namespace: p.Namespace, Name: p.Name, Generation: p.Generation,
		Component: p.Component, Metadata: Metadata{Labels: s.Plan.Metadata.Labels},
		Approval: p.Approval, Phase: string(s.Plan.PhaseAt(now)), Digest: p.Digest, Steps: p.Steps,
		Base: PlanBase(p.Base), Bundles: Bundles(p.Bundles), Begun: s.Plan.Begun, Approved: s.Approved,
		SupersededBy: s.Plan.SupersededBy, SupersededReason: s.Plan.SupersededReason, TakesOver: p.TakesOver,
		Rendering: p.Rendering, Comments: s.Plan.Comments, PlanTerms: Terms(s.Plan, s.Given, s.Approvals, now),
		ProposedAt: s.ProposedAt, StartedAt: s.StartedAt, EndedAt: s.EndedAt, UpdatedAt: s.UpdatedAt,
	}
	if b := s.Plan.Blocked; b.Reason != "" && s.EndedAt == nil { // what has ended waits for nothing
		out.Blocked = &PlanBlock{Class: b.Class, Reason: b.Reason}
	}
	if f := s.Plan.Failure; f.Reason != "" || f.Step > 0 {
		out.Failure = &PlanFailure{Step: f.Step, Reason: f.Reason}
	}
	for _, c := range s.Choices {
		out.Choices = append(out.Choices, PlanChoice{
			Object: c.Object, Choice: c.Choice, Finding: c.Finding, By: c.By,
			At: c.At,
		})
	}
	return out
}

// What a plan that has not begun waits for.
const (
	WaitsForApproval = "Approval"
	WaitsForWindow   = "Window"
)

// PlanTerms are what approval policies make of a plan, and how far it has come with that.
type PlanTerms struct {
	Policies         []string       `json:"policies,omitempty" nullable:"false" doc:"Approval policies that choose something of it"`
	ManualReasons    []string       `json:"manualReasons,omitempty" nullable:"false" doc:"Why policies want a person: Install, PatchUpgrade, MinorUpgrade, MajorUpgrade, PermissionGrowth, or PermissionGrowthUnknown where the two bundles could not be compared"`
	Approvers        int            `json:"approvers,omitempty" doc:"How many different people must approve; 0 where nobody has to"`
	Approvals        []PlanApproval `json:"approvals,omitempty" nullable:"false" doc:"Those that count"`
	MissingApprovals int            `json:"missingApprovals,omitempty" doc:"How many people have to approve still"`
	ApprovalSeconds  int64          `json:"approvalSeconds,omitempty" doc:"How long an approval holds at most; 24 hours, or what the approver says, without it"`
	Windows          []PlanWindows  `json:"windows,omitempty" nullable:"false" doc:"A window of each of these policies must be open for it to begin"`
	WaitsFor         string         `json:"waitsFor,omitempty" enum:"Approval,Window" doc:"What it waits for before it may begin"`
	NextOpening      *time.Time     `json:"nextOpening,omitempty" doc:"When its windows let it begin next; now or before where they do, absent where they never open together"`
}

// Terms are those of a plan at a moment. given are the consents while more are missing, approvals those that an
// approval consists of.
func Terms(s installplan.State, given, approvals []PlanApproval, now time.Time) PlanTerms {
	p := s.Proposed
	t := PlanTerms{
		Policies: p.Policies, ManualReasons: p.ManualReasons, Approvers: s.Approvers(),
		MissingApprovals: s.Missing(now), ApprovalSeconds: p.ApprovalSeconds,
	}
	for _, g := range p.Windows {
		t.Windows = append(t.Windows, PlanWindows{Policy: g.Policy, Windows: windows(g.Windows)})
	}
	switch phase := s.PhaseAt(now); {
	case phase == installplan.RequiresApproval:
		t.WaitsFor = WaitsForApproval
		counts := s.Given(now)
		t.Approvals = slices.DeleteFunc(slices.Clone(given), func(a PlanApproval) bool {
			return !slices.ContainsFunc(counts, func(c installplan.Consent) bool { return c.By == a.By })
		})
	case phase == installplan.Installing && !s.Begun && !s.Executable(now):
		t.WaitsFor = WaitsForWindow
		t.Approvals = approvals
	default:
		t.Approvals = approvals
	}
	if !s.Live() || s.Begun || len(p.Windows) == 0 { // asked first: the search is work
		return t
	}
	if opens, ok := s.NextOpening(now); ok {
		opens = opens.UTC()
		t.NextOpening = &opens
	}
	return t
}

// PlanBlock is why a plan waits.
type PlanBlock struct {
	Class  string `json:"class" doc:"transient, conflict, expired or stopped"`
	Reason string `json:"reason"`
}

// PlanFailure is where a plan failed for good.
type PlanFailure struct {
	Step   int    `json:"step" doc:"1-based"`
	Reason string `json:"reason"`
}

// PlanApproval is a person's consent.
type PlanApproval struct {
	By      string    `json:"by" doc:"Opaque id of the approver"`
	At      time.Time `json:"at"`
	Expires time.Time `json:"expires"`
}

// ApprovePlan binds an approval to what the approver saw.
type ApprovePlan struct {
	Digest  string     `json:"digest" minLength:"1" maxLength:"71" doc:"The plan's digest as you saw it"`
	Base    *PlanBase  `json:"base,omitempty" doc:"The base as you saw it; the plan's own without it"`
	Reason  string     `json:"reason,omitempty" maxLength:"1000" doc:"Why, as a comment about the approval. It is kept outside the record and can be erased"`
	Expires *time.Time `json:"expires,omitempty" doc:"End of the approval; without it what the policies say, else 24 hours from now, or from when the plan's windows open"`
	// Choices settle obstacles; they count for an Automatic plan and for one that has begun, too.
	Choices []SettleObstacle `json:"choices,omitempty" maxItems:"50" nullable:"false" doc:"What you say of obstacles that a person may settle; an Automatic plan, and one that has begun, is approved with these alone"`
}

// SettleObstacle is what an approver decides about one obstacle that the check of the plan shows.
type SettleObstacle struct {
	Object  string `json:"object" minLength:"3" maxLength:"320" example:"ClusterRole/metrics-reader" doc:"Kind/name, as the check of the plan has it"`
	Choice  string `json:"choice" enum:"Keep,Take,Override,Allow" doc:"Of an object that other operators bring, too: Keep leaves its form as it is, Take has the plan's form hold. Override has a custom resource definition changed although that hurts. Allow lets a bundle, as ClusterServiceVersion/name, have what its allowance lists."`
	Finding string `json:"finding" minLength:"1" maxLength:"71" doc:"Digest of what you saw, from the check of the plan: another finding is another obstacle"`
	Reason  string `json:"reason,omitempty" maxLength:"1000" doc:"Why; required with Override and Allow. It is kept outside the record and can be erased."`
}

// PlanChoice is what an approver said of one obstacle.
type PlanChoice struct {
	Object  string    `json:"object"`
	Choice  string    `json:"choice" enum:"Keep,Take,Override,Allow"`
	Finding string    `json:"finding"`
	Reason  string    `json:"reason,omitempty" doc:"The approver's words, in answers about one plan; absent where they were erased"`
	By      string    `json:"by" doc:"Opaque id of the approver"`
	At      time.Time `json:"at"`
}

// PlanComment is what a person said of a plan.
type PlanComment struct {
	Number int       `json:"number" doc:"From 1, in the order in which they came"`
	About  string    `json:"about,omitempty" enum:"Approval,Rejection" doc:"What it is the reason of; absent for a comment by itself"`
	By     string    `json:"by" doc:"Opaque id of the person"`
	At     time.Time `json:"at"`
	Text   string    `json:"text" doc:"The words; (erased) where they were erased"`
	Body   string    `json:"body" doc:"Commitment to the words: erase-body erases them by it"`
	// Unreadable says why the words cannot be opened.
	Unreadable []Unreadable `json:"unreadable,omitempty" nullable:"false" doc:"Why the words cannot be opened"`
	// Position is given in answers to writes.
	Position string `json:"position,omitempty" doc:"Of the write, in answers to writes"`
}

// CommentPlan says something of a plan.
type CommentPlan struct {
	Text string `json:"text" minLength:"1" maxLength:"4000" doc:"The words. They are kept outside the record and can be erased"`
}

// RejectPlan ends a plan.
type RejectPlan struct {
	Reason string `json:"reason,omitempty" maxLength:"1000" doc:"Why, as a comment about the rejection. It is kept outside the record and can be erased"`
	Digest string `json:"digest,omitempty" maxLength:"71" doc:"The plan's digest as you saw it; whatever it is without it"`
}

// PlanFilter chooses install plans; empty fields choose all.
type PlanFilter struct {
	Cluster   string
	Namespace string
	Phase     string
	Blocked   string // true or false
	Label     string // key=value, or key
	Choice
	Page
}

// PlanCheck is everything that would block an install plan in its cluster now.
type PlanCheck struct {
	Ready   bool   `json:"ready" doc:"Nothing is in the way"`
	Account string `json:"account,omitempty" doc:"User name of the service account that the plan runs as; absent where Chandler itself does"`
	// Permissions are listed in full (R-IP-41), up to a bound that an obstacle then names.
	Permissions []MissingPermission `json:"permissions" nullable:"false" doc:"Rights that the account lacks"`
	CRDs        []CRDVerdict        `json:"crds" nullable:"false" doc:"Every custom resource definition of the plan, with whether it may be changed and whether that can be undone"`
	Shared      []SharedObject      `json:"shared,omitempty" nullable:"false" doc:"Objects that other operators bring, too, in another form: in the way until approvers have chosen (approve-installplan)"`
	Allowances  []Allowance         `json:"allowances,omitempty" nullable:"false" doc:"What bundles of the plan may not have without an administrator's word: in the way until it is given (approve-installplan)"`
	Obstacles   []Obstacle          `json:"obstacles" nullable:"false" doc:"What else is in the way"`
	RemovedAPIs []RemovedAPI        `json:"removedAPIs,omitempty" nullable:"false" doc:"What the plan uses and the next minor version of Kubernetes no longer serves: a warning, in the way of nothing"`
}

// RemovedAPI is a kind of Kubernetes' own API that a cluster no longer serves once it is upgraded by one minor version,
// or already does not (R-CSV-61).
type RemovedAPI struct {
	Group   string `json:"group,omitempty"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Removed string `json:"removed" example:"1.38" doc:"The first version of Kubernetes without it"`
	For     string `json:"for,omitempty" doc:"What uses it: an object of the plan, or an installed operator as namespace/csv"`
}

// MissingPermission is one right that an account lacks.
type MissingPermission struct {
	User      string `json:"user"`
	Verb      string `json:"verb"`
	Group     string `json:"group,omitempty"`
	Resource  string `json:"resource,omitempty"`
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty" doc:"Absent where it is the whole cluster"`
	URL       string `json:"url,omitempty" doc:"Of a right that is about no resource"`
	For       string `json:"for" doc:"The object of the plan that needs it"`
}

// CRDVerdict says whether a custom resource definition may be changed as a plan wants.
type CRDVerdict struct {
	CRD          string   `json:"crd"`
	Safe         bool     `json:"safe"`
	Reversible   bool     `json:"reversible" doc:"Going back afterwards loses nothing, as far as can be known before"`
	Irreversible []string `json:"irreversible,omitempty" nullable:"false" doc:"Why it is not reversible"`
	Owners       []string `json:"owners,omitempty" nullable:"false" doc:"Operators that own it now, as namespace/csv"`
	Problems     []string `json:"problems,omitempty" nullable:"false" doc:"Why it is not safe"`
	Warnings     []string `json:"warnings,omitempty" nullable:"false"`
	Checked      int      `json:"checked,omitempty" doc:"Objects that were validated against the new schema; none where it takes all that the old one took"`
	More         bool     `json:"more,omitempty" doc:"There are more objects than were checked"`
	Invalid      int      `json:"invalid,omitempty" doc:"Objects that become invalid"`
	Sample       []string `json:"sample,omitempty" nullable:"false" doc:"Some of those, with what is wrong"`
	Finding      string   `json:"finding,omitempty" doc:"Digest that an override names; absent where it is safe, or where nobody may override it"`
	OverriddenBy []string `json:"overriddenBy,omitempty" nullable:"false" doc:"Opaque ids of approvers who overrode it: it is in the way of nothing then"`
}

// Allowance is what one bundle needs an administrator's word for, and may not have without.
type Allowance struct {
	Object  string   `json:"object" example:"ClusterServiceVersion/tide.v1.0.1" doc:"As choices name it"`
	Content string   `json:"content" doc:"Digest of the bundle for which it holds, and for no other"`
	Needed  []string `json:"needed" nullable:"false" doc:"What it gives away, in sentences"`
	Finding string   `json:"finding" doc:"Digest that a choice names"`
	By      []string `json:"by,omitempty" nullable:"false" doc:"Opaque ids of who allowed it; absent while nobody did"`
}

// SharedObject is one object of a plan that other operators brought, too, in another form.
type SharedObject struct {
	Object      string       `json:"object" example:"ClusterRole/metrics-reader" doc:"As choices name it"`
	Namespace   string       `json:"namespace,omitempty" doc:"Absent where it is the cluster's"`
	Operator    string       `json:"operator" doc:"Of the plan, as namespace/csv"`
	Holder      string       `json:"holder" doc:"Whose form the cluster has, as namespace/csv"`
	Owners      []string     `json:"owners" nullable:"false" doc:"All installed operators that have it beside the plan's, as namespace/csv"`
	Differences []Difference `json:"differences" nullable:"false"`
	Refused     string       `json:"refused,omitempty" doc:"Why the plan's form cannot take the place of the other one, as the API server says: then it can only be kept"`
	Finding     string       `json:"finding" doc:"Digest that a choice names"`
	Choice      string       `json:"choice,omitempty" enum:"Keep,Take" doc:"What was chosen; absent while nobody did"`
	By          []string     `json:"by,omitempty" nullable:"false" doc:"Opaque ids of who did"`
}

// Difference is one field in which two forms of an object differ.
type Difference struct {
	Path  string          `json:"path" doc:"JSON pointer; lists of rights are in a fixed order"`
	Has   json.RawMessage `json:"has,omitempty" doc:"What the cluster has; absent where it has nothing, or where it may be confidential"`
	Wants json.RawMessage `json:"wants,omitempty" doc:"What the plan brings; absent where it brings nothing, or where it may be confidential"`
}

// Obstacle is something that blocks a plan.
type Obstacle struct {
	Class   string `json:"class"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// CheckOf is an executor's answer as the API gives it.
func CheckOf(c protocol.PlanCheck) PlanCheck {
	out := PlanCheck{
		Account: c.Account, Permissions: []MissingPermission{}, CRDs: []CRDVerdict{},
		Obstacles: []Obstacle{},
	}
	for _, p := range c.Permissions {
		out.Permissions = append(out.Permissions, MissingPermission(p))
	}
	safe := true
	for _, v := range c.CRDs {
		safe = safe && !v.InTheWay()
		out.CRDs = append(out.CRDs, CRDVerdict(v))
	}
	for _, o := range c.Shared {
		safe = safe && o.Choice != ""
		out.Shared = append(out.Shared, sharedOf(o))
	}
	for _, a := range c.Allowances {
		safe = safe && len(a.By) > 0
		out.Allowances = append(out.Allowances, Allowance{
			Object: a.Object(), Content: a.Content, Needed: a.Needed, Finding: a.Finding, By: a.By,
		})
	}
	for _, o := range c.Obstacles {
		out.Obstacles = append(out.Obstacles, Obstacle(o))
	}
	for _, r := range c.RemovedAPIs {
		out.RemovedAPIs = append(out.RemovedAPIs, RemovedAPI(r))
	}
	out.Ready = safe && len(out.Permissions) == 0 && len(out.Obstacles) == 0
	return out
}

func sharedOf(o protocol.SharedObject) SharedObject {
	out := SharedObject{
		Object: o.ChoiceName(), Namespace: o.Namespace, Operator: o.Operator, Holder: o.Holder, Owners: o.Owners,
		Differences: []Difference{}, Refused: o.Refused, Finding: o.Finding, Choice: o.Choice, By: o.By,
	}
	for _, d := range o.Differences {
		out.Differences = append(out.Differences, Difference{Path: d.Path, Has: d.Have, Wants: d.Want})
	}
	return out
}
