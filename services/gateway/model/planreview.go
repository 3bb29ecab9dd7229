package model

import (
	"encoding/json"

	"github.com/chandler-fleet/chandler/libs/catalog/compare"
)

// PlanObject is one object of a plan as it will be applied, before the overlays of its cluster.
type PlanObject struct {
	Step      int    `json:"step" doc:"Number of the step, from 1"`
	Resolving string `json:"resolving" doc:"ClusterServiceVersion that it belongs to"`
	Group     string `json:"group"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty" doc:"Absent where it is the cluster's"`
	Name      string `json:"name"`
	// Digest is that of the object as it will be applied, which was compared with the step's.
	Digest string          `json:"digest" doc:"Of the object, as the plan's digest binds it: SHA-256 of chandler.object.v1, a newline and the canonical JSON"`
	Hidden bool            `json:"hidden" doc:"Something of it is hidden, since you may not change the subscription: values of variables, data of a Secret. The digest is of what will be applied"`
	Object json.RawMessage `json:"object"`
}

// How the installed version of an operator is known in what is shown of a plan.
const (
	ReviewFirst    = "FirstInstall" // nothing is installed
	ReviewCompared = "Compared"
	ReviewUnknown  = "Unknown" // something is installed, and what is not known
)

// ReviewBase is with what a bundle of a plan is compared.
type ReviewBase struct {
	CSV      string `json:"csv" doc:"Of the plan"`
	Package  string `json:"package"`
	Content  string `json:"content" doc:"Digest of the canonical bundle"`
	State    string `json:"state" enum:"FirstInstall,Compared,Unknown"`
	Replaces string `json:"replaces,omitempty" doc:"ClusterServiceVersion that is installed, or was when the plan is over"`
	// ReplacedContent and ReplacedRendering are what Chandler has applied of it.
	ReplacedContent   string `json:"replacedContent,omitempty" doc:"Digest of the canonical bundle that it came from"`
	ReplacedRendering string `json:"replacedRendering,omitempty" doc:"Rules by which it was rendered"`
	Detail            string `json:"detail,omitempty" doc:"Why the installed version is not known"`
}

// PlanRights is everything that the operators of a plan will be allowed to do.
type PlanRights struct {
	Plan      string         `json:"plan" format:"uuid"`
	Name      string         `json:"name"`
	Cluster   string         `json:"cluster"`
	Namespace string         `json:"namespace"`
	Digest    string         `json:"digest" doc:"Of the plan"`
	Group     *RightsPlace   `json:"operatorGroup,omitempty" doc:"Where rights of an operator's namespaces hold; absent where there is not exactly one operator group, or you may not see it"`
	Bundles   []BundleRights `json:"bundles" nullable:"false"`
	// SuggestedLabels are set by whoever asks for it: by namespaceLabels of the operator group.
	SuggestedLabels    []SuggestedLabel `json:"suggestedLabels" nullable:"false" doc:"Labels that the namespace is to have by its bundles, sorted. None is set until it is among namespaceLabels of the operator group"`
	SuggestionsIgnored []string         `json:"suggestionsIgnored,omitempty" nullable:"false" doc:"What bundles suggest for the namespace that is not among suggestedLabels, in words"`
}

// SuggestedLabel is a label of a namespace that a bundle suggests.
type SuggestedLabel struct {
	Key    string `json:"key" example:"pod-security.kubernetes.io/enforce"`
	Value  string `json:"value" example:"baseline"`
	CSV    string `json:"csv" doc:"Whose bundle suggests it"`
	Reason string `json:"reason" enum:"PodSecurity,Monitoring,Template" doc:"What suggests it: the level that the pods need, the annotation operatorframework.io/cluster-monitoring, or operatorframework.io/suggested-namespace-template"`
}

// RightsPlace is where rights of an operator's namespaces hold.
type RightsPlace struct {
	All        bool     `json:"all" doc:"In all namespaces"`
	Namespaces []string `json:"namespaces" nullable:"false" doc:"In these, as they are now"`
}

// BundleRights are those of one operator.
type BundleRights struct {
	ReviewBase
	Dangers     []PlanDanger      `json:"dangers" nullable:"false" doc:"What deserves a second look, in words, with how often; what is new first"`
	Unknown     int               `json:"unknown" doc:"How much of it cannot be judged; it is among the dangers"`
	Rights      []OperatorRight   `json:"rights" nullable:"false" doc:"What deserves a second look first"`
	MoreRights  int               `json:"moreRights,omitempty" doc:"Rights that are not listed"`
	Lost        []compare.Right   `json:"lost,omitempty" nullable:"false" doc:"What the installed version may do, and this one may not"`
	Demands     []OperatorDemand  `json:"demands" nullable:"false" doc:"What it asks of the cluster beside rights"`
	MoreDemands int               `json:"moreDemands,omitempty" doc:"Demands that are not listed"`
	PodSecurity PodSecurityDemand `json:"podSecurity"`
}

