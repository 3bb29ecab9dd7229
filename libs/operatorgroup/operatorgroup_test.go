package operatorgroup_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/operatorgroup"
)

// TestNamed: a spec tells its targets unless a selector chooses them (R-OG §7.1).
func TestNamed(t *testing.T) {
	t.Parallel()
	chosen := events.LabelSelector{MatchLabels: map[string]string{"sea": "north"}}
	for name, c := range map[string]struct {
		spec events.OperatorGroupSpec
		want []string
		ok   bool
	}{
		"listed": {
			events.OperatorGroupSpec{TargetNamespaces: []string{"b", "a", "b", "chandler-system"}},
			[]string{"a", "b"},
			true,
		},
		"listed and chosen": {
			events.OperatorGroupSpec{TargetNamespaces: []string{"a"}, Selector: chosen},
			[]string{"a"},
			true,
		},
		"all":    {events.OperatorGroupSpec{}, []string{operatorgroup.All}, true},
		"chosen": {events.OperatorGroupSpec{Selector: chosen}, nil, false},
	} {
		if got, ok := operatorgroup.Named(c.spec); ok != c.ok || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %t", name, got, ok)
		}
	}
}

func standing(ns string, targets []string, provided ...string) operatorgroup.Standing {
	return operatorgroup.Standing{
		Group: operatorgroup.Group{Namespace: ns, Name: "og"}, Targets: targets,
		Provided: provided,
	}
}

func static(s operatorgroup.Standing) operatorgroup.Standing {
	s.Spec.StaticProvidedAPIs = true
	return s
}

// TestIntersect: R-OG §7.7: a group's own namespace is one of its targets.
func TestIntersect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		a, b operatorgroup.Standing
		want bool
	}{
		"a target in common":             {standing("a", []string{"x", "y"}), standing("b", []string{"y"}), true},
		"none in common":                 {standing("a", []string{"x"}), standing("b", []string{"y"}), false},
		"the other's own namespace":      {standing("a", []string{"b"}), standing("b", []string{"y"}), true},
		"global meets every other":       {standing("a", []string{""}), standing("b", []string{"y"}), true},
		"two global ones":                {standing("a", []string{""}), standing("b", []string{""}), true},
		"no targets: its own namespaces": {standing("a", nil), standing("b", nil), false},
	} {
		if operatorgroup.Intersect(c.a, c.b) != c.want || operatorgroup.Intersect(c.b, c.a) != c.want {
			t.Errorf("%s: want %v", name, c.want)
		}
	}
}

// TestJudge is the table of R-OG-35, row by row; the words of R-OG §7.7 begin each message.
func TestJudge(t *testing.T) {
	t.Parallel()
	const gauge, buoy = "Gauge.v1.sea.test", "Buoy.v1.sea.test"
	own := func(provided ...string) operatorgroup.Standing { return standing("a", []string{"x"}, provided...) }
	other := standing("b", []string{"x"}, gauge)
	apart := standing("c", []string{"y"}, gauge)
	twin := standing("a", []string{"x"}, gauge) // another object of the same namespace is the group itself
	for name, c := range map[string]struct {
		own     operatorgroup.Standing
		apis    []string
		others  []operatorgroup.Standing
		action  operatorgroup.Action
		reason  string
		message string
	}{
		"I empty, S, not static":     {own(gauge), []string{gauge}, nil, operatorgroup.Proceed, "", ""},
		"I empty, S, static":         {static(own(gauge)), []string{gauge}, nil, operatorgroup.Proceed, "", ""},
		"I empty, not S, not static": {own(), []string{gauge}, nil, operatorgroup.Claim, "", ""},
		"I empty, not S, static": {
			static(own(buoy)),
			[]string{gauge},
			nil, operatorgroup.Refuse,
			operatorgroup.ReasonStatic,
			"static provided api operatorgroup cannot be modified by these apis: Gauge.v1.sea.test are not among",
		},
		"I, not S, not static": {
			own(),
			[]string{gauge},
			[]operatorgroup.Standing{other},
			operatorgroup.Refuse, operatorgroup.ReasonOwnerConflict,
			"intersecting operatorgroups provide the same apis: Gauge.v1.sea.test of operator group b/og",
		},
		"I, not S, static": {
			static(own(buoy)),
			[]string{gauge},
			[]operatorgroup.Standing{other},
			operatorgroup.Refuse, operatorgroup.ReasonOwnerConflict,
			"intersecting operatorgroups provide the same apis",
		},
		"I, S, not static": {
			own(gauge),
			[]string{gauge},
			[]operatorgroup.Standing{other},
			operatorgroup.Withdraw, "", "",
		},
		"I, S, static": {
			static(own(gauge)),
			[]string{gauge},
			[]operatorgroup.Standing{other},
			operatorgroup.Refuse, operatorgroup.ReasonStatic,
			"static provided api operatorgroup cannot be modified by these apis: Gauge.v1.sea.test of operator group " +
				"b/og",
		},
		"no APIs of its own": {
			own(), nil,
			[]operatorgroup.Standing{other},
			operatorgroup.Proceed, "",
			"",
		},
		"a group that does not intersect": {
			own(),
			[]string{gauge},
			[]operatorgroup.Standing{apart},
			operatorgroup.Claim, "", "",
		},
		"its own group is no other": {
			own(gauge),
			[]string{gauge},
			[]operatorgroup.Standing{twin},
			operatorgroup.Proceed, "", "",
		},
		"a static group reserves (R-OG-30)": {
			own(),
			[]string{gauge},
			[]operatorgroup.Standing{static(other)},
			operatorgroup.Refuse, operatorgroup.ReasonOwnerConflict,
			"intersecting operatorgroups provide the same apis",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := operatorgroup.Judge(c.own, c.apis, c.others)
			if v.Action != c.action || v.Reason != c.reason || !strings.HasPrefix(v.Message, c.message) {
				t.Errorf("got %+v", v)
			}
		})
	}
}
