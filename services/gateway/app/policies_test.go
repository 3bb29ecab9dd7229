package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// write sends a request whose effect the next read that uses seen waits for.
func (b *bench) write(method, path string, body any) answer {
	b.t.Helper()
	a := b.do(method, path, body)
	if p := a.header.Get("Chandler-Position"); p != "" {
		b.position = p
	}
	return a
}

func productionPolicy() model.ApprovalPolicySpec {
	return model.ApprovalPolicySpec{
		Selector: model.PolicySelector{
			ClusterLabels: map[string]string{"stage": "production"},
			Packages:      []string{"tidegauge"},
		},
		Versions:  model.PolicyVersions{Ceiling: "1.9.9"},
		Rules:     []model.ApprovalRule{{Change: "Patch", Mode: "Automatic"}, {Change: "Any", Mode: "Manual"}},
		Approvers: 2, Windows: []model.MaintenanceWindow{
			{Days: []string{"Sun"}, Start: "02:00", Minutes: 120, TimeZone: "Europe/Oslo"},
		},
	}
}

// TestApprovalPolicies proves the intent of approval policies end to end: set, read, replaced, refused, ended.
func TestApprovalPolicies(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const path = "/api/v1/approvalpolicies/production"
	must[problem](b, 404, b.do("GET", path, nil))
	set := must[model.ApprovalPolicy](b, 200, b.write("PUT", path, productionPolicy()))
	if set.Name != "production" || set.Spec.PermissionGrowth != "Manual" || set.Version != 1 || set.Position == "" {
		t.Errorf("got %+v", set)
	}
	again := must[model.ApprovalPolicy](b, 200, b.write("PUT", path, productionPolicy()))
	if again.Version != 1 {
		t.Errorf("the same policy again made version %d", again.Version)
	}
	got := must[model.ApprovalPolicy](b, 200, b.do("GET", b.seen(path), nil))
	if got.Spec.Versions.Ceiling != "1.9.9" || len(got.Spec.Rules) != 2 ||
		got.Spec.Windows[0].TimeZone != "Europe/Oslo" || got.CreatedAt.IsZero() {
		t.Errorf("got %+v", got)
	}
	changed := productionPolicy()
	changed.Approvers = 3
	must[model.ApprovalPolicy](b, 200, b.write("PUT", path, changed))
	must[model.ApprovalPolicy](b, 200, b.write("PUT", "/api/v1/approvalpolicies/edge", model.ApprovalPolicySpec{}))
	list := must[struct {
		Items []model.ApprovalPolicy
		Next  string
	}](b, 200, b.do("GET", b.seen("/api/v1/approvalpolicies")+"&limit=1", nil))
	if len(list.Items) != 1 || list.Items[0].Name != "edge" || list.Next == "" {
		t.Errorf("got %+v", list)
	}
	rest := must[struct{ Items []model.ApprovalPolicy }](
		b, 200, b.do("GET", "/api/v1/approvalpolicies?cursor="+list.Next, nil))
	if len(rest.Items) != 1 || rest.Items[0].Spec.Approvers != 3 || !rest.Items[0].CreatedAt.Equal(got.CreatedAt) {
		t.Errorf("got %+v", rest)
	}

	odd := productionPolicy()
	odd.Windows[0].TimeZone, odd.Versions.Range = "Mars/Olympus", "one"
	refused := must[problem](b, 400, b.write("PUT", path, odd))
	if len(refused.Errors) != 2 || refused.Errors[1].Location != "body.windows[0].timeZone" {
		t.Errorf("got %+v", refused)
	}

	must[model.Removed](b, 200, b.write("DELETE", path, nil))
	must[problem](b, 404, b.write("DELETE", path, nil))
	must[problem](b, 404, b.do("GET", b.seen(path), nil))
	anew := must[model.ApprovalPolicy](b, 200, b.write("PUT", path, productionPolicy()))
	if got = must[model.ApprovalPolicy](b, 200, b.do("GET", b.seen(path), nil)); got.Stream != anew.Stream ||
		!got.CreatedAt.Equal(anew.CreatedAt) || got.CreatedAt.Before(set.CreatedAt) {
		t.Errorf("got %+v", got)
	}
}

