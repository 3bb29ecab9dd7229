package app_test

import (
	"slices"
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
	in := model.CreateOperatorGroup{Name: "coast", OperatorGroupSpec: model.OperatorGroupSpec{Selector: events.LabelSelector{MatchLabels: map[string]string{"sea": "north"}}}}
	made := must[model.OperatorGroup](b, 201, b.do("POST", path, in))
	if made.Targets == nil || len(made.Targets) != 0 || made.Spec.Selector.MatchLabels["sea"] != "north" {
		t.Errorf("made %+v", made)
	}
	b.position = made.Position
	b.fact(events.Installer, events.KindOperatorGroup, subject, subject, events.OperatorGroupObserved{
		Targets: []string{"a", "b"}, ProvidedAPIs: []string{"Gauge.v1.sea.test"}, Conditions: []string{protocol.GroupServiceAccount},
	})
	b.exec("installer", `insert into installer.messages (tenant, subject, kind, message) values ('default', $1, 'operatorgroup', 'no such account')`,
		subject+"/"+protocol.GroupServiceAccount)
	get := func() model.OperatorGroup {
		return must[model.OperatorGroup](b, 200, b.do("GET", b.seen(path+"/coast"), nil))
	}
	got := get()
	if !slices.Equal(got.Targets, []string{"a", "b"}) || !slices.Equal(got.ProvidedAPIs, []string{"Gauge.v1.sea.test"}) || len(got.Conditions) != 1 {
		t.Fatalf("got %+v", got)
	}
	if c := got.Conditions[0]; c.Reason != "ServiceAccountNotFound" || c.Message != "no such account" || c.Event == "" || c.Status != "True" {
		t.Errorf("condition %+v", c)
	}
	// Other targets keep the condition's event; the end of the condition takes it away.
	event := got.Conditions[0].Event
	b.fact(events.Installer, events.KindOperatorGroup, subject, subject, events.OperatorGroupObserved{Targets: []string{"c"}, Conditions: []string{protocol.GroupServiceAccount}})
	if got = get(); got.Conditions[0].Event != event || !slices.Equal(got.Targets, []string{"c"}) {
		t.Errorf("got %+v", got)
	}
	b.fact(events.Installer, events.KindOperatorGroup, subject, subject, events.OperatorGroupObserved{Targets: []string{"c"}})
	if got = get(); len(got.Conditions) != 0 {
		t.Errorf("got %+v", got)
	}
	// What an intent says of targets holds at once; what a selector chooses stands until the cluster has told.
	b.position = must[model.OperatorGroup](b, 200, b.do("PUT", path+"/coast", model.OperatorGroupSpec{TargetNamespaces: []string{"d"}})).Position
	if got = get(); !slices.Equal(got.Targets, []string{"d"}) {
		t.Errorf("targets %v", got.Targets)
	}
	b.position = must[model.OperatorGroup](b, 200, b.do("PUT", path+"/coast", in.OperatorGroupSpec)).Position
	if got = get(); !slices.Equal(got.Targets, []string{"d"}) {
		t.Errorf("targets %v", got.Targets)
	}
}

// TestOperatorsOfANamespace: "which operators serve my namespace", for which OLM copies ClusterServiceVersions (R-OG-25,
// R-CFG-3).
func TestOperatorsOfANamespace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	operator := func(ns string) {
		name := ns + ".v1"
		subject := "spoke/" + ns + "/" + name
		b.fact(events.Installer, events.KindCSV, subject, subject, events.CSVPhaseChanged{Cluster: "spoke", Namespace: ns, Name: name, Package: ns, Version: "1.0.0", Phase: "Succeeded"})
	}
	group := func(ns, name string, spec model.OperatorGroupSpec) {
		b.position = must[model.OperatorGroup](b, 201, b.do("POST", "/api/v1/clusters/spoke/namespaces/"+ns+"/operatorgroups",
			model.CreateOperatorGroup{Name: name, OperatorGroupSpec: spec})).Position
	}
	for _, ns := range []string{"all", "own", "many", "chosen", "torn", "bare"} {
		operator(ns)
	}
	group("all", "og", model.OperatorGroupSpec{})
	group("own", "og", model.OperatorGroupSpec{TargetNamespaces: []string{"own"}})
	group("many", "og", model.OperatorGroupSpec{TargetNamespaces: []string{"north", "baltic"}})
	group("chosen", "og", model.OperatorGroupSpec{Selector: events.LabelSelector{MatchLabels: map[string]string{"sea": "baltic"}}})
	b.fact(events.Installer, events.KindOperatorGroup, "spoke/chosen/og", "spoke/chosen/og", events.OperatorGroupObserved{Targets: []string{"baltic"}})
	group("torn", "one", model.OperatorGroupSpec{})
	group("torn", "two", model.OperatorGroupSpec{})
	for ns, want := range map[string][]string{
		"north": {"all.v1", "many.v1"}, "baltic": {"all.v1", "chosen.v1", "many.v1"}, "own": {"all.v1", "own.v1"}, "nort": {"all.v1"},
	} {
		list := must[struct{ Items []model.Operator }](b, 200, b.do("GET", b.seen("/api/v1/operators")+"&cluster=spoke&serves="+ns, nil))
		var got []string
		for _, o := range list.Items {
			got = append(got, o.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s is served by:\n%s", ns, diff)
		}
	}
}
