package lifecycle

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/webhooks"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// maxUnready bounds of how many Deployments of one operator is found why they are not ready: ten are a large operator.
const maxUnready = 10

// whyUnready says, by name, why Deployments of an operator are not ready. Nothing is asked of the cluster while all
// are.
func (w worker) whyUnready(ctx context.Context, m *scope.Operator, own []appsv1.Deployment) map[string]string {
	if w.Found.Unready == nil {
		w.Found.Unready = map[string]map[string]protocol.NotReady{}
	}
	delete(w.Found.Unready, m.Name())
	if m.Status.Phase == csv.PhaseReplacing || m.Status.Phase == csv.PhaseDeleting {
		return nil // it is about to go
	}
	texts, found := map[string]string{}, map[string]protocol.NotReady{}
	for i := range own {
		if healthy, _, _ := csv.Health(own[i]); healthy {
			w.Stage.Unready.Ready(&own[i])
			continue
		}
		if len(found) < maxUnready {
			n := w.notReady(ctx, m, &own[i])
			found[n.Deployment], texts[n.Deployment] = n, n.Message
		}
	}
	if len(found) > 0 {
		w.Found.Unready[m.Name()] = found
	}
	return texts
}

func (w worker) notReady(ctx context.Context, m *scope.Operator, d *appsv1.Deployment) protocol.NotReady {
	cause, again, err := w.Stage.Unready.Cause(ctx, d)
	if err != nil {
		w.Env.Log.DebugContext(ctx, "it is not known why a Deployment is not ready", "deployment", d.Name, "csv",
			m.Name(), "namespace", w.Namespace, "error", err)
	}
	w.Attempts.Soon(again)
	n := protocol.NotReady{Deployment: d.Name, Reason: cause.Reason, Message: cause.Message, Webhook: cause.Webhook}
	if owners := w.Webhooks.Known(ctx, w.Env.Log, cause.Webhook); len(owners) > 0 {
		n.Message += "; " + webhooks.Sentence(cause.Webhook, owners)
		if of := owners[0].Operator; of != (kube.Operator{}) {
			n.Owner = of.String()
		}
	}
	return n
}
