package app_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const subscriptions = "/api/v1/clusters/spoke/namespaces/ops/subscriptions"

func subscribe(name, pkg string) model.CreateSubscription {
	return model.CreateSubscription{Name: name, SubscriptionSpec: model.SubscriptionSpec{
		Package: pkg, Channel: "stable", Catalog: "fleet",
	}}
}

// conditionsOf lists type=status:reason.
func conditionsOf(s model.Subscription) string {
	var out []string
	for _, c := range s.Status.Conditions {
		out = append(out, c.Type+"="+c.Status+":"+c.Reason)
	}
	return strings.Join(out, " ")
}

// proposed is a plan for a subscription as the resolver records it.
func proposed(id, name, csv, subscription string) events.InstallPlanProposed {
	return events.InstallPlanProposed{
		Plan: id, Name: name, Cluster: "spoke", Namespace: "ops", Generation: 1, Component: "tidegauge",
		Approval: "Manual", Digest: "sha256:plan-" + name, Document: "sha256:plan-" + name, Input: "i", Semantics: "1",
		Steps: 3, Base: events.PlanBase{Installed: "a", CRDs: "b", OperatorGroup: "c", Config: "d", Policy: "e"},
		Bundles: []events.PlannedBundle{{
			CSV: csv, Package: "tidegauge", Reason: "ChannelHead",
			Subscriptions: []string{subscription},
		}},
	}
}

