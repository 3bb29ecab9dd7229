package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestInstallPlanApproval proves R-IP-10 and DESIGN D6: an approval names digest and base, and expires.
func TestInstallPlanApproval(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := uuid.NewString()
	p := proposed(id, "install-aaaaa", "tidegauge.v1.0.0", "tidegauge")
	const subject = "spoke/ops/install-aaaaa"
	b.exec("resolver",
		`insert into resolver.plan_documents (tenant, plan, digest, document, effect, properties) values ('default', $1, $2, '{"steps":[{"kind":"CustomResourceDefinition"}]}', '', '{}')`, id, p.Document)
	b.fact(events.Resolver, events.KindInstallPlan, id, subject, p)
	path := "/api/v1/installplans/" + id
	got := must[model.InstallPlan](b, 200, b.do("GET", b.seen(path), nil))
	if got.Phase != "RequiresApproval" || !strings.Contains(string(got.Document), "CustomResourceDefinition") ||
		len(got.Bundles) != 1 || got.Bundles[0].Reason != "ChannelHead" {
		t.Errorf("got %+v", got)
	}

	must[problem](b, 409, b.do("POST", path+"/approve", model.ApprovePlan{Digest: "sha256:other"}))
	other := model.PlanBase(p.Base)
	other.CRDs = "moved"
	if e := must[problem](b, 409, b.do("POST", path+"/approve",
		model.ApprovePlan{Digest: p.Digest, Base: &other})); !strings.Contains(e.Detail, "CRDs") {
		t.Errorf("the refusal must name what changed: %v", e)
	}
	far := time.Now().AddDate(1, 0, 0)
	must[problem](b, 400, b.do("POST", path+"/approve", model.ApprovePlan{Digest: p.Digest, Expires: &far}))

	soon := time.Now().Add(300 * time.Millisecond)
	approved := must[model.InstallPlan](b, 200, b.do("POST", path+"/approve",
		model.ApprovePlan{Digest: p.Digest, Expires: &soon}))
	if approved.Phase != "Installing" || approved.Approved == nil || approved.Approved.By != "token-admin" {
		t.Errorf("got %+v", approved)
	}
	b.until(func() bool { // an approval that expired before the first step is void
		got = must[model.InstallPlan](b, 200, b.do("GET", path, nil))
		return got.Phase == "RequiresApproval" && time.Now().After(soon)
	})
	waiting := must[struct{ Items []model.InstallPlan }](
		b, 200, b.do("GET", "/api/v1/installplans?phase=RequiresApproval&cluster=spoke&namespace=ops", nil))
	if len(waiting.Items) != 1 {
		t.Errorf("got %+v", waiting)
	}

	again := must[model.InstallPlan](b, 200, b.do("POST", path+"/approve", model.ApprovePlan{Digest: p.Digest}))
	if d := time.Until(again.Approved.Expires); d < 23*time.Hour || d > 24*time.Hour {
		t.Errorf("an approval lasts 24 h, not %s", d)
	}
	b.fact(events.Installer, events.KindInstallPlan, id, subject,
		events.InstallPlanBlocked{Class: "transient", Reason: "ClusterUnreachable"})
	b.exec("installer",
		`insert into installer.messages (tenant, subject, kind, message) values ('default', $1, 'installplan', 'no route to host')`, subject)
	got = must[model.InstallPlan](b, 200, b.do("GET", b.seen(path), nil))
	if got.Blocked == nil || got.Blocked.Reason != "ClusterUnreachable" || got.Message != "no route to host" {
		t.Errorf("got %+v", got)
	}
	b.fact(events.Installer, events.KindInstallPlan, id, subject, events.InstallPlanStarted{Steps: 3})
	must[problem](b, 409, b.do("POST", path+"/reject", model.RejectPlan{}))
	b.exec("installer",
		`insert into installer.step_logs (tenant, digest, body) values ('default', 'sha256:log', '{"done": 3}')`)
	b.fact(events.Installer, events.KindInstallPlan, id, subject,
		events.InstallPlanFinished{Steps: 3, StepLog: "sha256:log"})
	got = must[model.InstallPlan](b, 200, b.do("GET", b.seen(path), nil))
	if got.Phase != "Complete" || got.Blocked != nil || got.EndedAt == nil ||
		!strings.Contains(string(got.StepLog), "done") {
		t.Errorf("got %+v", got)
	}
	must[problem](b, 404, b.do("POST", "/api/v1/installplans/"+uuid.NewString()+"/approve",
		model.ApprovePlan{Digest: "x"}))
	must[problem](b, 404, b.do("GET", "/api/v1/installplans/"+uuid.NewString(), nil))
}

func TestInstallPlansAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 5 {
		id, name := uuid.NewString(), fmt.Sprintf("install-%05d", i)
		b.fact(events.Resolver, events.KindInstallPlan, id, "spoke/ops/"+name,
			proposed(id, name, "tidegauge.v1.0.0", "tidegauge"))
	}
	var names []string
	path := b.seen("/api/v1/installplans") + "&limit=2"
	for path != "" {
		page := must[struct {
			Items []model.InstallPlan
			Next  string
		}](b, 200, b.do("GET", path, nil))
		for _, p := range page.Items {
			names = append(names, p.Name)
		}
		if path = ""; page.Next != "" {
			path = "/api/v1/installplans?limit=2&cursor=" + page.Next
		}
	}
	if got := strings.Join(names, " "); got != "install-00004 install-00003 install-00002 install-00001 install-00000" {
		t.Errorf("got %s", got)
	}
}

// TestOperators proves R-CSV-5: phase, reason and the newest 20 transitions.
func TestOperators(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const subject = "spoke/ops/tidegauge.v1.0.0"
	for i := range 25 {
		b.fact(events.Installer, events.KindCSV, subject, subject, events.CSVPhaseChanged{
			Cluster: "spoke", Namespace: "ops", Name: "tidegauge.v1.0.0", Package: "tidegauge", Version: "1.0.0",
			Phase: []string{"Installing", "Succeeded"}[i%2], Reason: fmt.Sprintf("R%d", i),
		})
	}
	b.exec("installer",
		`insert into installer.messages (tenant, subject, kind, message) values ('default', $1, 'csv', 'waiting')`,
		subject)
	const path = "/api/v1/clusters/spoke/namespaces/ops/operators/tidegauge.v1.0.0"
	o := must[model.Operator](b, 200, b.do("GET", b.seen(path), nil))
	if o.Phase != "Installing" || o.Reason != "R24" || len(o.History) != 20 || o.History[0].Reason != "R5" ||
		o.History[19].Reason != "R24" || o.Message != "waiting" {
		t.Errorf("got %+v", o)
	}
	b.fact(events.Installer, events.KindCSV, subject, subject, events.CSVFlapping{Changes: 25, Window: 60})
	list := must[struct{ Items []model.Operator }](b, 200,
		b.do("GET", b.seen("/api/v1/operators")+"&package=tidegauge&phase=Installing&cluster=spoke&namespace=ops", nil))
	if len(list.Items) != 1 || !list.Items[0].Flapping {
		t.Errorf("got %+v", list)
	}
	b.fact(events.Installer, events.KindCSV, subject, subject, events.CSVRemoved{Reason: "Replaced"})
	must[problem](b, 404, b.do("GET", b.seen(path), nil))
	b.fact(events.Installer, events.KindCSV, subject, subject,
		events.CSVPhaseChanged{Cluster: "spoke", Namespace: "ops", Name: "tidegauge.v1.0.0", Phase: "Pending"})
	if o := must[model.Operator](b, 200, b.do("GET", b.seen(path), nil)); len(o.History) != 1 {
		t.Errorf("a new life has its own history: %+v", o.History)
	}
}

