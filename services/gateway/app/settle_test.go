package app_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestObstaclesAreSettled proves that an approver may say what holds of obstacles (DESIGN D6, R-CRD-8): of an Automatic
// plan and of one that has begun, too; that it is recorded with who said it; and that the reason can be erased (DESIGN
// D2).
func TestObstaclesAreSettled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := uuid.NewString()
	const subject = "spoke/ops/install-aaaaa"
	p := proposed(id, "install-aaaaa", "tidegauge.v1.0.0", "tidegauge")
	p.Approval = "Automatic"
	b.fact(events.Resolver, events.KindInstallPlan, id, subject, p)
	path := "/api/v1/installplans/" + id
	must[problem](b, 422, b.do("POST", path+"/approve", model.ApprovePlan{Digest: p.Digest}))
	override := model.SettleObstacle{
		Object: "CustomResourceDefinition/gauges.sea.test", Choice: "Override",
		Finding: "sha256:f",
	}
	if e := must[problem](b, 400, b.do("POST", path+"/approve",
		model.ApprovePlan{Digest: p.Digest, Choices: []model.SettleObstacle{override}})); !strings.Contains(
		e.Detail, "without a reason") {
		t.Errorf("got %+v", e)
	}
	override.Reason = "no gauge of Mrs. Smith is used any more"
	in := model.ApprovePlan{Digest: p.Digest, Choices: []model.SettleObstacle{
		override, {Object: "ClusterRole/metrics-reader", Choice: "Keep", Finding: "sha256:g"},
	}}
	first := must[model.InstallPlan](b, 200, b.write("POST", path+"/approve", in))
	if len(first.Choices) != 2 || first.Choices[1].By != "token-admin" || first.Phase != "Installing" {
		t.Errorf("got %+v", first)
	}
	if same := must[model.InstallPlan](b, 200, b.write("POST", path+"/approve", in)); same.Version != first.Version {
		t.Errorf("who says the same again changes something: version %d, then %d", first.Version, same.Version)
	}
	read := func() model.InstallPlan { return must[model.InstallPlan](b, 200, b.do("GET", b.seen(path), nil)) }
	got := read()
	if len(got.Choices) != 2 || got.Choices[0].Object != "ClusterRole/metrics-reader" ||
		got.Choices[1].Reason != override.Reason || got.Choices[1].By != "token-admin" || got.Choices[1].At.IsZero() {
		t.Errorf("got %+v", got.Choices)
	}
	if a := b.do("GET", "/api/v1/events?limit=100", nil); strings.Contains(string(a.body), "Mrs. Smith") ||
		!strings.Contains(string(a.body), "installplan.obstacles-settled.v1") {
		t.Errorf("the record must tell of the choice and hold no free text: %s", a.body)
	}
	b.exec("gateway", `delete from gateway.bodies where kind = 'plan-reason'`)
	if got = read(); got.Choices[1].Reason != "(erased)" || got.Choices[1].Choice != "Override" {
		t.Errorf("after its erasure: %+v", got.Choices[1])
	}
	b.fact(events.Installer, events.KindInstallPlan, id, subject, events.InstallPlanStarted{Steps: 3})
	in.Choices = []model.SettleObstacle{{Object: "ClusterRole/metrics-reader", Choice: "Take", Finding: "sha256:g"}}
	must[model.InstallPlan](b, 200, b.write("POST", path+"/approve", in))
	if got = read(); len(got.Choices) != 2 || got.Choices[1].Choice != "Take" {
		t.Errorf("of a plan that has begun: %+v", got.Choices)
	}
}
