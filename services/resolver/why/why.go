package why

import (
	"time"

	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Bounds of an answer.
const (
	// MaxNotTaken is how many versions are explained; the newest come first, and the rest is counted.
	MaxNotTaken = 100
	// MaxProbes bounds the resolutions of one answer; each takes about a millisecond.
	MaxProbes = 25
	// MaxConflicts bounds the searches of all answers of one question together, so that a namespace that is hard to
	// resolve takes about as long for them as for its resolution.
	MaxConflicts = 10_000
	// probeConflicts bounds the search of one probe in each partition. One that takes more is reported as such.
	probeConflicts = 2_000
	// maxReasons bounds what is said of one version.
	maxReasons = 6
)

// Facts are what an answer is made of: a namespace at one moment.
type Facts struct {
	State    decide.State
	Input    resolution.Input
	Result   resolution.Result
	Verdicts []decide.Verdict // one for each component of Result, in its order
	Now      time.Time
	// Stop is asked in between whether nobody waits for the answer any more; nil is never.
	Stop func() bool
}

// effort is that of one question.
func (f Facts) effort() *resolution.Effort {
	return &resolution.Effort{Conflicts: MaxConflicts, Stop: f.Stop}
}

// Answer is everything about one operator.
type Answer struct {
	Package string `json:"package"`
	// CSV is what is installed, or what a plan brings; "" where neither is.
	CSV     string `json:"csv,omitempty"`
	Version string `json:"version,omitempty"`
	Phase   string `json:"phase,omitempty"`
	// Subscription follows the operator; Catalog and Channel are what it names, "" is any.
	Subscription string `json:"subscription,omitempty"`
	Catalog      string `json:"catalog,omitempty"`
	Channel      string `json:"channel,omitempty"`
	// Because is why the operator is there: its subscription, and the chain of requirements from another one.
	Because []Link `json:"because"`
	// NotTaken are newer versions, the newest first. More counts those that are left out.
	NotTaken []NotTaken `json:"notTaken"`
	More     int        `json:"more,omitempty"`
}

// Link is one reason to be there.
type Link struct {
	By          string `json:"by"` // subscription/name, or the CSV that requires it
	Requirement string `json:"requirement,omitempty"`
	Text        string `json:"text"`
}

// NotTaken is a newer version of one catalog, and why it is not taken.
type NotTaken struct {
	CSV      string   `json:"csv"`
	Version  string   `json:"version,omitempty"`
	Catalog  string   `json:"catalog"`
	Revision string   `json:"revision,omitempty"` // of the catalog, that offers it
	Channels []string `json:"channels"`           // that lead to it, the default channel first
	Reasons  []Reason `json:"reasons"`
}

// Reason is why a version is not taken.
type Reason struct {
	Code Code   `json:"code"`
	Text string `json:"text"`
	// What the reason is about, by code: the approval policy, the install plan, the operator or bundle that holds
	// it, the requirement, and when a window opens.
	Policy      string     `json:"policy,omitempty"`
	Plan        string     `json:"plan,omitempty"`
	Bundle      string     `json:"bundle,omitempty"`
	Requirement string     `json:"requirement,omitempty"`
	Opens       *time.Time `json:"opens,omitempty"`
}

// Code is a reason for programs.
type Code string

// The codes.
const (
	Policy           Code = "policy"               // a pin, range or ceiling of an approval policy
	Window           Code = "window"               // a maintenance window is not open
	Approval         Code = "approval"             // a person has to approve
	OneStep          Code = "one-step"             // the next step comes first (R-GRA-6)
	NoPath           Code = "no-path"              // no edge of the channel leads there from what is installed
	PassedOver       Code = "passed-over"          // the plan moves to a newer one
	Dependency       Code = "dependency"           // a requirement cannot be met with it
	Conflict         Code = "conflict"             // another operator has its package, API or name
	Deprecated       Code = "deprecated"           // its catalog says so
	Skipped          Code = "skipped"              // another entry of the channel skips it
	OtherChannel     Code = "other-channel"        // the subscription follows another channel
	RolledBack       Code = "rolled-back"          // a rollback left it
	Condition        Code = "operator-condition"   // the installed operator does not let itself be upgraded
	OtherCatalog     Code = "other-catalog"        // the subscription follows another catalog
	HiddenCatalog    Code = "hidden-catalog"       // the operator group excludes global catalogs
	ImagePending     Code = "bundle-image-pending" // its image is being fetched
	ImageFailed      Code = "bundle-image-failed"  // its image cannot be fetched
	CatalogUnhealthy Code = "catalog-unhealthy"    // a catalog of a strict namespace is
	ClusterCordoned  Code = "cluster-cordoned"     // somebody cordoned the cluster
	CatalogLoading   Code = "catalog-loading"      // for the first time
	NotSucceeded     Code = "operator-not-succeeded"
	UnderWay         Code = "plan-under-way"
	PlanFailed       Code = "plan-failed"
	PlanRejected     Code = "plan-rejected"
	Planned          Code = "planned"         // nothing is in the way
	Stopped          Code = "stopped"         // the stop switch holds the plan up
	NotSubscribed    Code = "not-subscribed"  // nobody follows the operator
	Unresolved       Code = "unresolved"      // the subscription does not resolve at all
	Preference       Code = "preference"      // what is preferred comes first (R-RES-35)
	InvalidContent   Code = "invalid-content" // its catalog says something of it that cannot be read
	NotInstallable   Code = "not-installable" // it does not fit the operator group, or cannot be rendered
	NotLookedInto    Code = "not-looked-into" // beyond MaxProbes and MaxConflicts
)
