package deferred

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// late writes what plans left since its kind was not served, as soon as it is.
func (w worker) late(ctx context.Context) error {
	if w.Snapshot.RecordBehind || !w.Found.Group.One || w.Stopped() != nil {
		return nil
	}
	waiting := map[string]bool{}
	for _, m := range w.Snapshot.Installed.Operators {
		late := w.Snapshot.Executions.LateSteps(m)
		s, ok := w.Snapshot.Target(m)
		if len(late) == 0 || !ok || scope.Halted(m) {
			continue
		}
		for _, step := range late {
			waiting[step.Group] = true
		}
		if !w.Attempts.Waits(m.Name(), scope.PartLate) {
			if err := w.Attempts.Alone(ctx, m.Name(), scope.PartLate, w.write(ctx, m, s, late)); err != nil {
				return err
			}
		}
	}
	w.Await(w.Namespace, slices.Sorted(maps.Keys(waiting)))
	return nil
}

// write writes those of the steps whose kinds are served now.
func (w worker) write(ctx context.Context, m *scope.Operator, s scope.RenderTarget, late []*kube.Step) error {
	served := map[schema.GroupKind]bool{}
	late = slices.DeleteFunc(late, func(step *kube.Step) bool {
		gk := schema.GroupKind{Group: step.Group, Kind: step.Kind}
		if _, asked := served[gk]; !asked {
			served[gk] = w.defined(ctx, gk)
		}
		return !served[gk]
	})
	if len(late) == 0 {
		return nil
	}
	objects, f := w.Render(ctx, s.Rendering, s.Bundle, s.Config)
	if f != nil {
		return fmt.Errorf("%s: %s", f.Reason, f.Message)
	}
	done := false
	for _, step := range late {
		if o := objectOf(step, objects); o != nil {
			written, err := w.Objects.In(w.Scope).Reapply(ctx, s, *o)
			if w.Snapshot.Unserved(o.GVK, err) {
				continue // in this version not, or not yet
			}
			if err != nil {
				return err
			}
			step.UID = string(written.GetUID())
		}
		carriedOut(step, w.Env.Client.Number, w.Env.Now())
		done = true
	}
	if !done {
		return nil
	}
	w.Env.Log.InfoContext(ctx, "objects were written that waited for their kind", "csv", m.Name(), "namespace",
		w.Namespace)
	return w.Objects.In(w.Scope).SaveLog(ctx, w.Snapshot.Executions.Of(m.Plan), "late")
}

// defined reports a kind that a definition of the cluster may serve. Whether it does shows the write.
func (w worker) defined(ctx context.Context, gk schema.GroupKind) bool {
	name := kube.Resource(schema.GroupVersionKind{Group: gk.Group, Kind: gk.Kind}).Resource + "." + gk.Group
	if w.Env.Watcher.Absent(kube.GVKCRD, "", name) {
		return false
	}
	o, err := w.Env.Client.Get(ctx, kube.GVKCRD, "", name)
	return err == nil && o != nil && established(o)
}
