package model

import (
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
)

// OperatorGroupSpec is the intent of an operator group (R-OG §7.1).
type OperatorGroupSpec struct {
	TargetNamespaces []string `json:"targetNamespaces,omitempty" maxItems:"100" nullable:"false" doc:"All namespaces without it and without a selector"`
	// Selector is ignored beside TargetNamespaces.
	Selector           events.LabelSelector `json:"selector,omitzero" doc:"Chooses namespaces by their labels, as they are in the cluster at any time"`
	StaticProvidedAPIs bool                 `json:"staticProvidedAPIs,omitempty" doc:"What the group provides stays at providedAPIs (R-OG-30)"`
	ProvidedAPIs       []string             `json:"providedAPIs,omitempty" maxItems:"1000" nullable:"false" doc:"Kind.version.group; of a static group only"`
	ServiceAccountName string               `json:"serviceAccountName,omitempty" maxLength:"253"`
	UpgradeStrategy    string               `json:"upgradeStrategy,omitempty" enum:"Default,TechPreviewUnsafeFailForward"`
	Colocation         string               `json:"colocation,omitempty" enum:"shared" doc:"shared: one plan for all operators of the namespace, as OLM makes them"`
	// ExcludeGlobalCatalogs is OLM's annotation olm.operatorframework.io/exclude-global-namespace-resolution.
	ExcludeGlobalCatalogs bool `json:"excludeGlobalCatalogs,omitempty" doc:"Catalogs of the hub are not used for this namespace (R-RES-5)"`
	// NamespaceLabels come from a Namespace beside an OperatorGroup in files.
	NamespaceLabels map[string]string `json:"namespaceLabels,omitempty" maxProperties:"64" doc:"Labels that the namespace of the group is to have in its cluster, such as the level of the Pod Security Standards that it admits. They are written before a plan of the namespace starts, and as the service account of the group where it names one. A value that somebody else has set is not overwritten"`
	// NamespaceAnnotations come from the same Namespace.
	NamespaceAnnotations map[string]string `json:"namespaceAnnotations,omitempty" maxProperties:"32" doc:"Annotations that the namespace of the group is to have in its cluster, such as the selector of its nodes: settings of at most 1024 bytes each, written as namespaceLabels are. Annotations that the cluster or another program writes are refused. They are part of events and cannot be erased: no passwords, and no names of people"`
}

// OperatorGroup gives the operators of a namespace the namespaces that they serve.
type OperatorGroup struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Metadata
	Spec OperatorGroupSpec `json:"spec"`
	// Targets and ProvidedAPIs are what the group comes to in its cluster.
	Targets      []string     `json:"targets" nullable:"false" doc:"Namespaces that it serves now; one that is empty means all. Those of a selector are empty until the cluster has reported"`
	ProvidedAPIs []string     `json:"providedAPIs" nullable:"false" doc:"Kind.version.group of what its operators provide, or what a static group reserves"`
	Conditions   []Condition  `json:"conditions"`
	CreatedAt    time.Time    `json:"createdAt"`
	UpdatedAt    time.Time    `json:"updatedAt"`
	Stream       string       `json:"stream,omitempty" doc:"Id of its stream of events"`
	Version      int64        `json:"version,omitempty" doc:"Of its stream"`
	Position     string       `json:"position,omitempty" doc:"Of the write, in answers to writes"`
	Unreadable   []Unreadable `json:"unreadable,omitempty" nullable:"false" doc:"What of it is stored and cannot be opened: it is left out"`
}

// CreateOperatorGroup makes an operator group.
type CreateOperatorGroup struct {
	Name string `json:"name" minLength:"1" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"a DNS-1123 subdomain"`
	Metadata
	OperatorGroupSpec
}

// ChangeOperatorGroup is the whole intent of an operator group: what it leaves out is gone.
type ChangeOperatorGroup struct {
	Metadata
	OperatorGroupSpec
}

// Intent is all of the operator group but its name.
func (c CreateOperatorGroup) Intent() ChangeOperatorGroup {
	return ChangeOperatorGroup{Metadata: c.Metadata, OperatorGroupSpec: c.OperatorGroupSpec}
}

// GroupFilter chooses operator groups; empty fields choose all.
type GroupFilter struct {
	Cluster   string
	Namespace string
	Label     string // key=value, or key
	Page
}
