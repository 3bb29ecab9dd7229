package lifecycle

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

func operator(name, replaces string, phase csv.Phase, owns ...string) *scope.Operator {
	m := &scope.Operator{
		Object: &unstructured.Unstructured{Object: map[string]any{}}, Plan: "p",
		Status: csv.Status{Phase: phase},
	}
	m.Object.SetName(name)
	m.CSV.Spec.Replaces = replaces
	for _, crd := range owns {
		m.CSV.Spec.CRDs.Owned = append(m.CSV.Spec.CRDs.Owned, bundle.CRDDescription{Name: crd})
	}
	return m
}

func of(operators ...*scope.Operator) worker {
	sc := scope.New(&scope.Env{}, protocol.ScopePlans{Scope: protocol.Scope{Namespace: "ports"}}, nil, time.Hour)
	sc.Snapshot.Installed = scope.InstalledOf(operators, nil)
	return worker{Stage: &Stage{}, Scope: sc}
}

// TestNeighbours: R-CSV-50, R-COND-3: what an operator sees of the one that replaces it. One that cannot be read may be
// that for an operator that was being replaced, and for no other.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	one, two := operator("tide.v1", "", csv.PhaseReplacing), operator("tide.v2", "tide.v1", csv.PhasePending)
	w := of(one, two)
	w.Found.Conditions = map[string]protocol.OperatorCondition{"tide.v1": {Upgradeable: false, Message: "not now"}}
	if n := w.replacement(one); n == nil || n.Name != "tide.v2" || n.Phase != csv.PhasePending ||
		n.NotUpgradeable != "" {
		t.Errorf("replacement: %+v", n)
	}
	if n := w.neighbour(w.Snapshot.Installed.Chain.Predecessor("tide.v2")); n == nil || n.Name != "tide.v1" ||
		n.NotUpgradeable != "not now" {
		t.Errorf("predecessor: %+v", n)
	}
	w = of(one, operator("wind.v1", "", csv.PhaseSucceeded))
	if n := w.replacement(one); n != nil {
		t.Errorf("it is gone, and yet %+v", n)
	}
	w.Snapshot.Installed.Unreadable = map[string]string{"tide.v2": "p"}
	if n := w.replacement(one); n == nil || n.Name != "tide.v2" {
		t.Errorf("one that cannot be read: %+v", n)
	}
	if n := w.replacement(w.Snapshot.Installed.Operator("wind.v1")); n != nil {
		t.Errorf("of an operator that nothing was replacing: %+v", n)
	}
}

// TestOwnerConflict: R-CSV §6.5: of two operators that own one API neither is installed, unless one replaces the other.
func TestOwnerConflict(t *testing.T) {
	t.Parallel()
	tide, other := operator("tide.v1", "", csv.PhaseSucceeded, "gauges.sea.test"),
		operator("wind.v1", "", csv.PhasePending, "vanes.sea.test", "gauges.sea.test")
	if w := of(tide, other); w.ownerConflict(other) == "" || w.ownerConflict(tide) == "" {
		t.Error("two operators own one API")
	}
	next := operator("tide.v2", "tide.v1", csv.PhasePending, "gauges.sea.test")
	if got := of(tide, next).ownerConflict(next); got != "" {
		t.Errorf("of one that replaces the other: %s", got)
	}
}

// TestInstallTrouble: R-CSV-11: why Deployments cannot be created is the message of the plan that failed at one of
// them, and of no other step.
func TestInstallTrouble(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step  kube.Step
		phase csv.Phase
		want  string
	}{
		"its Deployment": {
			kube.Step{Kind: "Deployment", Name: "tide", State: kube.StepTaken},
			csv.PhaseInstallReady, "no",
		},
		"its Deployment, in the end": {
			kube.Step{Kind: "Deployment", Name: "tide", State: kube.StepTaken},
			csv.PhaseFailed, "no",
		},
		"one that was written": {
			kube.Step{Kind: "Deployment", Name: "tide", State: kube.StepDone},
			csv.PhaseInstallReady, "",
		},
		"another operator's": {
			kube.Step{Kind: "Deployment", Name: "wind", State: kube.StepTaken},
			csv.PhaseInstallReady, "",
		},
		"another kind": {
			kube.Step{Kind: "ConfigMap", Name: "tide", State: kube.StepTaken},
			csv.PhaseInstallReady, "",
		},
		"its phase is not so far yet": {
			kube.Step{Kind: "Deployment", Name: "tide", State: kube.StepTaken},
			csv.PhasePending, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := operator("tide.v1", "", c.phase)
			m.CSV.Spec.Install.Spec.Deployments = []bundle.Deployment{{Name: "tide"}}
			w := of(m)
			w.Snapshot.Executions = scope.Executions{{
				Spec:   kube.ExecutionSpec{Plan: "p"},
				Status: kube.ExecutionStatus{Phase: protocol.PlanFailed, Message: "no", Steps: []kube.Step{c.step}},
			}}
			got, forbidden, err := w.installTrouble(t.Context(), m)
			if got != c.want || forbidden || err != nil {
				t.Errorf("got %q, %v, %v, want %q", got, forbidden, err, c.want)
			}
		})
	}
}
