package serving

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

func (w worker) state(ctx context.Context, m *scope.Operator, deployments []appsv1.Deployment) (csv.Serving, error) {
	var out csv.Serving
	if m.Status.Phase == csv.PhaseInstalling || m.Status.Phase == csv.PhaseFailed {
		_, left, known, err := w.unconverted(ctx, m, deployments)
		if err != nil {
			return out, err
		}
		if len(left) > 0 || !known { // whom it replaces converts until then, and must not go
			out.Waiting = "its CRDs are not converted by it yet"
		}
	}
	if !scope.Serves(m.CSV) {
		return out, nil
	}
	if err := render.CheckServing(m.CSV); err != nil {
		out.InvalidWebhook = err.Error()
		return out, nil //nolint:nilerr // the error is what was asked for
	}
	for _, c := range w.Called(m.CSV) {
		k := w.Found.Certificates[c.Secret]
		out.RotationDue = out.RotationDue || k.Gone || k.Problem(w.Env.Now(), c.Hosts) != "" || k.Due(w.Env.Now())
	}
	if w.ToCall(m) {
		out.Waiting = "webhooks and API services are not in place yet"
		return out, nil
	}
	if m.Status.Phase == csv.PhaseInstalling || m.Status.Phase == csv.PhaseSucceeded ||
		m.Status.Phase == csv.PhaseFailed {
		q := certs.APIs{
			Client: w.Env.Client, Namespace: w.Namespace, Certificates: w.Found.Certificates, Now: w.Env.Now(),
			Running: w.Running(m, deployments).Healthy,
		}
		if err := q.Judge(ctx, m.CSV, &out); err != nil {
			return out, err
		}
		if out.Waiting != "" {
			w.Attempts.Soon(w.Env.Pause) // no notification says when the API server has asked again
		}
	}
	return out, nil
}
