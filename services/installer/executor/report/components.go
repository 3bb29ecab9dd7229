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
	w.Live.Components = map[string][]protocol.Component{}
	if w.RecordBehind {
		return nil
	}
	for _, m := range w.Operators {
		refs, err := w.Parts.Of(ctx, w.Scope, m)
		if err != nil { // its bundle cannot be had now
			w.Log.DebugContext(ctx, "components are not known", "csv", m.Name(), "namespace", w.Namespace, "error", err)
			continue
		}
		list := make([]protocol.Component, 0, len(refs))
		for _, ref := range refs {
			c, err := w.component(ctx, m, ref)
			if err := w.Alone(ctx, m.Name(), scope.PartComponents, err); err != nil {
				return err
			}
			if err == nil {
				list = append(list, c)
			}
		}
		w.Live.Components[m.Name()] = scope.WithWaiting(list, w.WaitingComponents(m))
	}
	return nil
}

func (w worker) component(ctx context.Context, m *scope.Operator, ref protocol.ObjectRef) (protocol.Component, error) {
	gvk := schema.GroupVersionKind{Group: ref.Group, Version: ref.Version, Kind: ref.Kind}
	if gvk == kube.GVKInstalledOperator {
		return csv.ComponentOfPhase(ref, m.Status), nil
	}
	if o, listed := w.Live.Deployments.ByName[ref.Name]; listed && gvk == kube.GVKDeployment {
		c := csv.ComponentOf(ref, o)
		if d, ok := w.Live.Unready[m.Name()][ref.Name]; ok && d.Message != "" {
			c.Message = d.Message
		}
		return c, nil
	}
	if there, leaving := w.Watcher.There(gvk, ref.Namespace, ref.Name); there && gvk != kube.GVKDeployment {
		return csv.ComponentOfRow(ref, leaving, m.Status.RequirementStatus), nil
	}
	if x := w.Execution(m.Plan); x != nil && !scope.Ended(x) &&
		!x.Status.Wrote(gvk.Group, gvk.Kind, ref.Namespace, ref.Name) {
		return csv.ComponentOf(ref, nil), nil // its step is still to come
	}
	o, err := w.Client.Get(ctx, gvk, ref.Namespace, ref.Name)
	if err != nil {
		return protocol.Component{}, err
	}
	return csv.ComponentOf(ref, o), nil
}