func TestOperatorGroupLife(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	const path = "/api/v1/clusters/spoke/namespaces/ops/operatorgroups"
	in := model.CreateOperatorGroup{Name: "coast", OperatorGroupSpec: model.OperatorGroupSpec{
		TargetNamespaces: []string{"b", "a"},
	}}
	made := must[model.OperatorGroup](b, 201, b.do("POST", path, in))
	if strings.Join(made.Spec.TargetNamespaces, " ") != "a b" {
		t.Errorf("got %+v", made)
	}
	must[problem](b, 409, b.do("POST", path, in))
	must[problem](b, 404, b.do("POST", "/api/v1/clusters/none/namespaces/ops/operatorgroups", in))
	in.Name = "second"
	b.position = must[model.OperatorGroup](b, 201, b.do("POST", path, in)).Position
	got := must[model.OperatorGroup](b, 200, b.do("GET", b.seen(path+"/coast"), nil))
	if len(got.Conditions) != 1 || got.Conditions[0].Type != "MultipleOperatorGroup" || got.Conditions[0].Event == "" {
		t.Errorf("two groups in a namespace are told (R-OG-2): %+v", got)
	}
	b.position = must[model.Removed](b, 200, b.do("DELETE", path+"/second", nil)).Position
	list := must[struct{ Items []model.OperatorGroup }](b, 200, b.do("GET", b.seen(path), nil))
	if len(list.Items) != 1 || len(list.Items[0].Conditions) != 0 {
		t.Errorf("got %+v", list)
	}
	b.position = must[model.OperatorGroup](b, 200, b.do("PUT", path+"/coast",
		model.OperatorGroupSpec{Colocation: "shared"})).Position
	all := must[struct{ Items []model.OperatorGroup }](b, 200,
		b.do("GET", b.seen("/api/v1/operatorgroups")+"&cluster=spoke", nil))
	if len(all.Items) != 1 || all.Items[0].Spec.Colocation != "shared" || len(all.Items[0].Spec.TargetNamespaces) != 0 {
		t.Errorf("got %+v", all)
	}
}

func TestEffects(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	if e := must[model.Effects](b, 200, b.do("GET", "/api/v1/effects", nil)); e.Stopped || e.Epoch != 1 {
		t.Errorf("got %+v", e)
	}
	stopped := must[model.Effects](b, 200, b.do("POST", "/api/v1/effects",
		model.EffectsRequest{Action: "stop", Cluster: "spoke"}))
	if !stopped.Stopped || stopped.Scope != "cluster/spoke" || stopped.Position == "" {
		t.Errorf("got %+v", stopped)
	}
	if e := must[model.Effects](b, 200, b.do("GET", "/api/v1/effects", nil)); e.Stopped {
		t.Errorf("one cluster is not the fleet: %+v", e)
	}
	must[problem](b, 400, b.do("POST", "/api/v1/effects", model.EffectsRequest{Action: "resume", Cluster: "spoke"}))
	if e := must[model.Effects](b, 200, b.do("POST", "/api/v1/effects",
		model.EffectsRequest{Action: "resume", Cluster: "spoke", Epoch: 1})); e.Stopped {
		t.Errorf("got %+v", e)
	}
	must[problem](b, 404, b.do("POST", "/api/v1/effects", model.EffectsRequest{Action: "stop", Cluster: "none"}))

	// The record itself has lost commits: only the epoch that was raised resumes.
	b.exec("installer", `select eventlog.check_epoch(1, 1000000, 'cluster spoke')`)
	lost := must[model.Effects](b, 200, b.do("GET", "/api/v1/effects", nil))
	if !lost.Stopped || lost.Reason != "RecordLostCommits" || lost.Epoch != 2 || lost.Detail == "" {
		t.Errorf("got %+v", lost)
	}
	stops := func() int {
		return strings.Count(string(b.do("GET", "/api/v1/events?type=access.effects-stopped.v1&subject=fleet",
			nil).body), "RecordLostCommits")
	}
	b.until(func() bool { return stops() == 1 }) // it becomes part of the story
	must[problem](b, 409, b.do("POST", "/api/v1/effects", model.EffectsRequest{Action: "resume", Epoch: 1}))
	if e := must[model.Effects](b, 200, b.do("POST", "/api/v1/effects",
		model.EffectsRequest{Action: "resume", Epoch: 2})); e.Stopped {
		t.Errorf("got %+v", e)
	}
	if n := stops(); n != 1 {
		t.Errorf("one loss is told %d times", n)
	}
}
