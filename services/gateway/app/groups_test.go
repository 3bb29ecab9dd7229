package app_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestOperatorGroupInItsCluster: R-OG §7.1, R-OG-20: targets, provided APIs and conditions as the cluster tells them,
// each condition with its sentence and the event that set it.
func TestOperatorGroupInItsCluster(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	const path, subject = "/api/v1/clusters/spoke/namespaces/ops/operatorgroups", "spoke/ops/coast"
	in := model.CreateOperatorGroup{Name: "coast", OperatorGroupSpec: model.OperatorGroupSpec{
		Selector: events.LabelSelector{MatchLabels: map[string]string{"sea": "north"}},
	}}
	made := must[model.OperatorGroup](b, 201, b.do("POST", path, in))
	if made.Targets == nil || len(made.Targets) != 0 || made.Spec.Selector.MatchLabels["sea"] != "north" {
		t.Errorf("made %+v", made)
	}
	b.position = made.Position
	b.fact(events.Installer, events.KindOperatorGroup, subject, subject, events.OperatorGroupObserved{
		Targets: []string{"a", "b"}, ProvidedAPIs: []string{"Gauge.v1.sea.test"},
		Conditions: []string{protocol.GroupServiceAccount},
	})
	b.exec("installer",
		`insert into installer.messages (tenant, subject, kind, message) values ('default', $1, 'operatorgroup', 'no such account')`,
		subject+"/"+protocol.GroupServiceAccount)
	get := func() model.OperatorGroup {
		return must[model.OperatorGroup](b, 200, b.do("GET", b.seen(path+"/coast"), nil))
	}
	got := get()
	if !slices.Equal(got.Targets, []string{"a", "b"}) ||
		!slices.Equal(got.ProvidedAPIs, []string{"Gauge.v1.sea.test"}) || len(got.Conditions) != 1 {
		t.Fatalf("got %+v", got)
	}
	if c := got.Conditions[0]; c.Reason != "ServiceAccountNotFound" || c.Message != "no such account" ||
		c.Event == "" || c.Status != "True" {
		t.Errorf("condition %+v", c)
	}
	// Other targets keep the condition's event; the end of the condition takes it away.
	event := got.Conditions[0].Event
	b.fact(events.Installer, events.KindOperatorGroup, subject, subject,
		events.OperatorGroupObserved{Targets: []string{"c"}, Conditions: []string{protocol.GroupServiceAccount}})
	if got = get(); got.Conditions[0].Event != event || !slices.Equal(got.Targets, []string{"c"}) {
		t.Errorf("got %+v", got)
	}
	b.fact(events.Installer, events.KindOperatorGroup, subject, subject,
		events.OperatorGroupObserved{Targets: []string{"c"}})
	if got = get(); len(got.Conditions) != 0 {
		t.Errorf("got %+v", got)
	}
	// What an intent says of targets holds at once; what a selector chooses stands until the cluster has told.
	b.position = must[model.OperatorGroup](b, 200, b.do("PUT", path+"/coast",
		model.OperatorGroupSpec{TargetNamespaces: []string{"d"}})).Position
	if got = get(); !slices.Equal(got.Targets, []string{"d"}) {
		t.Errorf("targets %v", got.Targets)
	}
	b.position = must[model.OperatorGroup](b, 200, b.do("PUT", path+"/coast", in.OperatorGroupSpec)).Position
	if got = get(); !slices.Equal(got.Targets, []string{"d"}) {
		t.Errorf("targets %v", got.Targets)
	}
}