// PlanDanger is one kind of what deserves a second look.
type PlanDanger struct {
	Code  string `json:"code" example:"ReadsSecrets"`
	Words string `json:"words" doc:"Why it deserves a second look"`
	Count int    `json:"count"`
	New   bool   `json:"new" doc:"The installed version has less of it, or none"`
	// Everywhere is set for rights.
	Everywhere bool   `json:"everywhere,omitempty" doc:"A right that holds in all namespaces, or may"`
	Example    string `json:"example" doc:"One of them in words"`
}

// OperatorRight is a right as a rule of RBAC and in words.
type OperatorRight struct {
	compare.Right
	Words      string   `json:"words" example:"read secrets in all namespaces and of the cluster"`
	Reason     string   `json:"reason,omitempty" doc:"Why it deserves a second look"`
	Everywhere bool     `json:"everywhere" doc:"It holds in all namespaces, or may, where the operator group is not known"`
	New        []string `json:"new,omitempty" nullable:"false" doc:"Verbs that the installed version may not; all of them at a first install"`
}

// OperatorDemand is a demand in words.
type OperatorDemand struct {
	compare.Demand
	Reason string `json:"reason"`
	Mild   bool   `json:"mild" doc:"What pods commonly leave open"`
	New    bool   `json:"new" doc:"The installed version does not ask for it"`
}

// PodSecurityDemand is the strictest level of the Pod Security Standards under which the pods of an operator run.
type PodSecurityDemand struct {
	Level  string              `json:"level" enum:"restricted,baseline,privileged,unknown" doc:"A namespace that enforces a stricter one refuses its pods. Which one the namespace enforces is the cluster's, and not known here"`
	Why    []PodSecurityReason `json:"why" nullable:"false" doc:"What keeps it from a stricter level"`
	Detail string              `json:"detail,omitempty" doc:"Why it is unknown"`
}

// PodSecurityReason is one rule of a stricter level that a workload breaks.
type PodSecurityReason struct {
	Workload string `json:"workload" example:"Deployment tide-controller"`
	Level    string `json:"level" enum:"restricted,baseline" doc:"That has the rule"`
	Rule     string `json:"rule" example:"privileged"`
	Detail   string `json:"detail,omitempty"`
}

// PlanDiff is what a plan changes of what is installed.
type PlanDiff struct {
	Items   []ObjectChange `json:"items" nullable:"false"`
	Next    string         `json:"next,omitempty" doc:"Cursor of the next page; absent on the last"`
	Bundles []ReviewBase   `json:"bundles" nullable:"false" doc:"With what each bundle is compared. Objects of one that is Unknown are not among the items"`
	Digest  string         `json:"digest" doc:"Of the plan"`
}

// ObjectChange is one object that differs from what is installed.
type ObjectChange struct {
	Change    string        `json:"change" enum:"Added,Changed,Removed"`
	Area      string        `json:"area" enum:"Workload,RBAC,Webhook,CustomResourceDefinition,Other"`
	Resolving string        `json:"resolving" doc:"ClusterServiceVersion of the plan"`
	Group     string        `json:"group"`
	Version   string        `json:"version"`
	Kind      string        `json:"kind"`
	Namespace string        `json:"namespace,omitempty"`
	Name      string        `json:"name"`
	Was       string        `json:"was,omitempty" doc:"Name of the installed object that it is compared with, where that is another one"`
	From      string        `json:"from,omitempty" doc:"Digest of the object as it is installed"`
	To        string        `json:"to,omitempty" doc:"Digest of the object as it will be"`
	Hidden    bool          `json:"hidden,omitempty" doc:"Something of it is hidden, since you may not change the subscription"`
	Minor     bool          `json:"minor,omitempty" doc:"Nothing differs but the marks of Chandler that name the version which an object belongs to"`
	Fields    []FieldChange `json:"fields,omitempty" nullable:"false" doc:"Of an object that is changed"`
	More      int           `json:"more,omitempty" doc:"Fields that are not listed"`
	Images    []ImageChange `json:"images,omitempty" nullable:"false"`
	CRD       *compare.CRD  `json:"crd,omitempty" doc:"What the change of a definition means for custom resources"`
}

// FieldChange is one field of an object that differs.
type FieldChange struct {
	Path  string          `json:"path" doc:"JSON pointer"`
	From  json.RawMessage `json:"from,omitempty"`
	To    json.RawMessage `json:"to,omitempty"`
	Large bool            `json:"large,omitempty" doc:"A value that is larger than 4 KiB is not shown; the unified diff has its lines"`
}

// ImageChange is the image of a container that differs.
type ImageChange struct {
	Container string `json:"container"`
	From      string `json:"from,omitempty"`
	To        string `json:"to,omitempty"`
}
