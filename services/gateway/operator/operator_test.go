package operator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/operator"
)

type history = []events.Payload

func phase(p string) events.Payload {
	return events.CSVPhaseChanged{
		Cluster: "east-1", Namespace: "ports", Name: "tidegauge.v1.0.0", Package: "tidegauge",
		Phase: p,
	}
}

// TestDecide is R-UNI-1: who may be uninstalled, and what asking twice means.
func TestDecide(t *testing.T) {
	t.Parallel()
	asked := events.CSVRemovalRequested{
		Removal: "r1", CRDs: []string{"buoys.example.com", "gauges.example.com"},
		Plan: "sha256:1",
	}
	both := []string{"gauges.example.com", "buoys.example.com", "gauges.example.com"}
	running := history{phase("Succeeded")}
	cases := []struct {
		name  string
		given history
		when  operator.Uninstall
		then  history
		kind  errs.Kind
	}{
		{"installed", running, operator.Uninstall{ID: "r1"}, history{events.CSVRemovalRequested{Removal: "r1"}}, ""},
		{
			"failed",
			history{phase("Failed")},
			operator.Uninstall{ID: "r1"},
			history{events.CSVRemovalRequested{Removal: "r1"}},
			"",
		},
		{
			"names are sorted, each once", running,
			operator.Uninstall{ID: "r1", CRDs: both, Plan: "sha256:1"},
			history{asked},
			"",
		},
		{"not installed", nil, operator.Uninstall{ID: "r1"}, nil, errs.NotFound},
		{
			"removed", append(running[:1:1], events.CSVRemoved{Reason: "Deleted"}),
			operator.Uninstall{ID: "r1"},
			nil,
			errs.NotFound,
		},
		{"being replaced", history{phase("Replacing")}, operator.Uninstall{ID: "r1"}, nil, errs.Conflict},
		{"about to go", history{phase("Deleting")}, operator.Uninstall{ID: "r1"}, nil, errs.Conflict},
		{"asked twice", append(running[:1:1], asked), operator.Uninstall{ID: "r2", CRDs: both}, nil, ""},
		{
			"asked twice, with the same plan", append(running[:1:1], asked),
			operator.Uninstall{ID: "r2", CRDs: both, Plan: "sha256:1"},
			nil, "",
		},
		{
			"asked for other definitions meanwhile", append(running[:1:1], asked),
			operator.Uninstall{ID: "r2"},
			nil,
			errs.Conflict,
		},
		{
			"asked with another plan meanwhile", append(running[:1:1], asked),
			operator.Uninstall{ID: "r2", CRDs: both, Plan: "sha256:2"},
			nil, errs.Conflict,
		},
		{
			"after a refusal", append(running[:1:1], asked,
				events.CSVRemovalRefused{Removal: "r1", Reason: "PlanChanged"}),
			operator.Uninstall{ID: "r2"},
			history{events.CSVRemovalRequested{Removal: "r2"}},
			"",
		},
		{
			"a fleet subscription has asked already",
			append(running[:1:1], events.CSVRemovalDirected{Removal: "r1", FleetSubscription: "buoys"}),
			operator.Uninstall{ID: "r2"},
			nil, "",
		},
		{
			"a refusal of another request ends nothing",
			append(running[:1:1], asked, events.CSVRemovalRefused{Removal: "r0"}),
			operator.Uninstall{ID: "r2"},
			nil, errs.Conflict,
		},
		{"a name that cannot be", running, operator.Uninstall{ID: "r1", CRDs: []string{"Gauges"}}, nil, errs.Invalid},
		{"too many names", running, operator.Uninstall{ID: "r1", CRDs: many()}, nil, errs.Invalid},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := operator.Decide(folded(t, c.given), c.when)
			if errs.KindOf(err) != c.kind {
				t.Fatalf("error %v, want kind %q", err, c.kind)
			}
			if diff := cmp.Diff(c.then, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOverride: R-COND-2, R-COND-6: overrides are set whole, of an operator that is installed, and end with it (ADR
// 0073). What a condition of Kubernetes could not be is refused.
func TestOverride(t *testing.T) {
	t.Parallel()
	yes := events.ConditionOverride{Type: "Upgradeable", Status: "True", Reason: "Tested"}
	no := events.ConditionOverride{Type: "Upgradeable", Status: "False", Reason: "Season"}
	other := events.ConditionOverride{Type: "sea.test/Ready", Status: "Unknown", Reason: "A_1:b"}
	set := func(list ...events.ConditionOverride) operator.Command { return operator.Override{Overrides: list} }
	is := func(list ...events.ConditionOverride) events.Payload {
		return events.OperatorConditionOverridden{Overrides: list}
	}
	running := history{phase("Succeeded")}
	with := func(more ...events.Payload) history { return append(running[:1:1], more...) }
	for name, c := range map[string]struct {
		given history
		when  operator.Command
		then  history
		kind  errs.Kind
	}{
		"set":            {running, set(yes), history{is(yes)}, ""},
		"by type":        {running, set(other, yes), history{is(yes, other)}, ""},
		"the same again": {with(is(yes, other)), set(other, yes), nil, ""},
		"another status": {with(is(yes)), set(no), history{is(no)}, ""},
		"while it is replaced": {
			history{phase("Replacing")}, set(yes), history{is(yes)}, "",
		},
		"not installed": {nil, set(yes), nil, errs.NotFound},
		"removed":       {with(is(yes), events.CSVRemoved{}), set(yes), nil, errs.NotFound},
		"the next life begins without": {
			with(is(yes), events.CSVRemoved{}, phase("Succeeded")), set(yes), history{is(yes)}, "",
		},
		"none":  {running, set(), nil, errs.Invalid},
		"twice": {running, set(yes, no), nil, errs.Invalid},
		"too many": {
			running, set(make([]events.ConditionOverride, operator.MaxOverrides+1)...), nil, errs.Invalid,
		},
		"no type": {running, set(events.ConditionOverride{Status: "True", Reason: "A"}), nil, errs.Invalid},
		"no such type": {
			running, set(events.ConditionOverride{Type: "a b", Status: "True", Reason: "A"}), nil, errs.Invalid,
		},
		"no such status": {
			running, set(events.ConditionOverride{Type: "A", Status: "true", Reason: "A"}), nil, errs.Invalid,
		},
		"a reason is a word": {
			running, set(events.ConditionOverride{Type: "A", Status: "True", Reason: "it was tried"}), nil,
			errs.Invalid,
		},
		"removed by hand": {
			with(is(yes)), operator.RemoveOverrides{}, history{events.OperatorConditionOverridesRemoved{}}, "",
		},
		"removed twice": {
			with(is(yes), events.OperatorConditionOverridesRemoved{}), operator.RemoveOverrides{}, nil, errs.NotFound,
		},
		"nothing to remove": {nil, operator.RemoveOverrides{}, nil, errs.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := operator.Decide(folded(t, c.given), c.when)
			if errs.KindOf(err) != c.kind {
				t.Fatalf("error %v, want kind %q", err, c.kind)
			}
			if diff := cmp.Diff(c.then, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func folded(t *testing.T, given history) (s operator.State) {
	t.Helper()
	for _, p := range given {
		var err error
		if s, err = operator.Evolve(s, p); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func many() []string {
	out := make([]string, operator.MaxCRDs+1)
	for i := range out {
		out[i] = "a" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)) + ".example.com"
	}
	return out
}

// TestEvolveTakesItsStream: every type of the stream is taken, and none of another.
func TestEvolveTakesItsStream(t *testing.T) {
	t.Parallel()
	for _, d := range events.All() {
		_, err := operator.Evolve(operator.State{}, d.Zero())
		if taken := err == nil; taken != (d.Kind == events.KindCSV) {
			t.Errorf("%s of kind %s: taken %v", d.Type, d.Kind, taken)
		}
	}
}