// TestGlobalGroup: R-OG-5: a lone subscription in a global namespace gets the group that OLM has there, once, by the
// configuration; where people brought one, and elsewhere, none is made.
func TestGlobalGroup(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	b.cluster("other")
	subscribe := func(cluster, ns, name string) model.Subscription {
		t.Helper()
		s := must[model.Subscription](b, 201, b.do("POST", "/api/v1/clusters/"+cluster+"/namespaces/"+ns+
			"/subscriptions",
			model.CreateSubscription{Name: name, SubscriptionSpec: model.SubscriptionSpec{
				Package: name, Catalog: "fleet",
			}}))
		b.position = s.Position
		return s
	}
	groups := func(cluster, ns string) (names []string) {
		t.Helper()
		list := must[struct{ Items []model.OperatorGroup }](
			b, 200, b.do("GET", b.seen("/api/v1/clusters/"+cluster+"/namespaces/"+ns+"/operatorgroups"), nil))
		for _, g := range list.Items {
			names = append(names, g.Name)
			if len(g.Spec.TargetNamespaces) > 0 {
				t.Errorf("group %s of %s targets %v", g.Name, ns, g.Spec.TargetNamespaces)
			}
		}
		return names
	}
	b.position = must[model.OperatorGroup](b, 201,
		b.do("POST", "/api/v1/clusters/spoke/namespaces/operators/operatorgroups",
			model.CreateOperatorGroup{Name: "mine"})).Position
	for _, c := range []struct {
		cluster, ns string
		want        []string
		warned      bool
	}{
		{"spoke", "openshift-operators", []string{"global-operators"}, true},
		{"spoke", "operators", []string{"mine"}, false},
		{"spoke", "elsewhere", nil, false},
		{"other", "operators", []string{"global-operators"}, true},
	} {
		for i, name := range []string{"tide", "buoy"} {
			s := subscribe(c.cluster, c.ns, name)
			if said := slices.ContainsFunc(s.Warnings,
				func(w string) bool {
					return strings.Contains(
						w, "global-operators was made in namespace "+c.ns)
				}); said != (c.warned && i == 0) {
				t.Errorf("subscription %d of %s in %s is answered with %q", i+1, c.ns, c.cluster, s.Warnings)
			}
		}
		if got := groups(c.cluster, c.ns); !slices.Equal(got, c.want) {
			t.Errorf("namespace %s of %s has the groups %v, want %v", c.ns, c.cluster, got, c.want)
		}
	}
	var actor string
	if err := b.pool("gateway").QueryRow(t.Context(),
		`select convert_from(body, 'utf8')::jsonb ->> 'authid' from eventlog.events where type = 'operatorgroup.created.v1'
		and convert_from(body, 'utf8')::jsonb ->> 'subject' = 'spoke/openshift-operators/global-operators'`).Scan(&actor); err != nil {
		t.Fatal(err)
	}
	if actor != model.ActorConfiguration {
		t.Errorf("the group was made by %q", actor)
	}
	// What is refused leaves nothing behind.
	if r := b.do("POST", "/api/v1/clusters/spoke/namespaces/openshift-operators/subscriptions",
		model.CreateSubscription{Name: "tide", SubscriptionSpec: model.SubscriptionSpec{
			Package: "tide", Catalog: "fleet",
		}}); r.status != 409 {
		t.Errorf("a second one of its name: %d", r.status)
	}
}

// TestGlobalGroupIsForeseen: a dry run of a lone subscription in a global namespace supposes the group that comes with
// it, and applied by its id makes both, with the configuration that was announced.
func TestGlobalGroupIsForeseen(t *testing.T) {
	t.Parallel()
	b, o := setupOracle(t)
	b.cluster("spoke")
	b.catalog("fleet")
	in := subscribe("tidegauge", "tidegauge")
	in.Config = json.RawMessage(`{"env": [{"name": "A", "value": "b"}]}`)
	p := must[model.Preview](b, 200, b.do("POST",
		"/api/v1/clusters/spoke/namespaces/openshift-operators/subscriptions?dryRun=true", in))
	if list := o.last().Hypotheses; len(list) != 2 || list[0].Subject != "spoke/openshift-operators/global-operators" ||
		!p.Applicable {
		t.Fatalf("supposed %+v, applicable %v", list, p.Applicable)
	}
	done := must[model.PreviewApplied](b, 200, b.do("POST", previews+"/"+p.ID+"/apply", nil))
	if len(done.Writes) != 2 {
		t.Errorf("applied %+v", done)
	}
	if n := b.count(`select count(*) from gateway.bodies where kind = 'subscription-config'`); n != 1 {
		t.Errorf("%d configurations are kept, want the announced one", n)
	}
}

