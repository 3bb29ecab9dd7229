package deferred

import (
	"context"
	"slices"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// callers carries out the steps that a plan had to leave, once the Deployments answer.
func (w worker) callers(ctx context.Context, m *scope.Operator) (bool, error) {
	steps := w.Snapshot.Executions.DeferredSteps(m)
	s, ok := w.Snapshot.Target(m)
	if len(steps) == 0 || !ok {
		return false, nil
	}
	deployments, err := w.ReadDeployments(ctx)
	if err != nil || !w.Running(m, deployments).Healthy {
		return false, err
	}
	objects, f := w.Render(ctx, s.Bundle, s.Config)
	if f != nil {
		w.Env.Log.WarnContext(ctx, "webhooks and API services cannot be written", "csv", m.Name(), "namespace",
			w.Namespace, "reason", f.Reason, "message", f.Message)
		w.Attempts.Soon(w.Env.Pause)
		return false, nil
	}
	for _, step := range steps {
		i := slices.IndexFunc(objects, func(o render.Object) bool {
			return o.GVK.Group == step.Group && o.GVK.Kind == step.Kind && o.Name == step.Name
		})
		if i >= 0 { // what it renders to now need not hold it any more
			written, err := w.Objects.In(w.Scope).Reapply(ctx, s, objects[i])
			if err != nil {
				return false, err
			}
			step.UID = string(written.GetUID())
		}
		step.State, step.Epoch, step.Time, step.Warnings = kube.StepDone, w.Env.Client.Number, w.Env.Now().UTC(), nil
	}
	return true, w.Objects.In(w.Scope).SaveLog(ctx, w.Snapshot.Executions.Of(m.Plan), "summoned")
}
