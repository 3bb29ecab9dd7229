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
			var s operator.State
			for _, p := range c.given {
				var err error
				if s, err = operator.Evolve(s, p); err != nil {
					t.Fatal(err)
				}
			}
			got, err := operator.Decide(s, c.when)
			if errs.KindOf(err) != c.kind {
				t.Fatalf("error %v, want kind %q", err, c.kind)
			}
			if diff := cmp.Diff(c.then, got); diff != "" {
				t.Error(diff)
			}
		})
	}
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