// TestSubscriptionLife follows one subscription through the table of R-SUB §4.3 and the conditions of
// R-SUB §4.5 (R-SUB-20, R-SUB-21, R-SUB-30, R-SUB-32, R-SUB-40, R-SUB-42).
func TestSubscriptionLife(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	b.catalog("fleet")
	in := subscribe("tidegauge", "tidegauge")
	in.Approval, in.Config = "Manual", json.RawMessage(`{"env": [{"name": "A", "value": "s3cr3t"}]}`)
	a := b.do("POST", subscriptions, in)
	made := must[model.Subscription](b, 201, a)
	if a.header.Get("Location") != subscriptions+"/tidegauge" || made.Position == "" {
		t.Errorf("headers %v, %+v", a.header, made)
	}
	if n := b.count(
		`select count(*) from eventlog.events where position(convert_to('s3cr3t', 'UTF8') in body) > 0`); n != 0 {
		t.Error("an event holds configuration")
	}
	b.position = made.Position
	step := func(what, state, current, installed, conditions string) model.Subscription {
		t.Helper()
		s := must[model.Subscription](b, 200, b.do("GET", b.seen(subscriptions+"/tidegauge"), nil))
		if s.Status.State != state || s.Status.CurrentCSV != current || s.Status.InstalledCSV != installed ||
			conditionsOf(s) != conditions {
			t.Errorf("%s: state %q, current %q, installed %q, conditions %s", what, s.Status.State, s.Status.CurrentCSV,
				s.Status.InstalledCSV, conditionsOf(s))
		}
		return s
	}
	const healthy = "CatalogSourcesUnhealthy=False:AllCatalogSourcesHealthy"
	s := step("new", "", "", "", healthy)
	if string(s.Spec.Config) != `{"env":[{"name":"A","value":"s3cr3t"}]}` {
		t.Errorf("config %s", s.Spec.Config)
	}
	var bodies int
	if err := b.pool("resolver").QueryRow(t.Context(),
		`select count(*) from gateway_api.bodies where kind = 'subscription-config'`).Scan(&bodies); err != nil ||
		bodies != 1 {
		t.Errorf("the resolver sees %d bodies, %v", bodies, err)
	}

	const subject = "spoke/ops/tidegauge"
	b.exec("resolver",
		`insert into resolver.explanations (tenant, digest, document) values ('default', 'sha256:why', '{"reason": "because"}')`)
	b.fact(events.Resolver, events.KindSubscription, subject, subject,
		events.ResolutionFailed{Reason: "ConstraintsNotSatisfiable", Explanation: "sha256:why"})
	s = step("failed", "", "", "", healthy+" ResolutionFailed=True:ConstraintsNotSatisfiable")
	if s.Status.Explanation == nil || !strings.Contains(string(s.Status.Explanation.Document), "because") ||
		s.Status.Conditions[1].Event == "" {
		t.Errorf("got %+v", s.Status)
	}

	plan := uuid.NewString()
	p := proposed(plan, "install-aaaaa", "tidegauge.v1.1.0", "tidegauge")
	b.exec("resolver",
		`insert into resolver.plan_documents (tenant, plan, digest, document, effect, properties) values ('default', $1, $2, '{"steps":[]}', '', '{}')`, plan, p.Document)
	b.fact(events.Resolver, events.KindInstallPlan, plan, "spoke/ops/install-aaaaa", p)
	b.fact(events.Resolver, events.KindSubscription, subject, subject,
		events.ResolutionSucceeded{Outcome: "Planned", CSV: "tidegauge.v1.1.0", Plan: plan})
	s = step("planned", "UpgradePending", "tidegauge.v1.1.0", "", healthy+" InstallPlanPending=True:RequiresApproval")
	if s.Status.InstallPlan == nil || s.Status.InstallPlan.ID != plan {
		t.Errorf("got %+v", s.Status)
	}

	approved := must[model.InstallPlan](b, 200, b.do("POST", "/api/v1/installplans/"+plan+"/approve",
		model.ApprovePlan{Digest: p.Digest}))
	b.position = approved.Position
	step("approved", "UpgradePending", "tidegauge.v1.1.0", "",
		healthy+" InstallPlanPending=True:InstallPlanNotYetReconciled")

	b.fact(events.Installer, events.KindInstallPlan, plan, "spoke/ops/install-aaaaa",
		events.InstallPlanStarted{Steps: 3})
	const csv = "spoke/ops/tidegauge.v1.1.0"
	b.fact(events.Installer, events.KindCSV, csv, csv, events.CSVPhaseChanged{
		Cluster: "spoke", Namespace: "ops",
		Name: "tidegauge.v1.1.0", Package: "tidegauge", Phase: "Pending",
	})
	s = step("the CSV exists", "AtLatestKnown", "tidegauge.v1.1.0", "tidegauge.v1.1.0",
		healthy+" InstallPlanPending=True:Installing")
	if s.Status.Phase != "Pending" {
		t.Errorf("health is read from the CSV: %+v", s.Status)
	}
	b.fact(events.Installer, events.KindInstallPlan, plan, "spoke/ops/install-aaaaa",
		events.InstallPlanFailed{Step: 2, Reason: "Invalid", StepLog: "sha256:log"})
	step("the plan failed", "AtLatestKnown", "tidegauge.v1.1.0", "tidegauge.v1.1.0",
		healthy+" InstallPlanFailed=True:Invalid")

	fast := in.SubscriptionSpec
	fast.Channel = "fast"
	b.position = must[model.Subscription](b, 200, b.do("PUT", subscriptions+"/tidegauge", fast)).Position
	const deprecated = " ChannelDeprecated=True:Deprecated Deprecated=True:Deprecated" // R-SUB-41
	s = step("the channel is deprecated", "AtLatestKnown", "tidegauge.v1.1.0", "tidegauge.v1.1.0",
		healthy+" InstallPlanFailed=True:Invalid"+deprecated)
	if m := s.Status.Conditions[2].Message; m != "olm.channel/fast: fast is over" {
		t.Errorf("got %q", m)
	}
	b.position = must[model.Subscription](b, 200, b.do("PUT", subscriptions+"/tidegauge", in.SubscriptionSpec)).Position

	b.broken("fleet", events.CatalogLoadFailed{Reason: "InvalidCatalog"})
	step("the catalog broke", "AtLatestKnown", "tidegauge.v1.1.0", "tidegauge.v1.1.0",
		"CatalogSourcesUnhealthy=True:UnhealthyCatalogSourceFound InstallPlanFailed=True:Invalid")

	gone := must[model.Removed](b, 200, b.do("DELETE", subscriptions+"/tidegauge", nil))
	b.position = gone.Position
	must[problem](b, 404, b.do("GET", b.seen(subscriptions+"/tidegauge"), nil))
	if list := must[struct{ Items []model.Operator }](b, 200, b.do("GET", b.seen("/api/v1/operators"), nil)); len(
		list.Items) != 1 {
		t.Errorf("deleting a subscription leaves the operator (R-SUB-32): %+v", list)
	}
	// A new subscription finds what is installed.
	must[model.Subscription](b, 201, b.do("POST", subscriptions, subscribe("tidegauge", "tidegauge")))
	b.fact(events.Resolver, events.KindSubscription, subject, subject,
		events.ResolutionSucceeded{Outcome: "AtLatestKnown", CSV: "tidegauge.v1.1.0"})
	step("subscribed again", "AtLatestKnown", "tidegauge.v1.1.0", "tidegauge.v1.1.0",
		"CatalogSourcesUnhealthy=True:UnhealthyCatalogSourceFound")
}