// TestOperatorsOfANamespace: "which operators serve my namespace", for which OLM copies ClusterServiceVersions
// (R-OG-25, R-CFG-3).
func TestOperatorsOfANamespace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	operator := func(ns string) {
		name := ns + ".v1"
		subject := "spoke/" + ns + "/" + name
		b.fact(events.Installer, events.KindCSV, subject, subject,
			events.CSVPhaseChanged{
				Cluster: "spoke", Namespace: ns, Name: name, Package: ns, Version: "1.0.0",
				Phase: "Succeeded",
			})
	}
	group := func(ns, name string, spec model.OperatorGroupSpec) {
		b.position = must[model.OperatorGroup](b, 201,
			b.do("POST", "/api/v1/clusters/spoke/namespaces/"+ns+"/operatorgroups",
				model.CreateOperatorGroup{Name: name, OperatorGroupSpec: spec})).Position
	}
	for _, ns := range []string{"all", "own", "many", "chosen", "torn", "bare"} {
		operator(ns)
	}
	group("all", "og", model.OperatorGroupSpec{})
	group("own", "og", model.OperatorGroupSpec{TargetNamespaces: []string{"own"}})
	group("many", "og", model.OperatorGroupSpec{TargetNamespaces: []string{"north", "baltic"}})
	group("chosen", "og", model.OperatorGroupSpec{Selector: events.LabelSelector{
		MatchLabels: map[string]string{"sea": "baltic"},
	}})
	b.fact(events.Installer, events.KindOperatorGroup, "spoke/chosen/og", "spoke/chosen/og",
		events.OperatorGroupObserved{Targets: []string{"baltic"}})
	group("torn", "one", model.OperatorGroupSpec{})
	group("torn", "two", model.OperatorGroupSpec{})
	for ns, want := range map[string][]string{
		"north": {"all.v1", "many.v1"}, "baltic": {"all.v1", "chosen.v1", "many.v1"}, "own": {"all.v1", "own.v1"},
		"nort": {"all.v1"},
	} {
		list := must[struct{ Items []model.Operator }](b, 200,
			b.do("GET", b.seen("/api/v1/operators")+"&cluster=spoke&serves="+ns, nil))
		var got []string
		for _, o := range list.Items {
			got = append(got, o.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s is served by:\n%s", ns, diff)
		}
	}
}

// TestLabelsOfNamespacesWantApprovers: what lifts the limits of a namespace takes the rights of those who could approve
// a plan in it (ADR 0063).
func TestLabelsOfNamespacesWantApprovers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	must[model.AccessRole](b, 200, b.do("PUT", "/api/v1/roles/grouper", model.RoleSpec{Rules: []model.AccessRule{
		{Verbs: []string{"get", "create", "update"}, Resources: []string{"operatorgroups"}},
	}}))
	grouper := b.give(model.AddToken{Name: "grouper", Role: model.RoleNone})
	b.bind("grouper", "grouper", grouper.Actor, model.AccessScope{})
	const path = "/api/v1/clusters/spoke/namespaces/ops/operatorgroups"
	of := func(account string, labels map[string]string) model.OperatorGroupSpec {
		return model.OperatorGroupSpec{ServiceAccountName: account, NamespaceLabels: labels}
	}
	placed := func(account, where string) model.OperatorGroupSpec {
		return model.OperatorGroupSpec{ServiceAccountName: account, NamespaceAnnotations: map[string]string{
			"openshift.io/node-selector": where,
		}}
	}
	privileged := map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}
	create := func(labels map[string]string) int {
		return b.as(grouper.Secret, "POST", path, model.CreateOperatorGroup{
			Name: "team", OperatorGroupSpec: of("account", labels),
		}).status
	}
	change := func(s model.OperatorGroupSpec) int { return b.as(grouper.Secret, "PUT", path+"/team", s).status }
	for _, step := range []struct {
		name      string
		got, want int
	}{
		{"a group with labels", create(privileged), 403},
		{"one without", create(nil), 201},
		{"labels later", change(of("account", privileged)), 403},
		{"another account of one without labels", change(of("other", nil)), 200},
		{"labels by who may approve", b.do("PUT", path+"/team", of("account", privileged)).status, 200},
		{"the same labels again", change(of("account", privileged)), 200},
		{"labels without the account", change(of("", privileged)), 403},
		{"no labels any more", change(of("account", nil)), 403},
		{"no labels any more, by who may approve", b.do("PUT", path+"/team", of("account", nil)).status, 200},
		{"annotations", change(placed("account", "")), 403},
		{"annotations by who may approve", b.do("PUT", path+"/team", placed("account", "")).status, 200},
		{"the same annotations again", change(placed("account", "")), 200},
		{"another value", change(placed("account", "control-plane=")), 403},
		{"annotations without the account", change(placed("", "")), 403},
		{"no annotations any more", change(of("account", nil)), 403},
	} {
		if step.got != step.want {
			t.Errorf("%s: %d, want %d", step.name, step.got, step.want)
		}
	}
	group := must[model.OperatorGroup](b, 200, b.do("GET", path+"/team", nil))
	if diff := cmp.Diff(placed("account", ""), group.Spec); diff != "" {
		t.Errorf("the group (-want +got):\n%s", diff)
	}
	noted := of("account", nil)
	noted.NamespaceAnnotations = map[string]string{
		"openshift.io/sa.scc.uid-range": "1/1", "long": strings.Repeat("x", 1025),
	}
	answer := b.do("PUT", path+"/team", noted)
	for _, want := range []string{"gives its namespaces ranges of their own", "1025 bytes, 1024 are allowed"} {
		if answer.status != 400 || !strings.Contains(string(answer.body), want) {
			t.Errorf("what is no setting: %d %s, want %s", answer.status, answer.body, want)
		}
	}
}
