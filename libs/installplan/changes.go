package installplan

import (
	"cmp"
	"slices"

	"github.com/chandler-fleet/chandler/libs/events"
)

// Changes names what differs between a plan and the one that took its place, in a fixed order: bundles, then the
// parts of the base. None is a plan that does the same for another reason.
func Changes(was, is events.InstallPlanProposed) []string {
	var changed []string
	if !slices.Equal(contents(was), contents(is)) {
		changed = append(changed, "bundles")
	}
	return append(changed, BaseChanges(was.Base, is.Base)...)
}

// contents are what a plan installs, whatever the order and the reasons.
func contents(p events.InstallPlanProposed) []InstalledBundle {
	out := make([]InstalledBundle, 0, len(p.Bundles))
	for _, b := range p.Bundles {
		out = append(out, InstalledBundle{CSV: b.CSV, Content: b.Content})
	}
	slices.SortFunc(out, func(a, b InstalledBundle) int { return cmp.Compare(a.CSV, b.CSV) })
	return out
}

// BaseChanges names the parts of a plan's base that differ, in a fixed order; none where they are equal.
func BaseChanges(a, b events.PlanBase) []string {
	var changed []string
	for _, f := range []struct{ name, a, b string }{
		{"installed bundles", a.Installed, b.Installed},
		{"CRDs", a.CRDs, b.CRDs},
		{"operator group", a.OperatorGroup, b.OperatorGroup},
		{"configuration", a.Config, b.Config},
		{"approval policy", a.Policy, b.Policy},
	} {
		if f.a != f.b {
			changed = append(changed, f.name)
		}
	}
	return changed
}