// TestTwoApprovers proves that one person does not approve for two, that what policies ask of a plan is shown, and that
// a refusal says what changed (R-IP-10, DESIGN D6).
func TestTwoApprovers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec("gateway",
		`insert into gateway.tokens (tenant, id, hash, role) values ('default', 'token-second', sha256('second-token-0123456789'), 'admin')`)
	id := uuid.NewString()
	const subject = "spoke/ops/install-aaaaa"
	p := proposed(id, "install-aaaaa", "tidegauge.v1.0.0", "tidegauge")
	p.Policies, p.ManualReasons, p.Approvers, p.ApprovalSeconds = []string{"production"}, []string{"MajorUpgrade"}, 2,
		3600
	b.fact(events.Resolver, events.KindInstallPlan, id, subject, p)
	path := "/api/v1/installplans/" + id
	read := func() model.InstallPlan { return must[model.InstallPlan](b, 200, b.do("GET", b.seen(path), nil)) }
	got := read()
	if got.MissingApprovals != 2 || got.Approvers != 2 || got.WaitsFor != "Approval" ||
		got.ManualReasons[0] != "MajorUpgrade" || got.Policies[0] != "production" || got.ApprovalSeconds != 3600 {
		t.Errorf("got %+v", got.PlanTerms)
	}
	first := must[model.InstallPlan](b, 200, b.write("POST", path+"/approve", model.ApprovePlan{Digest: p.Digest}))
	if first.Phase != "RequiresApproval" || first.MissingApprovals != 1 || len(first.Approvals) != 1 ||
		first.Approvals[0].By != "token-admin" {
		t.Errorf("got %+v", first)
	}
	if d := time.Until(first.Approvals[0].Expires); d > time.Hour || d < 59*time.Minute {
		t.Errorf("the policy gives an hour, the approval has %s", d)
	}
	same := must[model.InstallPlan](b, 200, b.write("POST", path+"/approve", model.ApprovePlan{Digest: p.Digest}))
	if same.MissingApprovals != 1 || same.Version != first.Version {
		t.Errorf("one person counts twice: %+v", same)
	}
	if got = read(); got.MissingApprovals != 1 || got.Approved != nil || len(got.Approvals) != 1 ||
		got.Approvals[0].By != "token-admin" {
		t.Errorf("got %+v", got.PlanTerms)
	}
	second := must[model.InstallPlan](b, 200, b.as("second-token-0123456789", "POST", path+"/approve",
		model.ApprovePlan{Digest: p.Digest}))
	b.position = second.Position
	if second.Phase != "Installing" || second.MissingApprovals != 0 || len(second.Approvals) != 2 ||
		second.Approved.By != "token-second" {
		t.Errorf("got %+v", second)
	}
	if got = read(); got.Phase != "Installing" || got.WaitsFor != "" || len(got.Approvals) != 2 ||
		!got.Approvals[1].Expires.Equal(got.Approvals[0].Expires) {
		t.Errorf("got %+v", got.PlanTerms)
	}

	next := proposed(uuid.NewString(), "install-bbbbb", "tidegauge.v1.0.0", "tidegauge")
	next.Base.Policy = "another"
	b.fact(events.Resolver, events.KindInstallPlan, next.Plan, "spoke/ops/install-bbbbb", next)
	b.fact(events.Resolver, events.KindInstallPlan, id, subject, events.InstallPlanSuperseded{By: next.Plan})
	if e := must[problem](b, 409, b.write("POST", path+"/approve",
		model.ApprovePlan{Digest: p.Digest})); !strings.Contains(e.Detail, "install-bbbbb") ||
		!strings.Contains(e.Detail, "approval policy changed") {
		t.Errorf("the refusal must name what changed: %v", e)
	}
}

// TestPlanShowsItsWindow: a plan that waits for its window says so, and when it opens.
func TestPlanShowsItsWindow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := uuid.NewString()
	p := proposed(id, "install-aaaaa", "tidegauge.v1.0.0", "tidegauge")
	p.Approval = "Automatic"
	tomorrow := time.Now().UTC().AddDate(0, 0, 2)
	p.Windows = []events.WindowGroup{{Policy: "nights", Windows: []events.Window{
		{Days: []string{tomorrow.Format("Mon")}, Start: "02:00", Minutes: 60, TimeZone: "UTC"},
	}}}
	b.fact(events.Resolver, events.KindInstallPlan, id, "spoke/ops/install-aaaaa", p)
	got := must[model.InstallPlan](b, 200, b.do("GET", b.seen("/api/v1/installplans/"+id), nil))
	want := time.Date(tomorrow.Year(), tomorrow.Month(), tomorrow.Day(), 2, 0, 0, 0, time.UTC)
	if got.Phase != "Installing" || got.WaitsFor != "Window" || got.NextOpening == nil ||
		!got.NextOpening.Equal(want) || got.Windows[0].Policy != "nights" || got.Approvers != 0 {
		t.Errorf("got %s, %+v", got.Phase, got.PlanTerms)
	}
	b.fact(events.Installer, events.KindInstallPlan, id, "spoke/ops/install-aaaaa", events.InstallPlanStarted{Steps: 3})
	if got = must[model.InstallPlan](b, 200, b.do("GET", b.seen("/api/v1/installplans/"+id),
		nil)); got.WaitsFor != "" || got.NextOpening != nil {
		t.Errorf("begun: %+v", got.PlanTerms)
	}
}
