package resolution

import (
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
)

// Result is what a namespace should run. Its JSON is deterministic.
type Result struct {
	Semantics string `json:"semantics"`
	// Components are the sets of operators planned together, by name.
	Components []Component `json:"components"`
	// Reads is the union of the components' read sets, sorted.
	Reads []Read `json:"reads"`
}

// Component is a set of operators that belong together: a plan, nothing to do, or an explained failure.
type Component struct {
	// Name is made of the packages, so that it stays the same from the first plan on.
	Name          string   `json:"name"`
	Packages      []string `json:"packages"`
	Subscriptions []string `json:"subscriptions"`
	Approval      string   `json:"approval"` // Manual if any of its subscriptions is (R-SUB-4)
	// Bundles are to be installed, what is required first.
	Bundles []Planned `json:"bundles,omitempty"`
	// Outcomes say for each subscription what it moves to or has.
	Outcomes []Outcome    `json:"outcomes,omitempty"`
	Failure  *Explanation `json:"failure,omitempty"`
	// Blocked is why none of this may be planned now, though it could be: a catalog is unhealthy whose namespace
	// is strict (R-CAT-99). Loading says that one is loaded for the first time. Plans that are there already stay.
	Blocked *Explanation `json:"blocked,omitempty"`
	Loading bool         `json:"loading,omitempty"`
	Input   Record       `json:"input"`
}

// Planned is a bundle that a component installs or upgrades to.
type Planned struct {
	CSV           string        `json:"csv"`
	Package       string        `json:"package"`
	Version       string        `json:"version"`
	Channel       string        `json:"channel"`
	Catalog       CatalogKey    `json:"catalog"`
	Revision      string        `json:"revision"`
	Content       digest.Digest `json:"content"`
	Image         string        `json:"image,omitempty"`     // where the manifests have to be fetched from
	Unfetched     string        `json:"unfetched,omitempty"` // why that failed; "" while it was not tried
	Replaces      string        `json:"replaces,omitempty"`  // the installed CSV that it takes the place of
	Reason        string        `json:"reason"`              // a Reason constant
	RequiredBy    string        `json:"requiredBy,omitempty"`
	Subscriptions []string      `json:"subscriptions,omitempty"`
	// Properties are what the CSV will offer and ask for once it is installed.
	Properties []catalog.Property `json:"properties,omitempty"`
}

// Why a bundle is in a plan. Package offer has the reasons of those that a requirement brought in.
const (
	ReasonChannelHead = "ChannelHead"         // a new subscription's channel head (R-GRA-5)
	ReasonStartingCSV = "StartingCSV"         // named by the subscription (R-GRA-12)
	ReasonSubscribed  = "Subscribed"          // not the head, which cannot be had with the rest
	ReasonNextStep    = "NextStep"            // replaces or skips the installed one (R-GRA-6)
	ReasonSkipRange   = "SkipRange"           // its range holds the installed version (R-GRA-8)
	ReasonRollback    = events.ReasonRollback // somebody wants to go back to it
)

// Outcome is what a subscription resolves to.
type Outcome struct {
	Subscription string `json:"subscription"`
	CSV          string `json:"csv"`
	Planned      bool   `json:"planned"` // false: it has CSV already
}

// Failure reasons, shown as condition ResolutionFailed (R-RES-41).
const (
	ReasonNotSatisfiable = "ConstraintsNotSatisfiable"
	ReasonPrevented      = "ErrorPreventedResolution"
	// ReasonUnpacking and ReasonUnpackFailed are those of conditions BundleUnpacking and BundleUnpackFailed
	// (R-SUB-42): a chosen bundle's image is being fetched, or cannot be.
	ReasonUnpacking    = "BundleUnpacking"
	ReasonUnpackFailed = "BundleUnpackFailed"
	// ReasonCatalogsUnhealthy is that of condition CatalogSourcesUnhealthy, where a catalog namespace is
	// strict about it (R-CAT-99).
	ReasonCatalogsUnhealthy = "CatalogSourcesUnhealthy"
	// ReasonClusterCordoned is that of condition ClusterCordoned, where something could be planned.
	ReasonClusterCordoned = "ClusterCordoned"
)

// Class says what kind of failure it is, more finely than the reason.
type Class string

