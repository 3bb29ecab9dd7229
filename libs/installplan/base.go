package installplan

import (
	"cmp"
	"slices"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
)

// BaseFacts are what an approval is bound to besides the plan itself (DESIGN D6), without transient observations.
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

// PolicyFacts are what approval policies say of a plan, taken together.
type PolicyFacts struct {
	Approval        string   // "" where policies leave it at the subscriptions' mode
	ManualReasons   []string // no part of the base: the mode binds, whatever the reasons
	Approvers       int
	ApprovalSeconds int64
	Windows         []events.WindowGroup
}

// boundPolicy is the part of the policies that a base contains. Their texts and names are not: a policy that changes,
// or is split in two, without a difference to the plan voids nothing.
type boundPolicy struct {
	Approval        string            `json:"approval,omitempty"`
	Approvers       int               `json:"approvers,omitempty"`
	ApprovalSeconds int64             `json:"approvalSeconds,omitempty"`
	Windows         [][]events.Window `json:"windows,omitempty"` // sets of sets, in a fixed order
}

func (p PolicyFacts) bound() boundPolicy {
	out := boundPolicy{Approval: p.Approval, Approvers: p.Approvers, ApprovalSeconds: p.ApprovalSeconds}
	for _, g := range p.Windows {
		windows := slices.Clone(g.Windows)
		for i := range windows {
			windows[i].Days = slices.Sorted(slices.Values(windows[i].Days))
		}
		slices.SortFunc(windows, compareWindows)
		out.Windows = append(out.Windows, slices.CompactFunc(windows, equalWindows))
	}
	compareGroups := func(a, b []events.Window) int { return slices.CompareFunc(a, b, compareWindows) }
	slices.SortFunc(out.Windows, compareGroups)
	out.Windows = slices.CompactFunc(out.Windows, func(a, b []events.Window) bool { return compareGroups(a, b) == 0 })
	return out
}

func (b boundPolicy) empty() bool {
	return b.Approval == "" && b.Approvers == 0 && b.ApprovalSeconds == 0 && len(b.Windows) == 0
}

func equalWindows(a, b events.Window) bool { return compareWindows(a, b) == 0 }

func compareWindows(a, b events.Window) int {
	return cmp.Or(cmp.Compare(a.TimeZone, b.TimeZone), cmp.Compare(a.Start, b.Start), cmp.Compare(a.Minutes, b.Minutes),
		slices.Compare(a.Days, b.Days))
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
	installed := slices.SortedFunc(slices.Values(f.Installed),
		func(a, b InstalledBundle) int { return cmp.Compare(a.CSV, b.CSV) })
	crds := slices.SortedFunc(slices.Values(f.CRDs), func(a, b Step) int { return cmp.Compare(a.Name, b.Name) })
	for i := range crds {
		crds[i].Resolving = "" // which of two bundles brings it does not matter
	}
	var policy any = f.Approvals // as it was before there were policies: plans without one keep their digests
	if bound := f.Policy.bound(); !bound.empty() {
		policy = struct {
			Approvals map[string]string `json:"approvals"`
			Policy    boundPolicy       `json:"policy"`
		}{f.Approvals, bound}
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
