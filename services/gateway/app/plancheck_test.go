package app_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestPlanCheck is R-IP-41 and R-CRD: what stands in the way of a plan is asked of its cluster before anybody approves
// it, and is told in full.
func TestPlanCheck(t *testing.T) {
	t.Parallel()
	var nats natsconn.Settings
	b := setupWith(t, func(c *app.Config) { nats = c.NATS })
	b.cluster("spoke")
	plan, over := uuid.NewString(), uuid.NewString()
	b.fact(events.Resolver, events.KindInstallPlan, over, "spoke/ops/install-bbbbb",
		proposed(over, "install-bbbbb", "tidegauge.v1.0.0", "tidegauge"))
	b.fact(events.Resolver, events.KindInstallPlan, over, "spoke/ops/install-bbbbb",
		events.InstallPlanSuperseded{By: plan})
	b.fact(events.Resolver, events.KindInstallPlan, plan, "spoke/ops/install-aaaaa",
		proposed(plan, "install-aaaaa", "tidegauge.v1.1.0", "tidegauge"))
	b.do("GET", b.seen("/api/v1/installplans"), nil)
	path := "/api/v1/installplans/" + plan + "/check"
	if p := must[problem](b, 503, b.do("GET", path, nil)); !strings.Contains(
		p.Detail, `cluster "spoke" cannot be asked about install plan install-aaaaa`) {
		t.Errorf("while nobody can look: %+v", p)
	}
	missing := protocol.MissingPermission{
		User: "system:serviceaccount:ops:installer", Verb: "create",
		Resource: "services", Namespace: "ops", For: "Service ops/web",
	}
	verdict := protocol.CRDVerdict{
		CRD: "gauges.sea.test", Safe: true,
		Irreversible: []string{"objects are stored as v2"},
	}
	answer := protocol.PlanCheck{
		Account: missing.User, Permissions: []protocol.MissingPermission{missing},
		CRDs: []protocol.CRDVerdict{verdict},
	}
	asked := answering(b, nats, protocol.RPCInstallerCheck, func(protocol.LivePlanQuestion) any { return answer })
	b.until(func() bool { return b.do("GET", path, nil).status == 200 })
	if q := <-asked; q.Tenant != "default" || q.Plan != plan {
		t.Errorf("asked %+v", q)
	}
	want := model.PlanCheck{
		Account: missing.User, Permissions: []model.MissingPermission{model.MissingPermission(missing)},
		CRDs: []model.CRDVerdict{model.CRDVerdict(verdict)}, Obstacles: []model.Obstacle{},
	}
	if diff := cmp.Diff(want, must[model.PlanCheck](b, 200, b.do("GET", path, nil))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	must[problem](b, 404, b.do("GET", "/api/v1/installplans/"+uuid.NewString()+"/check", nil))
	if p := must[problem](b, 409, b.do("GET", "/api/v1/installplans/"+over+"/check", nil)); !strings.Contains(
		p.Detail, "install-bbbbb is Superseded") {
		t.Errorf("of a plan that has ended: %+v", p)
	}
	must[problem](b, 401, b.as("no token of anybody", "GET", path, nil))
}

// TestReady: a plan is ready where nothing at all is in the way.
func TestReady(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		check protocol.PlanCheck
		want  bool
	}{
		"nothing":           {protocol.PlanCheck{}, true},
		"a safe definition": {protocol.PlanCheck{CRDs: []protocol.CRDVerdict{{Safe: true}}}, true},
		"a definition of several": {
			protocol.PlanCheck{CRDs: []protocol.CRDVerdict{{Safe: true}, {}, {Safe: true}}},
			false,
		},
		"a right":     {protocol.PlanCheck{Permissions: []protocol.MissingPermission{{}}}, false},
		"an obstacle": {protocol.PlanCheck{Obstacles: []protocol.Obstacle{{}}}, false},
	} {
		if got := model.CheckOf(c.check).Ready; got != c.want {
			t.Errorf("%s: ready is %t", name, got)
		}
	}
}
