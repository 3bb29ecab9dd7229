package decide

import (
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
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

// terms are what policies make of a component, taken together.
type terms struct {
	policies []string // that choose something of it, by name
	facts    installplan.PolicyFacts
}

// terms combines the policies of a component: the strictest of each kind holds.
//
//	mode       for each bundle, what the first fitting rule of each policy says, Manual before Automatic; where no rule
//	           fits, that of the subscriptions. A bundle that gains rights, or may, is Manual where a policy asks for that.
//	           The plan is Manual if a bundle is. A rollback always is.
//	approvers  the most that a policy wants
//	time       the shortest that a policy gives approvals
//	windows    one window of each policy that has any must be open
//
// Approvers and time mean nothing to an Automatic plan and are left out of it.
func (s State) terms(c resolution.Component) terms {
	var t terms
	chosen := slices.DeleteFunc(s.policies(), func(p Policy) bool { return !slices.ContainsFunc(c.Bundles, p.chooses) })
	approval, said := installplan.Automatic, false
	for _, b := range c.Bundles {
		mode, reasons := s.mode(b, chosen)
		if b.Reason == resolution.ReasonRollback {
			mode, reasons = installplan.Manual, append(reasons, reasonRollback)
		}
		t.facts.ManualReasons = append(t.facts.ManualReasons, reasons...)
		said = said || mode != ""
		if mode == "" {
			mode = c.Approval
		}
		if mode == installplan.Manual {
			approval = installplan.Manual
		}
	}
	if said && approval != c.Approval {
		t.facts.Approval = approval
	}
	slices.Sort(t.facts.ManualReasons)
	t.facts.ManualReasons = slices.Compact(t.facts.ManualReasons)
	for _, p := range chosen {
		t.policies = append(t.policies, p.Name)
		if len(p.Spec.Windows) > 0 {
			t.facts.Windows = append(t.facts.Windows, events.WindowGroup{Policy: p.Name, Windows: p.Spec.Windows})
		}
		if approval == installplan.Manual {
			t.consent(p.Spec)
		}
	}
	return t
}

// consent takes the stricter of what is there and what a policy says of approvals.
func (t *terms) consent(p events.ApprovalPolicySpec) {
	if p.Approvers > 1 { // one is what every Manual plan wants
		t.facts.Approvers = max(t.facts.Approvers, p.Approvers)
	}
	if p.ApprovalSeconds > 0 && (t.facts.ApprovalSeconds == 0 || p.ApprovalSeconds < t.facts.ApprovalSeconds) {
		t.facts.ApprovalSeconds = p.ApprovalSeconds
	}
}

// approval is the mode of the plan.
func (t *terms) approval(c resolution.Component) string {
	if t.facts.Approval == "" {
		return c.Approval
	}
	return t.facts.Approval
}

// mode is what policies say of one bundle, "" for nothing, and why a person is wanted.
func (s State) mode(b resolution.Planned, policies []Policy) (mode string, reasons []string) {
	from := s.predecessor(b)
	change, reason := changeOf(from, b)
	for _, p := range policies {
		if !p.chooses(b) {
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
		if growth := s.growth(from, b); growth != "" && p.Spec.PermissionGrowth == installplan.Manual {
			mode, reasons = installplan.Manual, append(reasons, growth)
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

// growth is the reason for which an upgrade wants a person because of the rights that it brings; "" for none. What
// is installed anew gains nothing: all its rights are seen for the first time, and a rule for Install says what then.
func (s State) growth(from *Installed, b resolution.Planned) string {
	if from == nil || from.Content != "" && from.Content == string(b.Content) {
		return ""
	}
	gained, known := s.PermissionGrowth[Upgrade{From: from.Content, To: string(b.Content)}]
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
func changeOf(from *Installed, b resolution.Planned) (change, reason string) {
	if from == nil {
		return changeInstall, reasonInstall
	}
	was, err := semver.Parse(from.Version)
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
