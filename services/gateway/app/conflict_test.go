package app_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestOneStoryOfAConflict: an operator that has failed for a conflict while its plan is carried out is told by its
// subscription, which has it, and whose phase is Failed; the plan waits for the conflict, and who would reject it hears
// how to end it (R-SUB-21, R-SUB-42, R-IP-5).
func TestOneStoryOfAConflict(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	b.catalog("fleet")
	b.position = must[model.Subscription](b, 201, b.do("POST", subscriptions,
		subscribe("tidegauge", "tidegauge"))).Position
	const subject, name, csv = "spoke/ops/tidegauge", "spoke/ops/install-aaaaa", "spoke/ops/tidegauge.v1.1.0"
	plan := uuid.NewString()
	p := proposed(plan, "install-aaaaa", "tidegauge.v1.1.0", "tidegauge")
	p.Approval = "Automatic"
	b.fact(events.Resolver, events.KindInstallPlan, plan, name, p)
	b.fact(events.Resolver, events.KindSubscription, subject, subject,
		events.ResolutionSucceeded{Outcome: "Planned", CSV: "tidegauge.v1.1.0", Plan: plan})
	b.fact(events.Installer, events.KindInstallPlan, plan, name, events.InstallPlanStarted{Steps: 3})
	phase := events.CSVPhaseChanged{
		Cluster: "spoke", Namespace: "ops", Name: "tidegauge.v1.1.0", Package: "tidegauge",
		Phase: "Failed", Reason: "InterOperatorGroupOwnerConflict",
	}
	b.fact(events.Installer, events.KindCSV, csv, csv, phase)
	b.fact(events.Installer, events.KindInstallPlan, plan, name,
		events.InstallPlanBlocked{Class: "conflict", Reason: phase.Reason})

	s := must[model.Subscription](b, 200, b.do("GET", b.seen(subscriptions+"/tidegauge"), nil))
	if s.Status.State != model.StateAtLatestKnown || s.Status.Phase != "Failed" {
		t.Errorf("state %q, phase %q: want the state as OLM has it, and beside it that what is installed has failed",
			s.Status.State, s.Status.Phase)
	}
	pending := s.Status.Conditions[len(s.Status.Conditions)-1]
	if pending.Type != "InstallPlanPending" || !strings.Contains(pending.Message, phase.Reason) {
		t.Errorf("the condition of its plan is %+v", pending)
	}
	for state, want := range map[string]string{
		"UpgradeFailed": "", "AtLatestKnown": "tidegauge",
		"UpgradePending": "",
	} {
		if got := names(b, "/api/v1/subscriptions?state="+state+"&minPosition="+b.position); got != want {
			t.Errorf("in state %s is %q, want %q", state, got, want)
		}
	}
	got := must[model.InstallPlan](b, 200, b.do("GET", b.seen("/api/v1/installplans/"+plan), nil))
	if got.Phase != "Installing" || got.Blocked == nil || got.Blocked.Reason != phase.Reason ||
		got.Blocked.Class != "conflict" {
		t.Errorf("the plan is %s, blocked by %+v", got.Phase, got.Blocked)
	}
	refused := b.do("POST", "/api/v1/installplans/"+plan+"/reject", model.RejectPlan{Digest: p.Digest})
	if refused.status != 409 || !strings.Contains(string(refused.body),
		"chandler uninstall spoke/ops/tidegauge.v1.1.0") {
		t.Errorf("rejected: %d %s", refused.status, refused.body)
	}
	phase.Phase, phase.Reason = "Succeeded", "InstallSucceeded"
	b.fact(events.Installer, events.KindCSV, csv, csv, phase)
	if s := must[model.Subscription](b, 200, b.do("GET", b.seen(subscriptions+"/tidegauge"),
		nil)); s.Status.State != model.StateAtLatestKnown || s.Status.Phase != "Succeeded" {
		t.Errorf("when the conflict is over: state %q, phase %q", s.Status.State, s.Status.Phase)
	}
}