// TestRollback: a subscription goes back to what was installed before, by default to the last, and the answer names
// what there was; the intent is shown until the subscription is changed (P12).
func TestRollback(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	in := subscribe("tidegauge", "tidegauge")
	must[model.Subscription](b, 201, b.do("POST", subscriptions, in))
	const subject, rollback = "spoke/ops/tidegauge", subscriptions + "/tidegauge/rollback"
	refused := func(status int, body any, words string) {
		t.Helper()
		if p := must[problem](b, status, b.do("POST", rollback, body)); !strings.Contains(p.Detail, words) {
			t.Errorf("got %q, want %q in it", p.Detail, words)
		}
	}
	installed := func(csv, replaces, reason string) {
		t.Helper()
		plan := uuid.NewString()
		p := proposed(plan, "install-"+plan[:5], csv, "tidegauge")
		p.Approval, p.Bundles[0].Replaces, p.Bundles[0].Reason = "Automatic", replaces, reason
		b.fact(events.Resolver, events.KindInstallPlan, plan, "spoke/ops/"+p.Name, p)
		b.fact(events.Installer, events.KindInstallPlan, plan, "spoke/ops/"+p.Name, events.InstallPlanStarted{Steps: 1},
			events.InstallPlanFinished{Steps: 1})
		natural := "spoke/ops/" + csv
		b.fact(events.Installer, events.KindCSV, natural, natural,
			events.CSVPhaseChanged{
				Cluster: "spoke", Namespace: "ops", Name: csv, Package: "tidegauge",
				Phase: "Succeeded",
			})
		b.fact(events.Resolver, events.KindSubscription, subject, subject,
			events.ResolutionSucceeded{Outcome: "AtLatestKnown", CSV: csv})
		must[model.Subscription](b, 200, b.do("GET", b.seen(subscriptions+"/tidegauge"), nil))
		must[struct{ Items []model.InstallPlan }](b, 200, b.do("GET", b.seen("/api/v1/installplans"), nil))
	}
	refused(422, model.RollBack{}, "has nothing installed")
	installed("tidegauge.v1", "", "ChannelHead")
	refused(422, model.RollBack{}, "nothing was installed before tidegauge.v1")
	installed("tidegauge.v2", "tidegauge.v1", "NextStep")
	installed("tidegauge.v3", "tidegauge.v2", "NextStep")
	refused(422, model.RollBack{To: "tidegauge.v9"}, "there were: tidegauge.v2, tidegauge.v1")

	s := must[model.Subscription](b, 200, b.do("POST", rollback, model.RollBack{}))
	want := model.Rollback{From: "tidegauge.v3", To: "tidegauge.v2"}
	if s.Status.Rollback == nil || *s.Status.Rollback != want {
		t.Errorf("got %+v, want %+v", s.Status.Rollback, want)
	}
	b.position = s.Position
	if s = must[model.Subscription](b, 200, b.do("GET", b.seen(subscriptions+"/tidegauge"),
		nil)); s.Status.Rollback == nil || *s.Status.Rollback != want {
		t.Errorf("it shows %+v, want %+v", s.Status.Rollback, want)
	}
	installed("tidegauge.v2", "tidegauge.v3", "Rollback")
	s = must[model.Subscription](b, 200, b.do("POST", rollback, model.RollBack{}))
	if want = (model.Rollback{From: "tidegauge.v2", To: "tidegauge.v1"}); s.Status.Rollback == nil ||
		*s.Status.Rollback != want {
		t.Errorf("from where a rollback led one goes further back: got %+v, want %+v", s.Status.Rollback, want)
	}
	b.position = must[model.Subscription](b, 200, b.do("PUT", subscriptions+"/tidegauge", in.SubscriptionSpec)).Position
	if s = must[model.Subscription](b, 200, b.do("GET", b.seen(subscriptions+"/tidegauge"),
		nil)); s.Status.Rollback != nil {
		t.Errorf("after a change it shows %+v", s.Status.Rollback)
	}
	must[problem](b, 404, b.do("POST", subscriptions+"/nobody/rollback", model.RollBack{}))
}

