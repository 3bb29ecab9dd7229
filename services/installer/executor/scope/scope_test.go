package scope

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// follower is an operator that replaces another one; back is one that a rollback brought.
func follower(name, replaces string, phase csv.Phase, back bool) *Operator {
	m := &Operator{Object: &unstructured.Unstructured{Object: map[string]any{}}, Status: csv.Status{Phase: phase}}
	m.Object.SetName(name)
	m.Object.SetUID(types.UID("uid-" + name))
	m.CSV.Name, m.CSV.Spec.Replaces = name, replaces
	if back {
		m.Object.SetAnnotations(map[string]string{AnnotationReason: ReasonRollback})
	}
	return m
}

// TestServesOn: R-CSV-50: who is kept up while another one is to replace it: of one that the record does not name,
// nobody knows how it is configured.
func TestServesOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		phase    csv.Phase
		recorded string
		want     bool
	}{
		"it waits":            {csv.PhaseReplacing, "tide.v1", true},
		"it is not recorded":  {csv.PhaseReplacing, "tide.v2", false},
		"nothing replaces it": {csv.PhaseSucceeded, "tide.v1", false},
		"it is about to go":   {csv.PhaseDeleting, "tide.v1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Snapshot{Wanted: protocol.ScopePlans{Installed: []protocol.Installed{{CSV: c.recorded}}}}
			if got := s.ServesOn(follower("tide.v1", "", c.phase, false)); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// TestWritten: what an operator looks like at rest is what its plan wrote. Of one that failed before its webhooks,
// these are never written after: nobody stands behind them.
func TestWritten(t *testing.T) {
	t.Parallel()
	object := func(kind, name string) render.Object {
		o := render.Object{Namespace: "ops", Name: name, Resolving: "tide.v1"}
		o.GVK.Kind = kind
		return o
	}
	objects := []render.Object{
		object("ConfigMap", "tide"), object("Deployment", "tide"),
		object("ValidatingWebhookConfiguration", "tide"),
	}
	step := func(kind, state string) kube.Step {
		return kube.Step{Kind: kind, Namespace: "ops", Name: "tide", State: state}
	}
	log := &kube.ExecutionStatus{
		Phase: protocol.PlanFailed,
		Steps: []kube.Step{step("ConfigMap", kube.StepDone), step("Deployment", kube.StepTaken)},
	}
	for name, c := range map[string]struct {
		log  *kube.ExecutionStatus
		want []string
	}{
		"a plan that failed on the way": {log, []string{"ConfigMap"}},
		"all parts of a bundle":         {nil, []string{"ConfigMap", "Deployment", "ValidatingWebhookConfiguration"}},
	} {
		w := &Scope{opened: map[string]Plan{"p": {Objects: objects}}}
		got, f := w.ObjectsOf(t.Context(), RenderTarget{
			Plan: "p", Bundle: events.PlannedBundle{CSV: "tide.v1"},
			Log: c.log,
		})
		if f != nil || len(got) != len(c.want) {
			t.Errorf("%s: %v, %v", name, got, f)
			continue
		}
		for i, o := range got {
			if o.GVK.Kind != c.want[i] {
				t.Errorf("%s: object %d is a %s", name, i, o.GVK.Kind)
			}
		}
	}
}

// TestAPlanIsUnderWayByItsLog: whether a plan is under way says its log alone. One that is not opened freezes its
// operators, and no removal begins beside it unless it is stuck (R-IP-11, R-CSV-50, R-UNI-1).
func TestAPlanIsUnderWayByItsLog(t *testing.T) {
	t.Parallel()
	two := &Operator{Object: &unstructured.Unstructured{
		Object: map[string]any{"metadata": map[string]any{"name": "tide.v2"}},
	}, Plan: "p"}
	left := func(gvk schema.GroupVersionKind) []kube.Step {
		return []kube.Step{{State: kube.StepLeft, Operator: "tide.v2", Group: gvk.Group, Kind: gvk.Kind}}
	}
	monitor := schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"}
	for name, c := range map[string]struct {
		status                          kube.ExecutionStatus
		listed, opened                  bool
		planned, frozen, toCall, aborts bool
	}{
		"opened, not begun": {kube.ExecutionStatus{}, true, true, false, false, false, false},
		"begun": {
			kube.ExecutionStatus{Begun: true, Phase: protocol.PlanStarted},
			true, true, true, false,
			true, false,
		},
		"begun, not opened": {
			kube.ExecutionStatus{Begun: true, Phase: protocol.PlanStarted},
			true, false, true, true,
			false, false,
		},
		"begun, withheld": {
			kube.ExecutionStatus{Begun: true, Phase: protocol.PlanStarted},
			false, false, true, true,
			false, true,
		},
		"begun and blocked": {
			kube.ExecutionStatus{Begun: true, Phase: protocol.PlanBlocked},
			true, true, true, false,
			true, true,
		},
		"finished": {
			kube.ExecutionStatus{Begun: true, Phase: protocol.PlanFinished},
			true, false, false,
			false, false, false,
		},
		"failed": {
			kube.ExecutionStatus{Begun: true, Phase: protocol.PlanFailed},
			true, false, false, false,
			false, false,
		},
		"finished, one left": {kube.ExecutionStatus{
			Begun: true, Phase: protocol.PlanFinished,
			Steps: left(render.GVKValidatingWebhook),
		}, true, false, false, false, true, false},
		"one for its kind": {
			kube.ExecutionStatus{Begun: true, Phase: protocol.PlanFinished, Steps: left(monitor)},
			true, false, false, false, false, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := &kube.Execution{Spec: kube.ExecutionSpec{Plan: "p", Operators: []string{"tide.v2"}}, Status: c.status}
			w := &Scope{Snapshot: Snapshot{Executions: Executions{x}}, opened: map[string]Plan{}}
			if c.listed {
				w.Snapshot.Wanted.Plans = []protocol.Plan{{ID: "p"}}
			}
			if c.opened {
				w.opened["p"] = Plan{Objects: []render.Object{
					{GVK: render.GVKValidatingWebhook, Name: "hook", Resolving: "tide.v2"},
				}}
			}
			if got := w.Snapshot.Executions.Planned("tide.v2"); got != c.planned ||
				w.Snapshot.Executions.Planned("tide.v1") {
				t.Errorf("planned: %v, want %v; of another one %v", got, c.planned,
					w.Snapshot.Executions.Planned("tide.v1"))
			}
			if got := w.Frozen(two); got != c.frozen {
				t.Errorf("frozen: %v, want %v", got, c.frozen)
			}
			if got := w.ToCall(two); got != c.toCall {
				t.Errorf("has yet to tell the API server: %v, want %v", got, c.toCall)
			}
			stuck := c.planned && w.Snapshot.Stuck(x)
			if stuck != c.aborts {
				t.Errorf("a removal of it ends the plan: %v, want %v", stuck, c.aborts)
			}
		})
	}
}

// TestWithout: who leaves is taken out of those that are followed, and a reading that somebody holds stays as it was.
func TestWithout(t *testing.T) {
	t.Parallel()
	before := InstalledOf([]*Operator{
		follower("wind.v1", "", csv.PhaseSucceeded, false), follower("tide.v1", "", csv.PhaseSucceeded, false),
	}, nil)
	after := before.Without(Executions{{
		Spec:   kube.ExecutionSpec{Plan: "r", Removal: &protocol.Removal{ID: "r", CSV: "tide.v1"}},
		Status: kube.ExecutionStatus{Begun: true, Phase: protocol.PlanStarted},
	}})
	if len(before.Operators) != 2 || before.Operators[0].Name() != "tide.v1" || len(before.Uninstalling) != 0 {
		t.Errorf("the reading has become %+v", before)
	}
	if len(after.Operators) != 1 || after.Operators[0].Name() != "wind.v1" || len(after.Uninstalling) != 1 ||
		after.Lives("tide.v1") || len(after.Everybody()) != 2 {
		t.Errorf("got %+v", after)
	}
}
