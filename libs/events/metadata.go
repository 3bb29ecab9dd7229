package events

import "maps"

// MaxAnnotations bounds the annotations of one intent, keys and values together, as an API server bounds those of an
// object: mirrors carry them.
const MaxAnnotations = 256 << 10

// Metadata are what people note on an intent or a plan for themselves and their tools. It changes nothing that is planned or
// installed, which is why it has events of its own: who decides never reads them.
type Metadata struct {
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations is the commitment of the annotations, "" without any: they may hold anything, so they can be erased.
	Annotations string `json:"annotations,omitempty"`
}

// Equal reports whether both say the same.
func (m Metadata) Equal(o Metadata) bool {
	return m.Annotations == o.Annotations && maps.Equal(m.Labels, o.Labels)
}

// SubscriptionMetadataChanged carries all labels and annotations that the subscription has from now on.
type SubscriptionMetadataChanged struct {
	Metadata Metadata `json:"metadata"`
}

// EventType implements Payload.
func (SubscriptionMetadataChanged) EventType() Type { return "subscription.metadata-changed.v1" }

// OperatorGroupMetadataChanged carries all labels and annotations that the operator group has from now on.
type OperatorGroupMetadataChanged struct {
	Metadata Metadata `json:"metadata"`
}

// EventType implements Payload.
func (OperatorGroupMetadataChanged) EventType() Type { return "operatorgroup.metadata-changed.v1" }

// ApprovalPolicyMetadataChanged carries all labels and annotations that the approval policy has from now on.
type ApprovalPolicyMetadataChanged struct {
	Metadata Metadata `json:"metadata"`
}

// EventType implements Payload.
func (ApprovalPolicyMetadataChanged) EventType() Type { return "policy.approval-metadata-changed.v1" }

// InstallPlanMetadataChanged carries all labels and annotations that the plan has from now on.
type InstallPlanMetadataChanged struct {
	Metadata Metadata `json:"metadata"`
}

// EventType implements Payload.
func (InstallPlanMetadataChanged) EventType() Type { return "installplan.metadata-changed.v1" }

// CatalogMetadataChanged carries all labels and annotations that the catalog has from now on.
type CatalogMetadataChanged struct {
	Metadata Metadata `json:"metadata"`
}

// EventType implements Payload.
func (CatalogMetadataChanged) EventType() Type { return "catalog.metadata-changed.v1" }
