package deferred

import (
	"context"

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
	objects, f := w.Render(ctx, s.Rendering, s.Bundle, s.Config)
	if f != nil {
		w.Env.Log.WarnContext(ctx, "webhooks and API services cannot be written", "csv", m.Name(), "namespace",
			w.Namespace, "reason", f.Reason, "message", f.Message)
		w.Attempts.Soon(w.Env.Pause)
		return false, nil
	}
	for _, step := range steps {
		if o := objectOf(step, objects); o != nil {
			written, err := w.Objects.In(w.Scope).Reapply(ctx, s, *o)
			if err != nil {
				return false, err
			}
			step.UID = string(written.GetUID())
		}
		carriedOut(step, w.Env.Client.Number, w.Env.Now())
	}
	return true, w.Objects.In(w.Scope).SaveLog(ctx, w.Snapshot.Executions.Of(m.Plan), "summoned")
}
