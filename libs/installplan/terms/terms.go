// Package terms says what subscriptions and approval policies make of a plan: whether people have to agree, how many,
// for how long that holds, and when the plan may begin. It is pure. The resolver asks when it proposes; the hub asks
// again, of the intents in the log, before it signs a grant: the resolver's word alone gives none (ADR 0034).
package terms

import (
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
)

// Kinds of change that rules of policies name.
const (
	changeInstall = "Install" // nothing of the package is installed
	changePatch   = "Patch"
	changeMinor   = "Minor"
	changeMajor   = "Major" // also what has no version, and what goes back
	changeAny     = "Any"
)

// Why a policy wants a person (events.InstallPlanProposed.ManualReasons).
const (
	reasonInstall       = "Install"
	reasonPatch         = "PatchUpgrade"
	reasonMinor         = "MinorUpgrade"
	reasonMajor         = "MajorUpgrade"
	reasonRollback      = "Rollback" // no policy: a person has asked for it, and a person is to see what it does
	reasonGrowth        = "PermissionGrowth"
	reasonGrowthUnknown = "PermissionGrowthUnknown" // the two bundles could not be compared
)

// Bundle is one bundle of a plan, as far as its terms depend on it.
type Bundle struct {
	Package, Version string
	Catalog          string // name, or namespace/name
	Content          string // digest
	Rollback         bool
	// From is what it takes the place of; nil where it is new.
	From *Installed
}

// Installed is an operator that is there.
type Installed struct {
	Version, Content string
}

// Growth says how many rights a content gains over another; known is false where they could not be compared.
type Growth func(from, to string) (gained int, known bool)

// Terms are what subscriptions and policies make of a plan.
type Terms struct {
	Policies []string // that choose something of it, by name
	Approval string   // of the plan: Automatic, Manual
	Facts    installplan.PolicyFacts
}

// Of combines the policies of a plan: the strictest of each kind holds. subscribed is the mode of its subscriptions,
// policies are those of its scope, by name.
//
//	mode       for each bundle, what the first fitting rule of each policy says, Manual before Automatic; where no rule
//	           fits, that of the subscriptions. A bundle that gains rights, or may, is Manual where a policy asks for that.
//	           The plan is Manual if a bundle is. A rollback always is.
//	approvers  the most that a policy wants
//	time       the shortest that a policy gives approvals
//	windows    one window of each policy that has any must be open
//
// Approvers and time mean nothing to an Automatic plan and are left out of it.
func Of(subscribed string, bundles []Bundle, policies []Policy, growth Growth) Terms {
	var t Terms
	chosen := slices.DeleteFunc(slices.Clone(policies), func(p Policy) bool {
		return !slices.ContainsFunc(bundles, func(b Bundle) bool { return p.Chooses(b.Package, b.Catalog) })
	})
	approval, said := installplan.Automatic, false
	for _, b := range bundles {
		mode, reasons := modeOf(b, chosen, growth)
		if b.Rollback {
			mode, reasons = installplan.Manual, append(reasons, reasonRollback)
		}
		t.Facts.ManualReasons = append(t.Facts.ManualReasons, reasons...)
		said = said || mode != ""
		if mode == "" {
			mode = subscribed
		}
		if mode == installplan.Manual {
			approval = installplan.Manual
		}
	}
	t.Approval = subscribed
	if said && approval != subscribed {
		t.Facts.Approval, t.Approval = approval, approval
	}
	slices.Sort(t.Facts.ManualReasons)
	t.Facts.ManualReasons = slices.Compact(t.Facts.ManualReasons)
	for _, p := range chosen {
		t.Policies = append(t.Policies, p.Name)
		if len(p.Spec.Windows) > 0 {
			t.Facts.Windows = append(t.Facts.Windows, events.WindowGroup{Policy: p.Name, Windows: p.Spec.Windows})
		}
		if approval == installplan.Manual {
			t.consent(p.Spec)
		}
	}
	return t
}

// consent takes the stricter of what is there and what a policy says of approvals.
func (t *Terms) consent(p events.ApprovalPolicySpec) {
	if p.Approvers > 1 { // one is what every Manual plan wants
		t.Facts.Approvers = max(t.Facts.Approvers, p.Approvers)
	}
	if p.ApprovalSeconds > 0 && (t.Facts.ApprovalSeconds == 0 || p.ApprovalSeconds < t.Facts.ApprovalSeconds) {
		t.Facts.ApprovalSeconds = p.ApprovalSeconds
	}
}

// modeOf is what policies say of one bundle, "" for nothing, and why a person is wanted.
func modeOf(b Bundle, policies []Policy, growth Growth) (mode string, reasons []string) {
	change, reason := changeOf(b)
	for _, p := range policies {
		if !p.Chooses(b.Package, b.Catalog) {
			continue
		}
		switch ruled(p.Spec.Rules, change) {
		case installplan.Manual:
			mode, reasons = installplan.Manual, append(reasons, reason)
		case installplan.Automatic:
			if mode == "" {
				mode = installplan.Automatic
			}
		}
		if p.Spec.PermissionGrowth != installplan.Manual {
			continue
		}
		if why := grows(b, growth); why != "" {
			mode, reasons = installplan.Manual, append(reasons, why)
		}
	}
	return mode, reasons
}

// ruled is the mode of the first rule that fits a change; "" where none does.
func ruled(rules []events.ApprovalRule, change string) string {
	for _, r := range rules {
		if r.Change == change || r.Change == changeAny {
			return r.Mode
		}
	}
	return ""
}

// grows is the reason for which an upgrade wants a person because of the rights that it brings; "" for none. What
// is installed anew gains nothing: all its rights are seen for the first time, and a rule for Install says what then.
func grows(b Bundle, growth Growth) string {
	if b.From == nil || b.From.Content != "" && b.From.Content == b.Content {
		return ""
	}
	gained, known := growth(b.From.Content, b.Content)
	switch {
	case !known:
		return reasonGrowthUnknown
	case gained > 0:
		return reasonGrowth
	default:
		return ""
	}
}

// changeOf says what kind of change a bundle is, by the versions, and the reason that goes with it.
func changeOf(b Bundle) (change, reason string) {
	if b.From == nil {
		return changeInstall, reasonInstall
	}
	was, err := semver.Parse(b.From.Version)
	is, errIs := semver.Parse(b.Version)
	switch {
	case err != nil || errIs != nil || is.LT(was) || is.Major != was.Major:
		return changeMajor, reasonMajor
	case is.Minor != was.Minor:
		return changeMinor, reasonMinor
	default:
		return changePatch, reasonPatch
	}
}
