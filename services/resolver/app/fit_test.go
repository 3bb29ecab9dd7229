package app_test

import (
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/resolver/app"
	"github.com/chandler-fleet/chandler/services/resolver/suggestion"
)

// groupIn makes or changes the operator group of a namespace of the cluster.
func (f *fleet) groupIn(namespace string, spec events.OperatorGroupSpec) {
	f.t.Helper()
	subject := cluster + "/" + namespace + "/og"
	f.append(events.Gateway, events.KindOperatorGroup, subject, subject,
		events.OperatorGroupCreated{Cluster: cluster, Namespace: namespace, Name: "og", Spec: spec})
}

func (f *fleet) changeGroup(spec events.OperatorGroupSpec) {
	f.t.Helper()
	f.append(events.Gateway, events.KindOperatorGroup, scoped("og"), scoped("og"),
		events.OperatorGroupChanged{Spec: spec})
}

// observed tells as the executor what the group of a namespace came to.
func (f *fleet) observed(namespace string, targets, provided []string) {
	f.t.Helper()
	subject := cluster + "/" + namespace + "/og"
	f.append(events.Installer, events.KindOperatorGroup, subject, subject,
		events.OperatorGroupObserved{Targets: targets, ProvidedAPIs: provided})
}

// unresolved asks why a subscription fails, and checks that the answer does not contradict itself.
func (f *fleet) unresolved(subscription string) (why string, answer *suggestion.Answer) {
	f.t.Helper()
	a := f.explain(app.ExplainQuestion{Subscription: subscription})
	if a.Recorded.Outcome != "Failed" || a.Explanation == nil || a.Suggestions == nil {
		f.t.Fatalf("%s: %+v", subscription, a)
	}
	if a.Suggestions.Resolves {
		f.t.Errorf("%s failed, and is said to resolve as it is", subscription)
	}
	for _, st := range a.Explanation.Statements {
		why += st.Text
	}
	return why, a.Suggestions
}

func kindsOf(a *suggestion.Answer) []string {
	out := []string{}
	for _, r := range a.Suggestions {
		out = append(out, string(r.Kind)+": "+r.Text)
	}
	return out
}

// TestModesThatDoNotFit: an operator that cannot serve the group's targets (R-CSV-31) does not resolve, in every part
// of the answer; the explanation says which modes it has, and the suggestion is a group that it and what is installed
// can serve.
func TestModesThatDoNotFit(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	f.publish("fleet", "", f.pkg("own", version{v: "1.0.0", modes: []string{"OwnNamespace", "SingleNamespace"}}),
		f.pkg("wide", version{v: "1.0.0", modes: []string{"AllNamespaces"}}))
	f.subscribe("own", "own", "stable")
	f.quiet()
	why, answer := f.unresolved("own")
	if !strings.Contains(why, "targets all namespaces; it supports OwnNamespace, SingleNamespace") {
		t.Errorf("why: %s", why)
	}
	if got := kindsOf(answer); len(got) != 2 ||
		got[0] != "operator-group-targets: let operator group og target namespace "+namespace+" only" {
		t.Fatalf("suggestions %q", got)
	}
	if m := answer.Suggestions[0].Manifest; !strings.Contains(m, "kind: OperatorGroup") ||
		!strings.Contains(m, "targetNamespaces:\n  - \""+namespace+"\"") {
		t.Errorf("manifest:\n%s", m)
	}
	f.changeGroup(events.OperatorGroupSpec{TargetNamespaces: []string{namespace}}) // as it was suggested
	f.quiet()
	if got := csvs(f.livePlan()); len(got) != 1 || got[0] != "own.v1.0.0 ChannelHead" {
		t.Fatalf("plan %v", got)
	}
	f.carryOut(f.livePlan())
	f.subscribe("wide", "wide", "stable") // serves all namespaces alone, which own cannot
	f.quiet()
	if _, answer := f.unresolved("wide"); len(answer.Suggestions) != 0 {
		t.Errorf("offered although it would break what is installed: %q", kindsOf(answer))
	}
}

// TestGroupThatIsMissing: the group that is suggested where there is none is one that the operator can serve.
func TestGroupThatIsMissing(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.append(events.Gateway, events.KindCluster, cluster, cluster, events.ClusterRegistered{Name: cluster})
	f.addCatalog("fleet")
	f.publish("fleet", "", f.pkg("wide", version{v: "1.0.0", modes: []string{"AllNamespaces"}}))
	f.subscribe("wide", "wide", "stable")
	f.quiet()
	_, answer := f.unresolved("wide")
	if got := kindsOf(answer); len(got) != 1 || got[0] != "add-operator-group: create an operator group in namespace "+
		namespace+" that targets all namespaces" {
		t.Errorf("suggestions %q", got)
	}
}

