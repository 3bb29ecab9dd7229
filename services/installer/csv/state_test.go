package csv_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
)

// TestComponentOf is R-CSV-62: the state of each object of an operator, by kstatus.
func TestComponentOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ object, status, message string }{
		"absent":   {"", "NotFound", ""},
		"plain":    {"{apiVersion: v1, kind: ServiceAccount, metadata: {name: tide}}", "Current", ""},
		"on leave": {`{apiVersion: v1, kind: Secret, metadata: {name: tide, deletionTimestamp: "2031-02-03T04:05:06Z"}}`, "Terminating", ""},
		"deployment that runs": {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: tide, generation: 1}, spec: {replicas: 1},
			status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}}`, "Current", ""},
		"deployment that starts": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: tide, generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 1}}`,
			"InProgress", "Deployment generation is 2, but latest observed generation is 1",
		},
		"CRD whose names are taken": {`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: tides.sea.test},
			status: {conditions: [{type: NamesAccepted, status: "False", reason: PluralConflict, message: taken}]}}`, "Failed", "taken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o *unstructured.Unstructured
			if c.object != "" {
				raw, err := yaml.YAMLToJSON([]byte(c.object))
				if err != nil {
					t.Fatal(err)
				}
				o = &unstructured.Unstructured{}
				if err := o.UnmarshalJSON(raw); err != nil { // whole numbers stay whole
					t.Fatal(err)
				}
			}
			got := csv.ComponentOf(protocol.ObjectRef{Kind: "x", Name: "tide"}, o)
			if got.Status != c.status || got.Message != c.message || got.Name != "tide" {
				t.Errorf("got %+v, want %s %q", got, c.status, c.message)
			}
		})
	}
}

// TestComponentOfPhase: the object that stands for an operator is as its phase says.
func TestComponentOfPhase(t *testing.T) {
	t.Parallel()
	for phase, want := range map[csv.Phase]string{
		csv.PhaseNone: "InProgress", csv.PhasePending: "InProgress", csv.PhaseInstalling: "InProgress",
		csv.PhaseReplacing: "InProgress", csv.PhaseSucceeded: "Current", csv.PhaseFailed: "Failed",
		csv.PhaseDeleting: "Terminating",
	} {
		got := csv.ComponentOfPhase(protocol.ObjectRef{Name: "tide.v1"}, csv.Status{Phase: phase, Message: "why"})
		if got.Status != want || (got.Message == "") != (want == "Current") {
			t.Errorf("%s: %+v, want %s", phase, got, want)
		}
	}
}

// TestComponentOfRow: of an object whose form is not read, the row of the requirements that names it tells what is
// amiss.
func TestComponentOfRow(t *testing.T) {
	t.Parallel()
	ref := protocol.ObjectRef{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
		Name: "tides.sea.test",
	}
	row := csv.Requirement{
		Group: ref.Group, Version: "v1", Kind: ref.Kind, Name: ref.Name,
		Status: csv.PresentNotAvailable, Message: "not established",
	}
	met, other := row, row
	met.Status, met.Message, other.Name = csv.Present, "", "buoys.sea.test"
	for name, c := range map[string]struct {
		leaving bool
		row     csv.Requirement
		status  string
		message string
	}{
		"met":               {false, met, "Current", ""},
		"of another object": {false, other, "Current", ""},
		"not met":           {false, row, "InProgress", "not established"},
		"leaving":           {true, row, "Terminating", ""},
	} {
		if got := csv.ComponentOfRow(ref, c.leaving, []csv.Requirement{c.row}); got.Status != c.status ||
			got.Message != c.message {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