// TestSubscriptionChecks proves "Gateway checks" of DESIGN's settled details.
func TestSubscriptionChecks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	b.catalog("fleet")
	loading := must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs",
		model.AddCatalog{Name: "loading", Source: model.CatalogSource{Type: "directory", Path: "/x"}}))
	_ = loading.Stream
	spec := func(change func(*model.CreateSubscription)) model.CreateSubscription {
		s := subscribe("s", "tidegauge")
		change(&s)
		return s
	}
	cases := []struct {
		name     string
		query    string
		body     model.CreateSubscription
		status   int
		location string
		says     string
	}{
		{
			"unknown package", "", spec(func(s *model.CreateSubscription) { s.Package = "none" }), 422, "body.package",
			"buoy, tidegauge",
		},
		{
			"unknown channel", "", spec(func(s *model.CreateSubscription) { s.Channel = "none" }), 422, "body.channel",
			"fast, stable",
		},
		{
			"unknown starting CSV", "", spec(func(s *model.CreateSubscription) { s.StartingCSV = "none" }), 422,
			"body.startingCSV", "tidegauge.v1.0.0, tidegauge.v1.1.0",
		},
		{
			"unknown package, lenient", "?validate=lenient",
			spec(func(s *model.CreateSubscription) { s.Name, s.Package = "a", "none" }), 201, "", "",
		},
		{
			"unknown catalog", "", spec(func(s *model.CreateSubscription) { s.Name, s.Catalog = "b", "none" }), 201, "",
			`no catalog "none" is known`,
		},
		{
			"unready catalog", "", spec(func(s *model.CreateSubscription) { s.Name, s.Catalog = "c", "loading" }), 201,
			"", `catalog "loading" is not ready`,
		},
		{
			"unknown catalog, strict", "?validate=strict",
			spec(func(s *model.CreateSubscription) { s.Catalog = "none" }), 422, "body.catalog", "none",
		},
		{
			"unready catalog, strict", "?validate=strict",
			spec(func(s *model.CreateSubscription) { s.Catalog = "loading" }), 422, "body.catalog", "not ready",
		},
		{
			"any channel", "?validate=strict", spec(func(s *model.CreateSubscription) { s.Name, s.Channel = "d", "" }),
			201, "", "",
		},
		{
			"the hub's under the namespace of OLM's YAML", "?validate=strict",
			spec(func(s *model.CreateSubscription) { s.Name, s.CatalogNamespace = "e", "olm" }), 201, "", "",
		},
		{
			"unknown key of config", "",
			spec(func(s *model.CreateSubscription) { s.Config = json.RawMessage(`{"enf": []}`) }), 400, "body.config",
			"enf",
		},
		{"quantity of config that is none", "", spec(func(s *model.CreateSubscription) {
			s.Config = json.RawMessage(`{"resources": {"requests": {"cpu": "lots"}}}`)
		}), 400, "body.config.resources", "quantities"},
		{"the same as a dry run", "?dryRun=true", spec(func(s *model.CreateSubscription) {
			s.Config = json.RawMessage(`{"resources": {"requests": {"cpu": "lots"}}}`)
		}), 400, "body.config.resources", "quantities"},
		{"the same leniently", "?validate=lenient", spec(func(s *model.CreateSubscription) {
			s.Config = json.RawMessage(`{"resources": {"requests": {"cpu": "lots"}}}`)
		}), 400, "body.config.resources", "quantities"},
		{"toleration of config", "", spec(func(s *model.CreateSubscription) {
			s.Config = json.RawMessage(`{"tolerations": [{"key": "a", "operator": "Is"}]}`)
		}), 400, "body.config.tolerations[0].operator", "Exists"},
		{
			"config that is no object", "",
			spec(func(s *model.CreateSubscription) { s.Config = json.RawMessage(`[]`) }), 400, "body.config", "object",
		},
	}
	for _, c := range cases {
		a := b.do("POST", subscriptions+c.query, c.body)
		if c.status == http.StatusCreated {
			warnings := strings.Join(must[model.Subscription](b, 201, a).Warnings, " ")
			if (warnings != "") != (c.says != "") || !strings.Contains(warnings, c.says) {
				t.Errorf("%s: warns of %q, want %q", c.name, warnings, c.says)
			}
			continue
		}
		p := must[problem](b, c.status, a)
		if len(p.Errors) != 1 || p.Errors[0].Location != c.location || p.Errors[0].Rule == "" ||
			!strings.Contains(p.Detail, c.says) {
			t.Errorf("%s: %v", c.name, p)
		}
	}
	if p := must[problem](b, 404, b.do("POST", "/api/v1/clusters/none/namespaces/ops/subscriptions",
		subscribe("s", "tidegauge"))); !strings.Contains(p.Detail, `no cluster "none"`) {
		t.Errorf("got %v", p)
	}
	b.position = must[model.Subscription](b, 201, b.do("POST", subscriptions, subscribe("z", "tidegauge"))).Position
	missing := must[model.Subscription](b, 200, b.do("GET", b.seen(subscriptions+"/b"), nil))
	if conditionsOf(missing) != "CatalogSourcesUnhealthy=True:UnhealthyCatalogSourceFound" ||
		!strings.Contains(missing.Status.Conditions[0].Message, "missing") {
		t.Errorf("an unknown catalog is shown as a condition: %+v", missing.Status)
	}
	changed := subscribe("z", "tidegauge").SubscriptionSpec
	changed.Channel = "fast"
	must[model.Subscription](b, 200, b.do("PUT", subscriptions+"/z", changed))
	changed.Package = "buoy"
	must[problem](b, 400, b.do("PUT", subscriptions+"/z", changed))
	must[problem](b, 409, b.do("POST", subscriptions, subscribe("z", "tidegauge")))

	fleet := must[struct {
		Items []model.Subscription
		Next  string
	}](b, 200, b.do("GET", "/api/v1/subscriptions?package=tidegauge&limit=2", nil))
	if len(fleet.Items) != 2 || fleet.Next == "" {
		t.Errorf("got %+v", fleet)
	}
	rest := must[struct {
		Items []model.Subscription
		Next  string
	}](b, 200, b.do("GET", "/api/v1/subscriptions?package=tidegauge&cursor="+fleet.Next, nil))
	if len(rest.Items) != 3 || rest.Next != "" {
		t.Errorf("got %d and %q", len(rest.Items), rest.Next)
	}
}