// TestSelectorThatDoesNotFit: what a selector chooses is told by the cluster, and from then on by the resolution, too.
func TestSelectorThatDoesNotFit(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.append(events.Gateway, events.KindCluster, cluster, cluster, events.ClusterRegistered{Name: cluster})
	f.groupIn(namespace, events.OperatorGroupSpec{Selector: events.LabelSelector{
		MatchLabels: map[string]string{"sea": "north"},
	}})
	f.observed(namespace, []string{"north", "old"}, nil)
	f.addCatalog("fleet")
	f.publish("fleet", "", f.pkg("own", version{v: "1.0.0", modes: []string{"OwnNamespace", "SingleNamespace"}}))
	f.subscribe("own", "own", "stable")
	f.quiet()
	if why, _ := f.unresolved("own"); !strings.Contains(why, "targets namespaces north, old") {
		t.Errorf("why: %s", why)
	}
	f.observed(namespace, []string{"north"}, nil) // a namespace lost its label: the scope is looked at again
	f.quiet()
	if got := csvs(f.livePlan()); len(got) != 1 {
		t.Errorf("plan %v", got)
	}
}

// TestConflictBetweenGroups: what would fail with InterOperatorGroupOwnerConflict (R-OG-35) does not resolve while
// the cluster tells that another group that intersects provides the API; no change is suggested that leads there; and
// it is planned as soon as the API is free.
func TestConflictBetweenGroups(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.append(events.Gateway, events.KindCluster, cluster, cluster, events.ClusterRegistered{Name: cluster})
	f.groupIn("elsewhere", events.OperatorGroupSpec{TargetNamespaces: []string{"shared"}})
	f.observed("elsewhere", []string{"shared"}, []string{"Gauge.v1.sea.test"})
	f.groupIn(namespace, events.OperatorGroupSpec{TargetNamespaces: []string{"shared"}})
	f.addCatalog("fleet")
	f.publish("fleet", "", f.pkg("gauge", version{v: "1.0.0", owns: []string{"Gauge"}}),
		f.pkg("single", version{
			v: "1.0.0", owns: []string{"Gauge"},
			modes: []string{"SingleNamespace", "AllNamespaces"},
		}))
	f.subscribe("gauge", "gauge", "stable")
	f.subscribe("single", "single", "stable")
	f.quiet()
	why, answer := f.unresolved("gauge")
	if !strings.Contains(why, "InterOperatorGroupOwnerConflict") ||
		!strings.Contains(why, "Gauge.v1.sea.test of operator group elsewhere/og") {
		t.Errorf("why: %s", why)
	}
	if len(answer.Suggestions) == 0 {
		t.Error("no answer, although the group could serve its own namespace alone")
	}
	for _, r := range answer.Suggestions {
		if strings.Contains(r.Text, "all namespaces") {
			t.Errorf("suggested what leads to the conflict: %s", r.Text)
		}
	}
	f.observed("elsewhere", []string{"shared"}, nil)
	f.quiet()
	if len(f.plans()) == 0 {
		t.Errorf("nothing is planned although the API is free: %v", f.decided())
	}
}

// TestKubernetesTooOld: minKubeVersion (R-CSV §6.4) is compared before anything is planned, and again when the cluster
// tells another version.
func TestKubernetesTooOld(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	version128 := events.ClusterObserved{State: "Connected", KubernetesVersion: "v1.28.3"}
	f.append(events.Installer, events.KindCluster, cluster, cluster, version128)
	f.addCatalog("fleet")
	f.publish("fleet", "", f.pkg("young", version{v: "1.0.0", minKube: "1.29.0"}))
	f.subscribe("young", "young", "stable")
	f.quiet()
	if why, _ := f.unresolved("young"); !strings.Contains(why, "minKubeVersion 1.29.0 is above the cluster's 1.28.3") {
		t.Errorf("why: %s", why)
	}
	version128.KubernetesVersion = "v1.29.1"
	f.append(events.Installer, events.KindCluster, cluster, cluster, version128)
	f.quiet()
	if got := csvs(f.livePlan()); len(got) != 1 {
		t.Errorf("plan %v", got)
	}
}
