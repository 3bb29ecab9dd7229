package terms_test

import (
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan/terms"
)

// TestExceeds: a plan that is proposed with less than subscriptions and policies ask for is told apart, by each of what
// they may ask for; one that asks for more is not (ADR 0034). How policies combine: services/resolver/decide
// TestPoliciesShapeProposals.
func TestExceeds(t *testing.T) {
	t.Parallel()
	night := []events.Window{{Days: []string{"Sat"}, Start: "22:00", Minutes: 60, TimeZone: "Europe/Oslo"}}
	policy := func(change func(*events.ApprovalPolicySpec)) []terms.Policy {
		p := terms.Policy{Name: "p"}
		change(&p.Spec)
		return []terms.Policy{p}
	}
	rule := func(change, mode string) func(*events.ApprovalPolicySpec) {
		return func(s *events.ApprovalPolicySpec) { s.Rules = []events.ApprovalRule{{Change: change, Mode: mode}} }
	}
	growth := func(s *events.ApprovalPolicySpec) { s.PermissionGrowth = "Manual" }
	for name, c := range map[string]struct {
		mode     string
		bundle   terms.Bundle
		policies []terms.Policy
		plan     events.InstallPlanProposed
		says     string // "" is nothing
	}{
		"automatic": {mode: "Automatic"},
		"a subscription that wants a person": {
			mode: "Manual", says: "a person has to approve it (approval of its subscription: Manual)",
		},
		"and a plan that waits for one": {mode: "Manual", plan: events.InstallPlanProposed{Approval: "Manual"}},
		"a plan that waits for nobody's sake": {
			mode: "Automatic", plan: events.InstallPlanProposed{Approval: "Manual"},
		},
		"a rule": {mode: "Automatic", policies: policy(rule("Install", "Manual")), says: "(Install)"},
		"a rule for other changes": {
			mode: "Automatic", policies: policy(rule("Major", "Manual")),
		},
		"a rule for what is no patch": {
			mode: "Automatic", bundle: terms.Bundle{Version: "2.0.0", From: &terms.Installed{Version: "1.0.0"}},
			policies: policy(rule("Major", "Manual")), says: "(MajorUpgrade)",
		},
		"a rule that needs nobody": {mode: "Manual", policies: policy(rule("Any", "Automatic"))},
		"a rollback": {
			mode: "Automatic", bundle: terms.Bundle{Rollback: true}, says: "(Rollback)",
		},
		"rights that grow": {
			mode: "Automatic", bundle: terms.Bundle{
				Version: "1.0.1", Content: "more", From: &terms.Installed{Version: "1.0.0", Content: "some"},
			}, policies: policy(growth), says: "(PermissionGrowth)",
		},
		"rights that cannot be compared": {
			mode: "Automatic", bundle: terms.Bundle{
				Version: "1.0.1", Content: "unknown", From: &terms.Installed{Version: "1.0.0", Content: "some"},
			}, policies: policy(growth), says: "(PermissionGrowthUnknown)",
		},
		"two people": {
			mode: "Manual", policies: policy(func(s *events.ApprovalPolicySpec) { s.Approvers = 2 }),
			plan: events.InstallPlanProposed{Approval: "Manual"}, says: "2 people have to approve it, and the plan says 1",
		},
		"a shorter time": {
			mode: "Manual", policies: policy(func(s *events.ApprovalPolicySpec) { s.ApprovalSeconds = 60 }),
			plan: events.InstallPlanProposed{Approval: "Manual"}, says: "60 seconds",
		},
		"a window": {
			mode: "Automatic", policies: policy(func(s *events.ApprovalPolicySpec) { s.Windows = night }),
			says: "windows of policy p",
		},
		"a window that it keeps to": {
			mode: "Automatic", policies: policy(func(s *events.ApprovalPolicySpec) { s.Windows = night }),
			plan: events.InstallPlanProposed{Windows: []events.WindowGroup{{Policy: "renamed", Windows: night}}},
		},
	} {
		if c.plan.Approval == "" {
			c.plan.Approval = "Automatic"
		}
		need := terms.Of(c.mode, []terms.Bundle{c.bundle}, c.policies, func(_, to string) (int, bool) {
			return 1, to != "unknown"
		})
		got := need.Exceeds(c.plan)
		if (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: said %q, want %q", name, got, c.says)
		}
	}
}