// The classes.
const (
	ClassUnsatisfiable      Class = "unsatisfiable"
	ClassInvalidChannel     Class = "invalid-channel"
	ClassInvalidConstraint  Class = "invalid-constraint"
	ClassCatalogUnavailable Class = "catalog-unavailable"
	ClassOperatorGroup      Class = "operator-group"
	ClassInstalledState     Class = "installed-state"
	ClassTooHard            Class = "too-hard"
	ClassSemantics          Class = "unknown-semantics"
	// ClassNotInstallable is for the steps after the search: a chosen bundle without manifests, or
	// one that does not fit the operator group.
	ClassNotInstallable Class = "not-installable"
	// ClassBundleImage and ClassCatalogUnhealthy are for what has to come from outside first.
	ClassBundleImage      Class = "bundle-image"
	ClassCatalogUnhealthy Class = "catalog-unhealthy"
	// ClassCordoned is for a cluster that a person lets nothing new be planned for.
	ClassCordoned Class = "cluster-cordoned"
)

// Explanation is why a component cannot be planned, in structure and in sentences of the user's terms.
type Explanation struct {
	Reason string `json:"reason"`
	Class  Class  `json:"class"`
	// Subscriptions and CSVs cannot live together; leaving out any of them would help the others.
	Subscriptions []string    `json:"subscriptions"`
	CSVs          []string    `json:"csvs,omitempty"`
	Statements    []Statement `json:"statements"`
	// More counts statements that were left out (explain.MaxStatements).
	More int `json:"more,omitempty"`
	// Coarse says that statements may be among these without which the others contradict each other, too: the
	// conflict was too hard to say.
	Coarse bool `json:"coarse,omitempty"`
}

// ExplanationType is the type prefix of an explanation's digest.
const ExplanationType = "chandler.explanation.v1"

// Digest is the explanation's content address.
func (e Explanation) Digest() (digest.Digest, error) { return digest.JSON(ExplanationType, e) }

// StatementKind is what a statement says.
type StatementKind string

// The kinds of statement (R-RES-43).
const (
	SubscriptionExists   StatementKind = "subscription-exists"
	SubscriptionNeeds    StatementKind = "subscription-candidates"
	CatalogMissing       StatementKind = "catalog-empty-or-missing"
	CatalogNotReady      StatementKind = "catalog-not-ready"
	PackageNotFound      StatementKind = "package-not-found"
	ChannelNotFound      StatementKind = "channel-not-found"
	StartingCSVNotFound  StatementKind = "starting-csv-not-found"
	RollbackNotFound     StatementKind = "rollback-not-found"
	NoCandidates         StatementKind = "no-candidates"
	UnmanagedCSV         StatementKind = "unmanaged-csv"
	UnmetRequirement     StatementKind = "unmet-requirement"
	BundleDeprecated     StatementKind = "bundle-deprecated"
	PackageUnique        StatementKind = "package-unique"
	APIUnique            StatementKind = "gvk-unique"
	ReplacesConflict     StatementKind = "replaces-conflict"
	DuplicateAPI         StatementKind = "gvk-listed-twice"
	ChannelMalformed     StatementKind = "invalid-channel"
	RequirementMalformed StatementKind = "invalid-constraint"
	OperatorGroupCount   StatementKind = "operator-group"
	InstalledState       StatementKind = "installed-state"
	SearchTooLong        StatementKind = "too-hard"
	UnknownSemantics     StatementKind = "unknown-semantics"
	NotInstallable       StatementKind = "not-installable"
	BundleImagePending   StatementKind = "bundle-image-pending"
	BundleImageFailed    StatementKind = "bundle-image-failed"
	CatalogUnhealthy     StatementKind = "catalog-unhealthy"
	PolicyForbids        StatementKind = "policy-forbids"
	ClusterCordoned      StatementKind = "cluster-cordoned"
)

// Statement is one fact of an explanation. Which fields are set depends on the kind; Text says it all.
type Statement struct {
	Kind         StatementKind `json:"kind"`
	Subscription string        `json:"subscription,omitempty"`
	// who asks or is excluded: package and CSV as BundleID writes them
	Bundle      string `json:"bundle,omitempty"`
	Other       string `json:"other,omitempty"` // who forbids
	Package     string `json:"package,omitempty"`
	Channel     string `json:"channel,omitempty"`
	Catalog     string `json:"catalog,omitempty"`
	Revision    string `json:"revision,omitempty"` // of the catalog that said so
	Policy      string `json:"policy,omitempty"`   // name of an approval policy
	Requirement string `json:"requirement,omitempty"`
	// Choices are what exists instead: catalogs, channels, packages or bundles.
	Choices []string `json:"choices,omitempty"`
	Text    string   `json:"text"`
}
