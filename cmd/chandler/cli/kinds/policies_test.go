package kinds

import (
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestPolicyTexts: policies and what plans wait for, as people read them.
func TestPolicyTexts(t *testing.T) {
	t.Parallel()
	opens := time.Date(2026, 5, 9, 20, 0, 0, 0, time.UTC)
	for want, got := range map[string]string{
		"cluster east-*|west, package gauge, labels stage=production": selectorText(model.PolicySelector{
			Clusters: []string{"east-*", "west"}, Packages: []string{"gauge"},
			ClusterLabels: map[string]string{"stage": "production"},
		}),
		"exactly 1.4.2, >=1.4.0, at most 1.9.9": versionsText(
			model.PolicyVersions{Pin: "1.4.2", Range: ">=1.4.0", Ceiling: "1.9.9"}),
		"Patch: Automatic, Any: Manual": rulesText(
			[]model.ApprovalRule{{Change: "Patch", Mode: "Automatic"}, {Change: "Any", Mode: "Manual"}}),
		"Sat|Sun 22:00 Europe/Oslo, for 6h0m0s": windowText(
			model.MaintenanceWindow{
				Days: []string{"Sat", "Sun"}, Start: "22:00", Minutes: 360,
				TimeZone: "Europe/Oslo",
			}),
		"every day 02:00 UTC, for 30m0s": windowText(
			model.MaintenanceWindow{Start: "02:00", Minutes: 30, TimeZone: "UTC"}),
		"Manual": approvalText(model.InstallPlan{Approval: "Manual"}),
		"Manual (MajorUpgrade,PermissionGrowth)": approvalText(model.InstallPlan{
			Approval: "Manual", PlanTerms: model.PlanTerms{ManualReasons: []string{"MajorUpgrade", "PermissionGrowth"}},
		}),
		"1 approval": waitText(
			model.InstallPlan{PlanTerms: model.PlanTerms{WaitsFor: "Approval", MissingApprovals: 1}}),
		"2 approvals": waitText(
			model.InstallPlan{PlanTerms: model.PlanTerms{WaitsFor: "Approval", MissingApprovals: 2}}),
		"window, opens 2026-05-09 20:00 UTC": waitText(
			model.InstallPlan{PlanTerms: model.PlanTerms{WaitsFor: "Window", NextOpening: &opens}}),
		"OwnerConflict": waitText(model.InstallPlan{
			Begun: true, Blocked: &model.PlanBlock{Class: "conflict", Reason: "OwnerConflict"},
		}),
		"window, which never opens": waitText(model.InstallPlan{PlanTerms: model.PlanTerms{WaitsFor: "Window"}}),
		"":                          waitText(model.InstallPlan{}) + selectorText(model.PolicySelector{}),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestDescribePlanTerms: an approver sees what policies ask, what is there and what is missing.
func TestDescribePlanTerms(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 5, 9, 20, 0, 0, 0, time.UTC)
	var out strings.Builder
	p := printer.NewPage(&out, time.Now)
	describeTerms(p, model.InstallPlan{Approval: "Manual", PlanTerms: model.PlanTerms{
		Policies: []string{"nights", "production"}, Approvers: 3, MissingApprovals: 2, WaitsFor: "Approval",
		Approvals: []model.PlanApproval{{By: "actor-1", Expires: until}},
		Windows: []model.PlanWindows{{Policy: "nights", Windows: []model.MaintenanceWindow{
			{Start: "22:00", Minutes: 60, TimeZone: "UTC"},
		}}},
	}})
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"nights, production", "2 approvals", "every day 22:00 UTC, for 1h0m0s (nights)",
		"3, 2 missing", "actor-1, until 2026-05-09 20:00 UTC",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}
