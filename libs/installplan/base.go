package installplan

import (
	"cmp"
	"slices"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
)

// BaseFacts are what an approval stands on beside the plan itself (DESIGN D6): not passing observations.
// The resolver takes them when it proposes; whoever checks them later takes them in the same way.
type BaseFacts struct {
	// Installed are the CSVs of the component, with the digest of the content that they came from.
	Installed []InstalledBundle
	// CRDs are the custom resource definitions that the plan touches.
	CRDs          []Step
	OperatorGroup GroupFacts
	// Configs are the commitments of the subscriptions' configurations, by subscription.
	Configs map[string]string
	// Approvals are the approval modes of the subscriptions, by subscription.
	Approvals map[string]string
	// Policy is what approval policies make of the plan; the zero value is nothing.
	Policy PolicyFacts
}

// PolicyFacts are what approval policies say of a plan, taken together: not their texts, so that a policy that
// changes without a difference to the plan voids nothing.
type PolicyFacts struct {
	Approval        string               `json:"approval,omitempty"` // "" where no policy says anything
	ManualReasons   []string             `json:"manualReasons,omitempty"`
	Approvers       int                  `json:"approvers,omitempty"`
	ApprovalSeconds int64                `json:"approvalSeconds,omitempty"`
	Windows         []events.WindowGroup `json:"windows,omitempty"`
}

func (p PolicyFacts) empty() bool {
	return p.Approval == "" && len(p.ManualReasons) == 0 && p.Approvers == 0 && p.ApprovalSeconds == 0 && len(p.Windows) == 0
}

// InstalledBundle is one CSV of a base.
type InstalledBundle struct {
	CSV     string `json:"csv"`
	Content string `json:"content"`
}

// GroupFacts are what of an operator group a plan depends on.
type GroupFacts struct {
	Name string                   `json:"name"`
	Spec events.OperatorGroupSpec `json:"spec"`
}

// BaseType is the type prefix of the digests of a base.
const BaseType = "chandler.plan-base.v1"

// Base gives the digests of the facts, independent of the order of their lists.
func (f BaseFacts) Base() (events.PlanBase, error) {
	installed := slices.SortedFunc(slices.Values(f.Installed), func(a, b InstalledBundle) int { return cmp.Compare(a.CSV, b.CSV) })
	crds := slices.SortedFunc(slices.Values(f.CRDs), func(a, b Step) int { return cmp.Compare(a.Name, b.Name) })
	for i := range crds {
		crds[i].Resolving = "" // which of two bundles brings it does not matter
	}
	var policy any = f.Approvals // as it was before there were policies: plans without one keep their digests
	if !f.Policy.empty() {
		policy = struct {
			Approvals map[string]string `json:"approvals"`
			Policy    PolicyFacts       `json:"policy"`
		}{f.Approvals, f.Policy}
	}
	var base events.PlanBase
	for _, part := range []struct {
		into *string
		of   any
	}{
		{&base.Installed, orEmpty(installed)},
		{&base.CRDs, orEmpty(crds)},
		{&base.OperatorGroup, f.OperatorGroup},
		{&base.Config, f.Configs},
		{&base.Policy, policy},
	} {
		d, err := digest.JSON(BaseType, part.of)
		if err != nil {
			return base, err
		}
		*part.into = string(d)
	}
	return base, nil
}

// orEmpty makes the JSON of no elements [] whether the list is nil or not.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
