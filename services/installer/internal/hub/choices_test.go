package hub

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
)

// TestGrantsCarryChoices: what approvers say of obstacles reaches the executor at once, signed, also of a plan that
// needs no approval or has begun (DESIGN D6).
func TestGrantsCarryChoices(t *testing.T) {
	t.Parallel()
	d := newFixture(t, friday)
	d.publishPlan(windowed("Automatic"))
	if g, ok := d.grant(); !ok || len(g.Choices) > 0 {
		t.Fatalf("the grant is %+v, %v", g, ok)
	}
	keep := events.PlanChoice{Object: "ClusterRole/metrics-reader", Choice: events.ChoiceKeep, Finding: "sha256:f"}
	settled := events.InstallPlanObstaclesSettled{Digest: "d", By: "anna", Choices: []events.PlanChoice{keep}}
	d.publishPlan(settled)
	g, ok := d.grant()
	if !ok || len(g.Choices) != 1 || g.Choices[0].By[0] != "anna" || g.Chosen(keep.Object, keep.Finding) == nil ||
		g.Chosen(keep.Object, "sha256:other") != nil {
		t.Fatalf("the grant is %+v, %v", g, ok)
	}
	g.Choices[0].Finding = "sha256:other"
	if g.Verify(d.key) == nil {
		t.Error("choices are not signed")
	}
	d.publishPlan(events.InstallPlanStarted{})
	keep.Choice = events.ChoiceTake
	settled.Choices = []events.PlanChoice{keep}
	d.publishPlan(settled)
	if g, ok = d.grant(); !ok || len(g.Choices) != 1 || g.Choices[0].Choice != events.ChoiceTake {
		t.Errorf("of a plan that has begun the grant is %+v, %v", g, ok)
	}
}
