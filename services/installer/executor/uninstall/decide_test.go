package uninstall

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

func namespace(executions ...*kube.Execution) worker {
	sc := scope.New(&scope.Env{}, protocol.ScopePlans{
		Scope: protocol.Scope{Namespace: "ports"},
		Plans: []protocol.Plan{{ID: "p"}},
	}, nil, time.Hour)
	sc.Snapshot.Executions = executions
	return worker{Stage: &Stage{}, Scope: sc}
}

// TestBusy: R-UNI-1: no removal begins beside a plan that brings the operator, unless that is stuck, or while another
// operator takes its place.
func TestBusy(t *testing.T) {
	t.Parallel()
	bringing := func(phase string) *kube.Execution {
		return &kube.Execution{
			Spec:   kube.ExecutionSpec{Plan: "p", Operators: []string{"tide.v1"}},
			Status: kube.ExecutionStatus{Begun: true, Phase: phase},
		}
	}
	for name, c := range map[string]struct {
		log      *kube.Execution
		replaces string
		want     string
	}{
		"nothing is in the way":  {nil, "", ""},
		"its plan is under way":  {bringing(protocol.PlanStarted), "", reasonPlanUnderWay},
		"its plan is stuck":      {bringing(protocol.PlanBlocked), "", ""},
		"its plan has ended":     {bringing(protocol.PlanFinished), "", ""},
		"another one follows it": {nil, "tide.v1", reasonReplacing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := namespace()
			if c.log != nil {
				w = namespace(c.log)
			}
			next := &scope.Operator{Object: &unstructured.Unstructured{Object: map[string]any{}}}
			next.Object.SetName("next.v1")
			next.CSV.Spec.Replaces = c.replaces
			w.Snapshot.Installed = scope.InstalledOf([]*scope.Operator{next}, nil)
			got := ""
			if f := busy(&w.Snapshot, protocol.Removal{CSV: "tide.v1"}); f != nil {
				got = f.Reason
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestRemovals: what was begun is brought to its end, whether anybody still asks for it or not, and once.
func TestRemovals(t *testing.T) {
	t.Parallel()
	log := func(id, phase string) *kube.Execution {
		return &kube.Execution{
			Spec:   kube.ExecutionSpec{Plan: id, Removal: &protocol.Removal{ID: id}},
			Status: kube.ExecutionStatus{Begun: true, Phase: phase},
		}
	}
	w := namespace(log("asked", protocol.PlanStarted), log("begun", protocol.PlanBlocked),
		log("ended", protocol.PlanFinished), &kube.Execution{Spec: kube.ExecutionSpec{Plan: "p"}})
	w.Snapshot.Wanted.Removals = []protocol.Removal{{ID: "asked"}, {ID: "new"}}
	got := ""
	for _, r := range removals(&w.Snapshot) {
		got += r.ID + " "
	}
	if got != "asked new begun " {
		t.Errorf("got %s", got)
	}
}
