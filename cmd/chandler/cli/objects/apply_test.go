package objects

import (
	"reflect"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// same reports whether two values are compared as the same.
func same(t *testing.T, a, b any) bool {
	t.Helper()
	x, err := plainForm(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := plainForm(b)
	if err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

func TestSameSubscription(t *testing.T) {
	t.Parallel()
	sameSubscription := func(a, b model.SubscriptionSpec) bool {
		return same(t, subscriptionForm(a), subscriptionForm(b))
	}
	base := model.SubscriptionSpec{Package: "p", Catalog: "c", Config: []byte(`{"env":[{"name":"A","value":"1"}]}`)}
	same := base
	same.Approval, same.Config = "Automatic", []byte(` {"env": [ {"value":"1", "name":"A"} ]}`)
	if !sameSubscription(base, same) {
		t.Error("defaults and the order of JSON make a difference")
	}
	for name, change := range map[string]func(*model.SubscriptionSpec){
		"approval": func(s *model.SubscriptionSpec) { s.Approval = "Manual" },
		"channel":  func(s *model.SubscriptionSpec) { s.Channel = "x" },
		"config":   func(s *model.SubscriptionSpec) { s.Config = []byte(`{}`) },
		"none":     func(s *model.SubscriptionSpec) { s.Config = nil },
	} {
		other := base
		change(&other)
		if sameSubscription(base, other) {
			t.Errorf("another %s makes no difference", name)
		}
	}
}

func TestSameOperatorGroup(t *testing.T) {
	t.Parallel()
	sameOperatorGroup := func(a, b model.OperatorGroupSpec) bool { return same(t, groupForm(a), groupForm(b)) }
	a := model.OperatorGroupSpec{TargetNamespaces: []string{"a", "b"}}
	if !sameOperatorGroup(a, model.OperatorGroupSpec{
		TargetNamespaces: []string{"b", "a"},
		UpgradeStrategy:  "Default",
	}) {
		t.Error("the order of namespaces makes a difference")
	}
	if sameOperatorGroup(a, model.OperatorGroupSpec{TargetNamespaces: []string{"a"}}) ||
		sameOperatorGroup(a, model.OperatorGroupSpec{TargetNamespaces: a.TargetNamespaces, Colocation: "shared"}) ||
		sameOperatorGroup(a, model.OperatorGroupSpec{
			TargetNamespaces:      a.TargetNamespaces,
			ExcludeGlobalCatalogs: true,
		}) {
		t.Error("another group makes no difference")
	}
	chosen := func(values ...string) model.OperatorGroupSpec {
		return model.OperatorGroupSpec{Selector: events.LabelSelector{
			MatchExpressions: []events.LabelRequirement{{Key: "sea", Operator: "In", Values: values}},
		}}
	}
	if !sameOperatorGroup(chosen("a", "b"), chosen("b", "a")) || sameOperatorGroup(chosen("a"), chosen("b")) ||
		sameOperatorGroup(chosen("a"), a) {
		t.Error("selectors are compared by what they choose")
	}
	if sameOperatorGroup(model.OperatorGroupSpec{StaticProvidedAPIs: true, ProvidedAPIs: []string{"A.v1.b"}},
		model.OperatorGroupSpec{StaticProvidedAPIs: true}) {
		t.Error("another reservation makes no difference")
	}
}