// TestSubscriptionOfAPlanThatEnds proves R-SUB-21: references are cleared with the plan.
func TestSubscriptionOfAPlanThatEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	b.catalog("fleet")
	must[model.Subscription](b, 201, b.do("POST", subscriptions, subscribe("tidegauge", "tidegauge")))
	first, second := uuid.NewString(), uuid.NewString()
	b.fact(events.Resolver, events.KindInstallPlan, first, "spoke/ops/install-aaaaa",
		proposed(first, "install-aaaaa", "tidegauge.v1.0.0", "tidegauge"))
	b.fact(events.Resolver, events.KindInstallPlan, second, "spoke/ops/install-bbbbb",
		proposed(second, "install-bbbbb", "tidegauge.v1.1.0", "tidegauge"))
	b.fact(events.Resolver, events.KindInstallPlan, first, "spoke/ops/install-aaaaa",
		events.InstallPlanSuperseded{By: second})
	s := must[model.Subscription](b, 200, b.do("GET", b.seen(subscriptions+"/tidegauge"), nil))
	if s.Status.InstallPlan == nil || s.Status.InstallPlan.ID != second || s.Status.CurrentCSV != "tidegauge.v1.1.0" {
		t.Errorf("the newer plan counts: %+v", s.Status)
	}
	rejected := must[model.InstallPlan](b, 200, b.do("POST", "/api/v1/installplans/"+second+"/reject",
		model.RejectPlan{Digest: "sha256:plan-install-bbbbb"}))
	b.position = rejected.Position
	s = must[model.Subscription](b, 200, b.do("GET", b.seen(subscriptions+"/tidegauge"), nil))
	if s.Status.InstallPlan != nil || s.Status.CurrentCSV != "" || s.Status.State != "" ||
		conditionsOf(
			s) != "CatalogSourcesUnhealthy=False:AllCatalogSourcesHealthy "+
			"InstallPlanMissing=True:ReferencedInstallPlanNotFound" {
		t.Errorf("a rejected plan leaves no reference: %+v", s.Status)
	}
}

