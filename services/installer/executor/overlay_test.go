package executor

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// TestWritten: what an operator looks like at rest is what its plan wrote. Of one that failed before its webhooks, these
// are never written after: nobody stands behind them.
func TestWritten(t *testing.T) {
	t.Parallel()
	object := func(kind, name string) render.Object {
		o := render.Object{Namespace: "ops", Name: name, Resolving: "tide.v1"}
		o.GVK.Kind = kind
		return o
	}
	objects := []render.Object{object("ConfigMap", "tide"), object("Deployment", "tide"), object("ValidatingWebhookConfiguration", "tide")}
	step := func(kind, state string) kube.Step {
		return kube.Step{Kind: kind, Namespace: "ops", Name: "tide", State: state}
	}
	log := &kube.ExecutionStatus{Phase: protocol.PlanFailed, Steps: []kube.Step{step("ConfigMap", kube.StepDone), step("Deployment", kube.StepTaken)}}
	for name, c := range map[string]struct {
		log  *kube.ExecutionStatus
		want []string
	}{
		"a plan that failed on the way": {log, []string{"ConfigMap"}},
		"all parts of a bundle":         {nil, []string{"ConfigMap", "Deployment", "ValidatingWebhookConfiguration"}},
	} {
		w := &work{opened: map[string]ready{"p": {objects: objects}}}
		got, f := w.objectsOf(t.Context(), subject{plan: "p", bundle: events.PlannedBundle{CSV: "tide.v1"}, log: c.log})
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
