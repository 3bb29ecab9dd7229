package executor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// optional reports a kind that the cluster's settings do not have an operator wait for.
func (w *work) optional(gvk schema.GroupVersionKind) bool {
	return w.plans.Settings.IsOptional(gvk.Group, gvk.Kind)
}

// unserved reports an error that says that the kind of an object is not served, where that is no reason to wait.
func (w *work) unserved(gvk schema.GroupVersionKind, err error) bool {
	return err != nil && w.optional(gvk) && failure.Classify(err).Reason == failure.ReasonNotServed
}

// waitsFor says what an object that is left out waits for.
func waitsFor(kind, group string) string { return fmt.Sprintf("waits for %s (%s)", kind, group) }

// leave notes a step whose kind the cluster does not serve and that no operator needs: it is done when the kind appears
// (bringLate).
func leave(entry kube.Step, o render.Object) kube.Step {
	entry.State, entry.Operator, entry.Warnings = kube.StepLeft, o.Resolving, []string{waitsFor(o.GVK.Kind, o.GVK.Group) + ": it is written when the cluster serves that"}
	return entry
}

// late are the steps of an operator's plan, which has ended, that were left since their kinds were not served.
func (w *work) late(m *member) []*kube.Step { return w.leftSteps(m, false) }

// leftSteps are the steps that the plan of an operator left: those that have the API server call it, or the others.
func (w *work) leftSteps(m *member, callers bool) []*kube.Step {
	x := w.execution(m.plan)
	if x == nil || !ended(x) {
		return nil
	}
	var out []*kube.Step
	for n := range x.Status.Steps {
		s := &x.Status.Steps[n]
		calls := s.Group == render.GVKAPIService.Group || s.Group == render.GVKValidatingWebhook.Group
		if s.State == kube.StepLeft && s.Operator == m.name() && calls == callers {
			out = append(out, s)
		}
	}
	return out
}

// bringLate writes what plans left since its kind was not served, as soon as it is.
func (w *work) bringLate(ctx context.Context) error {
	if w.refused || !w.live.group.one || w.stopped() != nil {
		return nil
	}
	waiting := map[string]bool{}
	for _, m := range w.members {
		late := w.late(m)
		s, ok := w.subject(m)
		if len(late) == 0 || !ok || halted(m) {
			continue
		}
		for _, step := range late {
			waiting[step.Group] = true
		}
		if !w.waits(m.name(), partLate) {
			if err := w.alone(ctx, m.name(), partLate, w.bring(ctx, m, s, late)); err != nil {
				return err
			}
		}
	}
	w.holdForKinds(slices.Collect(maps.Keys(waiting)))
	return nil
}

// bring writes those of the steps whose kinds are served now.
func (w *work) bring(ctx context.Context, m *member, s subject, late []*kube.Step) error {
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
	objects, f := w.render(ctx, s.bundle, s.config)
	if f != nil {
		return fmt.Errorf("%s: %s", f.Reason, f.Message)
	}
	done := false
	for _, step := range late {
		i := slices.IndexFunc(objects, func(o render.Object) bool {
			return o.GVK.Group == step.Group && o.GVK.Kind == step.Kind && o.Namespace == step.Namespace && o.Name == step.Name
		})
		if i >= 0 { // what it renders to now need not hold it any more
			written, err := w.reapply(ctx, s, objects[i])
			if w.unserved(objects[i].GVK, err) {
				continue // in this version not, or not yet
			}
			if err != nil {
				return err
			}
			step.UID = string(written.GetUID())
		}
		step.State, step.Epoch, step.Time, step.Warnings, done = kube.StepDone, w.client.Number, w.cfg.Now().UTC(), nil, true
	}
	if !done {
		return nil
	}
	w.cfg.Log.InfoContext(ctx, "objects were written that waited for their kind", "csv", m.name(), "namespace", w.ns)
	return w.save(ctx, w.execution(m.plan), "late")
}

// defined reports a kind that a definition of the cluster may serve. Whether it does shows the write.
func (w *work) defined(ctx context.Context, gk schema.GroupKind) bool {
	name := kube.Resource(schema.GroupVersionKind{Group: gk.Group, Kind: gk.Kind}).Resource + "." + gk.Group
	if w.watcher.Absent(gvkCRD, "", name) {
		return false
	}
	o, err := w.client.Get(ctx, gvkCRD, "", name)
	if err != nil || o == nil {
		return false
	}
	conditions, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	return err == nil && slices.ContainsFunc(conditions, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == "Established" && m["status"] == "True"
	})
}

// waitingComponents are the objects of an operator that are left out, with what they wait for.
func (w *work) waitingComponents(m *member) []protocol.Component {
	var out []protocol.Component
	for _, s := range w.late(m) {
		out = append(out, protocol.Component{
			ObjectRef: protocol.ObjectRef{Group: s.Group, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name},
			Status:    protocol.ComponentWaiting, Message: waitsFor(s.Kind, s.Group),
		})
	}
	return out
}

// conditionsOf are what is out of the ordinary with an operator whatever its phase.
func (w *work) conditionsOf(m *member) []protocol.Condition {
	var since time.Time
	for _, s := range w.late(m) {
		if since.IsZero() || s.Time.Before(since) {
			since = s.Time
		}
	}
	return csv.Conditions(w.waitingComponents(m), since)
}

// holdForKinds notes the API groups that objects of the namespace wait for.
func (w *work) holdForKinds(groups []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(groups) == 0 {
		delete(w.awaited, w.ns)
		return
	}
	w.awaited[w.ns] = groups
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

// withWaiting says of the components of an operator which are left out.
func withWaiting(have, waiting []protocol.Component) []protocol.Component {
	for _, l := range waiting {
		i := slices.IndexFunc(have, func(c protocol.Component) bool {
			return l.Group == c.Group && l.Kind == c.Kind && l.Namespace == c.Namespace && l.Name == c.Name
		})
		if i < 0 {
			have = append(have, l)
			continue
		}
		have[i].Status, have[i].Message = l.Status, l.Message
	}
	return have
}
