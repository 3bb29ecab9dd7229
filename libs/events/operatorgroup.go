package events

// operatorGroupEvents are the events of operator groups, in the order of docs/events.md.
func operatorGroupEvents() []Definition {
	return []Definition{
		define(KindOperatorGroup, Gateway, OperatorGroupCreated{},
			"Operators of the namespace serve this set of namespaces."),
		define(KindOperatorGroup, Gateway, OperatorGroupChanged{}, "The set or the settings changed."),
		define(KindOperatorGroup, Gateway, OperatorGroupMetadataChanged{},
			"The operator group has other labels or annotations from now on."),
		define(KindOperatorGroup, Gateway, OperatorGroupDeleted{}, "The operator group is gone."),
		define(KindOperatorGroup, Fleet, OperatorGroupPlaced{},
			"A fleet subscription made the operator group of a namespace that had none."),
		define(KindOperatorGroup, Installer, OperatorGroupObserved{}, "What the group came to in its cluster changed."),
	}
}

// SystemNamespace holds what Chandler keeps of its own in every cluster. No operator is in it or serves it.
const SystemNamespace = "chandler-system"

// OperatorGroupCreated is the intent to serve a set of namespaces. Subject: cluster/namespace/name.
type OperatorGroupCreated struct {
	Cluster   string            `json:"cluster"`
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Spec      OperatorGroupSpec `json:"spec"`
}

// OperatorGroupSpec is the intent of an operator group (R-OG §7.1). Neither targets nor a selector means
// all namespaces; a selector beside targets is ignored.
type OperatorGroupSpec struct {
	TargetNamespaces []string `json:"targetNamespaces,omitempty"`
	// Selector chooses namespaces by their labels, as they are in the cluster at any time.
	Selector LabelSelector `json:"selector,omitzero"`
	// StaticProvidedAPIs keeps what the group provides at ProvidedAPIs, whatever its members provide (R-OG-30).
	StaticProvidedAPIs bool     `json:"staticProvidedAPIs,omitempty"`
	ProvidedAPIs       []string `json:"providedAPIs,omitempty"` // Kind.version.group, sorted; of a static group only
	ServiceAccountName string   `json:"serviceAccountName,omitempty"`
	UpgradeStrategy    string   `json:"upgradeStrategy,omitempty"` // Default, TechPreviewUnsafeFailForward
	Colocation         string   `json:"colocation,omitempty"`      // "", shared
	// ExcludeGlobalCatalogs hides catalogs of the hub from the namespace (R-RES-5).
	ExcludeGlobalCatalogs bool `json:"excludeGlobalCatalogs,omitempty"`
	// NamespaceLabels are those that the namespace of the group is to have (ADR 0063).
	NamespaceLabels map[string]string `json:"namespaceLabels,omitempty"`
	// NamespaceAnnotations are short settings of the namespace, beside its labels (ADR 0063).
	NamespaceAnnotations map[string]string `json:"namespaceAnnotations,omitempty"`
}

// EventType implements Payload.
func (OperatorGroupCreated) EventType() Type { return "operatorgroup.created.v1" }

// OperatorGroupChanged carries the whole new intent.
type OperatorGroupChanged struct {
	Spec OperatorGroupSpec `json:"spec"`
}

// EventType implements Payload.
func (OperatorGroupChanged) EventType() Type { return "operatorgroup.changed.v1" }

// OperatorGroupPlaced is OperatorGroupCreated by a fleet subscription, on a cluster on which the namespace had none.
// From then on it is the namespace's: nothing of the fleet changes it.
type OperatorGroupPlaced struct {
	Cluster   string            `json:"cluster"`
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Spec      OperatorGroupSpec `json:"spec"`
	Owner     string            `json:"owner"` // name of the fleet subscription
}

// EventType implements Payload.
func (OperatorGroupPlaced) EventType() Type { return "operatorgroup.placed.v1" }

// OperatorGroupDeleted ends the stream.
type OperatorGroupDeleted struct{}

// EventType implements Payload.
func (OperatorGroupDeleted) EventType() Type { return "operatorgroup.deleted.v1" }

// LabelSelector is a selector of Kubernetes: all of its parts must hold. An empty one is none.
type LabelSelector struct {
	MatchLabels      map[string]string  `json:"matchLabels,omitempty"`
	MatchExpressions []LabelRequirement `json:"matchExpressions,omitempty"`
}

// LabelRequirement is one expression of a selector.
type LabelRequirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"` // In, NotIn, Exists, DoesNotExist
	Values   []string `json:"values,omitempty"`
}

// Global reports whether the group serves all namespaces.
func (s OperatorGroupSpec) Global() bool {
	return len(s.TargetNamespaces) == 0 && len(s.Selector.MatchLabels) == 0 && len(s.Selector.MatchExpressions) == 0
}

// OperatorGroupObserved says what a group came to in its cluster. It is appended when that changes.
type OperatorGroupObserved struct {
	Targets      []string `json:"targets"`      // sorted; [""] is all namespaces
	ProvidedAPIs []string `json:"providedAPIs"` // Kind.version.group, sorted
	// Conditions are codes that hold, sorted: OperatorGroupServiceAccount (the account is missing), …
	Conditions []string `json:"conditions,omitempty"`
}

// EventType implements Payload.
func (OperatorGroupObserved) EventType() Type { return "operatorgroup.observed.v1" }

// OperatorGroupMetadataChanged carries all labels and annotations that the operator group has from now on.
type OperatorGroupMetadataChanged struct {
	Metadata Metadata `json:"metadata"`
}

// EventType implements Payload.
func (OperatorGroupMetadataChanged) EventType() Type { return "operatorgroup.metadata-changed.v1" }
