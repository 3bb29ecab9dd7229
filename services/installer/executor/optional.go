package executor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// leave notes a step whose kind the cluster does not serve and that no operator needs: it is done when the kind appears
// (bringLate).
func leave(entry kube.Step, o render.Object) kube.Step {
	entry.State, entry.Operator, entry.Warnings = kube.StepLeft, o.Resolving, []string{scope.WaitsFor(o.GVK.Kind, o.GVK.Group) + ": it is written when the cluster serves that"}
	return entry
}

// bringLate writes what plans left since its kind was not served, as soon as it is.
func (w *work) bringLate(ctx context.Context) error {
	if w.RecordBehind || !w.Live.Group.One || w.Stopped() != nil {
		return nil
	}
	waiting := map[string]bool{}
	for _, m := range w.Operators {
		late := w.LateSteps(m)
		s, ok := w.Target(m)
		if len(late) == 0 || !ok || scope.Halted(m) {
			continue
		}
		for _, step := range late {
			waiting[step.Group] = true
		}
		if !w.Waits(m.Name(), scope.PartLate) {
			if err := w.Alone(ctx, m.Name(), scope.PartLate, w.bring(ctx, m, s, late)); err != nil {
				return err
			}
		}
	}
	w.holdForKinds(slices.Collect(maps.Keys(waiting)))
	return nil
}

// bring writes those of the steps whose kinds are served now.
func (w *work) bring(ctx context.Context, m *scope.Operator, s scope.RenderTarget, late []*kube.Step) error {
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
	objects, f := w.Render(ctx, s.Bundle, s.Config)
	if f != nil {
		return fmt.Errorf("%s: %s", f.Reason, f.Message)
	}
	done := false
	for _, step := range late {
		i := slices.IndexFunc(objects, func(o render.Object) bool {
			return o.GVK.Group == step.Group && o.GVK.Kind == step.Kind && o.Namespace == step.Namespace && o.Name == step.Name
		})
		if i >= 0 { // what it renders to now need not hold it any more
			written, err := w.objects.In(w.Scope).Reapply(ctx, s, objects[i])
			if w.Unserved(objects[i].GVK, err) {
				continue // in this version not, or not yet
			}
			if err != nil {
				return err
			}
			step.UID = string(written.GetUID())
		}
		step.State, step.Epoch, step.Time, step.Warnings, done = kube.StepDone, w.Client.Number, w.Now().UTC(), nil, true
	}
	if !done {
		return nil
	}
	w.Log.InfoContext(ctx, "objects were written that waited for their kind", "csv", m.Name(), "namespace", w.Namespace)
	return w.save(ctx, w.Execution(m.Plan), "late")
}

// defined reports a kind that a definition of the cluster may serve. Whether it does shows the write.
func (w *work) defined(ctx context.Context, gk schema.GroupKind) bool {
	name := kube.Resource(schema.GroupVersionKind{Group: gk.Group, Kind: gk.Kind}).Resource + "." + gk.Group
	if w.Watcher.Absent(kube.GVKCRD, "", name) {
		return false
	}
	o, err := w.Client.Get(ctx, kube.GVKCRD, "", name)
	if err != nil || o == nil {
		return false
	}
	conditions, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	return err == nil && slices.ContainsFunc(conditions, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == "Established" && m["status"] == "True"
	})
}

// holdForKinds notes the API groups that objects of the namespace wait for.
func (w *work) holdForKinds(groups []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(groups) == 0 {
		delete(w.awaited, w.Namespace)
		return
	}
	w.awaited[w.Namespace] = groups
}

// awaiting are the namespaces that wait for a definition, by its name.
func (s *session) awaiting(definition string) []string {
	_, group, _ := strings.Cut(definition, ".")
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for ns, groups := range s.awaited {
		if slices.Contains(groups, group) {
			out = append(out, ns)
		}
	}
	return out
}
