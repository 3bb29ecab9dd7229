package events

// OperatorGroupCreated is the intent to serve a set of namespaces. Subject: cluster/namespace/name.
type OperatorGroupCreated struct {
	Cluster   string            `json:"cluster"`
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Spec      OperatorGroupSpec `json:"spec"`
}

// OperatorGroupSpec is what resolution and rendering need of an operator group. An empty list of
// targets means all namespaces.
type OperatorGroupSpec struct {
	TargetNamespaces   []string `json:"targetNamespaces,omitempty"`
	ServiceAccountName string   `json:"serviceAccountName,omitempty"`
	UpgradeStrategy    string   `json:"upgradeStrategy,omitempty"` // Default, TechPreviewUnsafeFailForward
	Colocation         string   `json:"colocation,omitempty"`      // "", shared
	// ExcludeGlobalCatalogs hides catalogs of the hub from the namespace (R-RES-5).
	ExcludeGlobalCatalogs bool `json:"excludeGlobalCatalogs,omitempty"`
}

// EventType implements Payload.
func (OperatorGroupCreated) EventType() Type { return "operatorgroup.created.v1" }

// OperatorGroupChanged carries the whole new intent.
type OperatorGroupChanged struct {
	Spec OperatorGroupSpec `json:"spec"`
}

// EventType implements Payload.
func (OperatorGroupChanged) EventType() Type { return "operatorgroup.changed.v1" }

// OperatorGroupDeleted ends the stream.
type OperatorGroupDeleted struct{}

// EventType implements Payload.
func (OperatorGroupDeleted) EventType() Type { return "operatorgroup.deleted.v1" }
