package report

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

func (w worker) components(ctx context.Context) error {
	w.Found.Components = map[string][]protocol.Component{}
	if w.Snapshot.RecordBehind {
		return nil
	}
	for _, m := range w.Snapshot.Installed.Operators {
		refs, err := w.Env.Parts.Of(ctx, w.Scope, m)
		if err != nil { // its bundle cannot be had now
			w.Env.Log.DebugContext(ctx, "components are not known", "csv", m.Name(), "namespace", w.Namespace, "error",
				err)
			continue
		}
		list := make([]protocol.Component, 0, len(refs))
		for _, ref := range refs {
			c, err := w.component(ctx, m, ref)
			if err := w.Attempts.Alone(ctx, m.Name(), scope.PartComponents, err); err != nil {
				return err
			}
			if err == nil {
				list = append(list, c)
			}
		}
		w.Found.Components[m.Name()] = scope.WithWaiting(list, w.Snapshot.Executions.WaitingComponents(m))
	}
	return nil
}

func (w worker) component(ctx context.Context, m *scope.Operator, ref protocol.ObjectRef) (protocol.Component, error) {
	gvk := schema.GroupVersionKind{Group: ref.Group, Version: ref.Version, Kind: ref.Kind}
	if gvk == kube.GVKInstalledOperator {
		return csv.ComponentOfPhase(ref, m.Status), nil
	}
	if o, listed := w.Snapshot.Deployments.ByName[ref.Name]; listed && gvk == kube.GVKDeployment {
		c := csv.ComponentOf(ref, o)
		if d, ok := w.Found.Unready[m.Name()][ref.Name]; ok && d.Message != "" {
			c.Message = d.Message
		}
		return c, nil
	}
	if there, leaving := w.Env.Watcher.There(gvk, ref.Namespace, ref.Name); there && gvk != kube.GVKDeployment {
		return csv.ComponentOfRow(ref, leaving, m.Status.RequirementStatus), nil
	}
	if x := w.Snapshot.Executions.Of(m.Plan); x != nil && !scope.Ended(x) &&
		!x.Status.Wrote(gvk.Group, gvk.Kind, ref.Namespace, ref.Name) {
		return csv.ComponentOf(ref, nil), nil // its step is still to come
	}
	o, err := w.Env.Client.Get(ctx, gvk, ref.Namespace, ref.Name)
	if err != nil {
		return protocol.Component{}, err
	}
	return csv.ComponentOf(ref, o), nil
}
