package events

// policyEvents are the events of policies, in the order of docs/events.md.
func policyEvents() []Definition {
	return []Definition{
		define(KindPolicy, Gateway, CatalogHealthSet{},
			"What an unhealthy catalog does to those who see it but do not need it."),
		define(KindPolicy, Gateway, ApprovalPolicySet{}, "Which upgrades may happen, when, and who has to agree."),
		define(KindPolicy, Gateway, ApprovalPolicyMetadataChanged{},
			"The approval policy has other labels or annotations from now on."),
		define(KindPolicy, Gateway, ApprovalPolicyDeleted{}, "An approval policy ended."),
	}
}

// ApprovalPolicySet says which upgrades may happen, when, and who has to agree, for what a selector chooses. It
// carries the whole policy. Subject: "approval/name".
type ApprovalPolicySet struct {
	Name string             `json:"name"`
	Spec ApprovalPolicySpec `json:"spec"`
}

// EventType implements Payload.
func (ApprovalPolicySet) EventType() Type { return "policy.approval-set.v1" }

// ApprovalPolicyDeleted ends a policy. Subject: "approval/name".
type ApprovalPolicyDeleted struct{}

// EventType implements Payload.
func (ApprovalPolicyDeleted) EventType() Type { return "policy.approval-deleted.v1" }

// ApprovalPolicySpec is one policy. Where several choose the same operator, all of them hold: versions must be
// allowed by each, Manual wins over Automatic, windows of each must be open, the most approvers are needed, and
// the shortest time of an approval counts.
type ApprovalPolicySpec struct {
	Selector PolicySelector `json:"selector"`
	Versions PolicyVersions `json:"versions"`
	// Rules give the approval mode by what an upgrade is; the first that fits counts, none leaves the
	// subscription's mode.
	Rules []ApprovalRule `json:"rules,omitempty"`
	// PermissionGrowth is Manual (an upgrade that gains rights waits for a person whatever the rules say) or Ignore.
	PermissionGrowth string   `json:"permissionGrowth"`
	Windows          []Window `json:"windows,omitempty"`
	Approvers        int      `json:"approvers,omitempty"`
	ApprovalSeconds  int64    `json:"approvalSeconds,omitempty"`
}

// PolicySelector chooses operators. Each list is names, or prefixes followed by "*"; an empty one is all. All
// that is given must fit.
type PolicySelector struct {
	Clusters      []string          `json:"clusters,omitempty"`
	ClusterLabels map[string]string `json:"clusterLabels,omitempty"`
	Namespaces    []string          `json:"namespaces,omitempty"`
	Packages      []string          `json:"packages,omitempty"`
	Catalogs      []string          `json:"catalogs,omitempty"` // name, or namespace/name of a cluster's own
}

// PolicyVersions are the versions that may be installed; what is installed already stays.
type PolicyVersions struct {
	Pin     string `json:"pin,omitempty"`     // exactly this version or CSV
	Range   string `json:"range,omitempty"`   // blang/semver
	Ceiling string `json:"ceiling,omitempty"` // never beyond
}

// ApprovalRule gives a mode to a kind of change.
type ApprovalRule struct {
	Change string `json:"change"` // Install, Patch, Minor, Major, Any
	Mode   string `json:"mode"`   // Automatic, Manual
}

// ApprovalPolicyMetadataChanged carries all labels and annotations that the approval policy has from now on.
type ApprovalPolicyMetadataChanged struct {
	Metadata Metadata `json:"metadata"`
}

// EventType implements Payload.
func (ApprovalPolicyMetadataChanged) EventType() Type { return "policy.approval-metadata-changed.v1" }
