package operatorgroup_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	shared "github.com/chandler-fleet/chandler/libs/operatorgroup"
	"github.com/chandler-fleet/chandler/services/gateway/operatorgroup"
)

type history = []events.Payload

// TestDecide proves R-OG-1 (one set for the namespace) and the value rules of R-OG §7.1.
func TestDecide(t *testing.T) {
	t.Parallel()
	name := operatorgroup.Name{Cluster: "spoke", Namespace: "ops", Name: "coast"}
	created := events.OperatorGroupCreated{
		Cluster: "spoke", Namespace: "ops", Name: "coast",
		Spec: events.OperatorGroupSpec{TargetNamespaces: []string{"a", "b"}},
	}
	spec := func(targets ...string) events.OperatorGroupSpec {
		return events.OperatorGroupSpec{TargetNamespaces: targets}
	}
	excluding := spec("a", "b")
	excluding.ExcludeGlobalCatalogs = true
	cases := []struct {
		name  string
		given history
		when  operatorgroup.Command
		then  history
		kind  errs.Kind
	}{
		{
			"create sorts and drops repeated targets", nil,
			operatorgroup.Create{Name: name, Spec: spec("b", "a", "b")},
			history{created},
			"",
		},
		{"create twice", history{created}, operatorgroup.Create{Name: name}, nil, errs.AlreadyExists},
		{
			"an empty target is not all namespaces", nil,
			operatorgroup.Create{Name: name, Spec: spec("")},
			nil,
			errs.Invalid,
		},
		{
			"in Chandler's own namespace", nil,
			operatorgroup.Create{
				Name: operatorgroup.Name{Cluster: "spoke", Namespace: "chandler-system", Name: "coast"},
				Spec: spec("a"),
			},
			nil, errs.Invalid,
		},
		{
			"Chandler's own namespace as a target",
			history{created},
			operatorgroup.Change{Spec: spec("a", "chandler-system")},
			nil, errs.Invalid,
		},
		{"Chandler's own account", history{created}, operatorgroup.Change{
			Spec: events.OperatorGroupSpec{ServiceAccountName: "chandler-executor"},
		}, nil, errs.Invalid},
		{"too many targets", nil, operatorgroup.Create{
			Name: name,
			Spec: spec(slices.Repeat([]string{"a"}, operatorgroup.MaxTargets+1)...),
		}, nil, errs.Invalid},
		{"unknown strategy", nil, operatorgroup.Create{
			Name: name,
			Spec: events.OperatorGroupSpec{UpgradeStrategy: "Hope"},
		}, nil, errs.Invalid},
		{
			"labels of the namespace",
			history{created},
			operatorgroup.Change{Spec: labelled("pod-security.kubernetes.io/enforce", "privileged")},
			history{events.OperatorGroupChanged{
				Spec: labelled("pod-security.kubernetes.io/enforce", "privileged"),
			}},
			"",
		},
		{
			"the same labels of the namespace",
			history{created, events.OperatorGroupChanged{Spec: labelled("tier", "quay")}},
			operatorgroup.Change{Spec: labelled("tier", "quay")},
			nil, "",
		},
		{
			"a label of Chandler's own on the namespace",
			history{created},
			operatorgroup.Change{Spec: labelled("olm.operatorgroup.uid/x", "")},
			nil, errs.Invalid,
		},
		{
			"a label of the API server's on the namespace",
			history{created},
			operatorgroup.Change{Spec: labelled("kubernetes.io/metadata.name", "ops")},
			nil, errs.Invalid,
		},
		{
			"a label that no API server takes",
			history{created},
			operatorgroup.Change{Spec: labelled("tier", "on the quay")},
			nil, errs.Invalid,
		},
		{
			"annotations of the namespace (ADR 0063)",
			history{created},
			operatorgroup.Change{Spec: annotated(shared.MaxNamespaceAnnotations, strings.Repeat("x", 1022)+"\n\t")},
			history{events.OperatorGroupChanged{
				Spec: annotated(shared.MaxNamespaceAnnotations, strings.Repeat("x", 1022)+"\n\t"),
			}},
			"",
		},
		{
			"the same annotations of the namespace",
			history{created, events.OperatorGroupChanged{Spec: annotated(1, "")}},
			operatorgroup.Change{Spec: annotated(1, "")},
			nil, "",
		},
		{
			"no annotations of the namespace are none",
			history{created, events.OperatorGroupChanged{Spec: spec()}},
			operatorgroup.Change{Spec: annotated(0, "")},
			nil, "",
		},
		{
			"too many annotations of the namespace",
			history{created},
			operatorgroup.Change{Spec: annotated(shared.MaxNamespaceAnnotations+1, "")},
			nil, errs.Invalid,
		},
		{
			"an annotation that is too long",
			history{created},
			operatorgroup.Change{Spec: annotated(1, strings.Repeat("x", shared.MaxNamespaceAnnotation+1))},
			nil, errs.Invalid,
		},
		{
			"an annotation that PostgreSQL cannot hold",
			history{created},
			operatorgroup.Change{Spec: annotated(1, "\x00")},
			nil, errs.Invalid,
		},
		{
			"an annotation that the cluster writes",
			history{created},
			operatorgroup.Change{Spec: events.OperatorGroupSpec{
				NamespaceAnnotations: map[string]string{"openshift.io/sa.scc.mcs": "s0"},
			}},
			nil, errs.Invalid,
		},
		{
			"a key of an annotation that no API server takes",
			history{created},
			operatorgroup.Change{Spec: events.OperatorGroupSpec{
				NamespaceAnnotations: map[string]string{"no key": ""},
			}},
			nil, errs.Invalid,
		},
		{"change", history{created}, operatorgroup.Change{Spec: spec()}, history{events.OperatorGroupChanged{}}, ""},
		{"change to the same set", history{created}, operatorgroup.Change{
			Spec: events.OperatorGroupSpec{TargetNamespaces: []string{"b", "a"}, UpgradeStrategy: "Default"},
		}, nil, ""},
		{
			"look away from global catalogs (R-RES-5)",
			history{created},
			operatorgroup.Change{Spec: excluding},
			history{events.OperatorGroupChanged{Spec: excluding}},
			"",
		},
		{
			"look away again",
			history{created, events.OperatorGroupChanged{Spec: excluding}},
			operatorgroup.Change{Spec: excluding},
			nil, "",
		},
		{"change nothing known", nil, operatorgroup.Change{}, nil, errs.NotFound},
		{
			"choose by labels (R-OG §7.1)", nil,
			operatorgroup.Create{Name: name, Spec: chosen("b", "a", "b")},
			history{events.OperatorGroupCreated{
				Cluster: "spoke", Namespace: "ops", Name: "coast", Spec: chosen("a", "b"),
			}},
			"",
		},
		{
			"choose the same",
			history{events.OperatorGroupCreated{Spec: chosen("a", "b")}},
			operatorgroup.Change{Spec: chosen("b", "a")},
			nil, "",
		},
		{
			"choose others",
			history{created},
			operatorgroup.Change{Spec: chosen("c")},
			history{events.OperatorGroupChanged{Spec: chosen("c")}},
			"",
		},
		{"a selector without values", nil, operatorgroup.Create{Name: name, Spec: chosen()}, nil, errs.Invalid},
		{
			"an unknown operator", nil,
			operatorgroup.Create{Name: name, Spec: expression("Near", "a")},
			nil,
			errs.Invalid,
		},
		{
			"Exists with values", nil,
			operatorgroup.Create{Name: name, Spec: expression("Exists", "a")},
			nil,
			errs.Invalid,
		},
		{"reserve APIs (R-OG-30)", history{created}, operatorgroup.Change{
			Spec: reserved("B.v1.sea.test", "A.v1.sea.test"),
		}, history{events.OperatorGroupChanged{
			Spec: reserved("A.v1.sea.test", "B.v1.sea.test"),
		}}, ""},
		{
			"an API without a group", nil,
			operatorgroup.Create{Name: name, Spec: reserved("Gauge.v1")},
			nil,
			errs.Invalid,
		},
		{"APIs of a group that is not static", nil, operatorgroup.Create{
			Name: name, Spec: events.OperatorGroupSpec{ProvidedAPIs: []string{"A.v1.sea.test"}},
		}, nil, errs.Invalid},
		{
			"what was observed is no intent",
			history{created, events.OperatorGroupObserved{Targets: []string{"x"}}},
			operatorgroup.Change{Spec: spec("a", "b")},
			nil, "",
		},
		{"delete", history{created}, operatorgroup.Delete{}, history{events.OperatorGroupDeleted{}}, ""},
		{"delete twice", history{created, events.OperatorGroupDeleted{}}, operatorgroup.Delete{}, nil, errs.NotFound},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := operatorgroup.State{Name: name}
			for _, p := range c.given {
				var err error
				if s, err = operatorgroup.Evolve(s, p); err != nil {
					t.Fatal(err)
				}
			}
			got, err := operatorgroup.Decide(s, c.when)
			if errs.KindOf(err) != c.kind {
				t.Fatalf("error %v, want kind %q", err, c.kind)
			}
			if diff := cmp.Diff(c.then, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func labelled(key, value string) events.OperatorGroupSpec {
	return events.OperatorGroupSpec{NamespaceLabels: map[string]string{key: value}}
}

// annotated wants n annotations of the namespace, all with one value.
func annotated(n int, value string) events.OperatorGroupSpec {
	annotations := map[string]string{}
	for i := range n {
		annotations[fmt.Sprint("example.test/setting", i)] = value
	}
	return events.OperatorGroupSpec{NamespaceAnnotations: annotations}
}

func expression(operator string, values ...string) events.OperatorGroupSpec {
	return events.OperatorGroupSpec{Selector: events.LabelSelector{
		MatchExpressions: []events.LabelRequirement{{Key: "sea", Operator: operator, Values: values}},
	}}
}

func chosen(values ...string) events.OperatorGroupSpec { return expression("In", values...) }

func reserved(apis ...string) events.OperatorGroupSpec {
	return events.OperatorGroupSpec{StaticProvidedAPIs: true, ProvidedAPIs: apis}
}

func TestDecideLeavesTheInputAlone(t *testing.T) {
	t.Parallel()
	targets := []string{"b", "a", "b"}
	name := operatorgroup.Name{Cluster: "c", Namespace: "n", Name: "g"}
	if _, err := operatorgroup.Decide(operatorgroup.State{},
		operatorgroup.Create{Name: name, Spec: events.OperatorGroupSpec{TargetNamespaces: targets}}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(targets, []string{"b", "a", "b"}) {
		t.Errorf("the caller's slice became %v", targets)
	}
}

func TestEvolveRefusesForeignEvents(t *testing.T) {
	t.Parallel()
	if _, err := operatorgroup.Evolve(operatorgroup.State{}, events.ClusterRemoved{}); err == nil {
		t.Error("an event of another kind of stream must not pass silently")
	}
}