// TestMountOfAnUnknownVolume: a mount that names no volume of the configuration is taken, since the operator may have
// the volume, and warned of, in a dry run as well (R-SUB §4.2).
func TestMountOfAnUnknownVolume(t *testing.T) {
	t.Parallel()
	b, _ := setupOracle(t)
	b.cluster("spoke")
	in := subscribe("gauge", "gauge")
	in.Config = json.RawMessage(
		`{"volumes": [{"name": "a"}], "volumeMounts": [{"name": "a", "mountPath": "/a"}, {"name": "certs", "mountPath": "/c"}]}`)
	const want = `config.volumeMounts[1].name is "certs"`
	for what, got := range map[string][]string{
		"dry run": must[model.Preview](b, 200, b.do("POST", subscriptions+"?dryRun=true", in)).Warnings,
		"create":  must[model.Subscription](b, 201, b.do("POST", subscriptions, in)).Warnings,
		"change":  must[model.Subscription](b, 200, b.do("PUT", subscriptions+"/gauge", in.Intent())).Warnings,
	} {
		if text := strings.Join(got, " "); !strings.Contains(text, want) || strings.Contains(text, "volumeMounts[0]") {
			t.Errorf("%s: warned of %q, want %q", what, got, want)
		}
	}
	in.Config = json.RawMessage(`{"volumes": [{"name": "a"}], "volumeMounts": [{"name": "a", "mountPath": "/a"}]}`)
	if s := must[model.Subscription](b, 200, b.do("PUT", subscriptions+"/gauge", in.Intent())); strings.Contains(
		strings.Join(s.Warnings, " "), "volumeMounts") {
		t.Errorf("a mount of its own volume is warned of: %q", s.Warnings)
	}
}

// A viewer reads which variables a subscription sets, and not their values; an administrator reads both.
func TestViewersReadNoValues(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	b.exec("gateway", `insert into gateway.tokens (tenant, id, hash, role)
		values ('default', 'token-viewer', sha256('viewer-token-0123456789'), 'viewer')`)
	in := subscribe("etcd", "etcd")
	in.Config = json.RawMessage(`{"env": [{"name": "PASSWORD", "value": "s3cr3t"}], "nodeSelector": {"a": "b"}}`)
	a := b.do("POST", subscriptions, in)
	if a.status != 201 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	at := subscriptions + "/etcd?minPosition=" + a.header.Get("Chandler-Position")
	for bearer, wants := range map[string]bool{"viewer-token-0123456789": false, token: true} {
		for _, get := range []string{at, subscriptions} {
			a := b.as(bearer, "GET", get, nil)
			if a.status != 200 || strings.Contains(string(a.body), "s3cr3t") != (wants && get == at) {
				t.Errorf("%s: status %d, %s", get, a.status, a.body)
			}
			if get == at && !strings.Contains(string(a.body), "PASSWORD") {
				t.Errorf("the name of the variable is missing: %s", a.body)
			}
		}
	}
}
