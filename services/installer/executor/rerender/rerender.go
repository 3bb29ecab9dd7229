// Package rerender finds for each operator at rest how its objects are to look under the overlays of now. What is no
// Deployment and does not look so is written at once; Deployments wait for the phases that write them (R-CSV-10).
//
// An operator that waits behind its successor has no such phases, and may serve for weeks if that one fails: what is
// still its own is written at once, Deployments last (R-CSV-50).
package rerender

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/objects"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// Conversions knows who converts CustomResourceDefinitions.
type Conversions interface {
	Hold(ctx context.Context, sc *scope.Scope, t scope.RenderTarget) error
	Trust(ctx context.Context, sc *scope.Scope, t scope.RenderTarget, name string) error
}

// Stage renders operators anew, once for each input of their overlays.
type Stage struct {
	Objects     *objects.Objects
	Conversions Conversions
}

type worker struct {
	*Stage
	*scope.Scope
}

// Reconcile renders the operators anew whose overlays have other inputs than before.
func (s *Stage) Reconcile(ctx context.Context, sc *scope.Scope) (res scope.Result, err error) {
	if sc.Stopped() != nil || !sc.Found.Group.One { // whom it serves is not known without a group
		return res, nil
	}
	for _, m := range sc.Snapshot.Installed.Operators {
		if sc.Attempts.Waits(m.Name(), scope.PartOverlays) {
			continue
		}
		if err := sc.Attempts.Alone(ctx, m.Name(), scope.PartOverlays, s.Operator(ctx, sc, m)); err != nil {
			return res, err
		}
	}
	return res, nil
}

// Operator is Reconcile of one operator, with its error.
func (s *Stage) Operator(ctx context.Context, sc *scope.Scope, m *scope.Operator) error {
	return worker{s, sc}.one(ctx, m)
}

// one renders one operator anew where what its overlays depend on has changed.
func (w worker) one(ctx context.Context, m *scope.Operator) error {
	s, ok := w.Snapshot.Target(m)
	if !ok || !w.Snapshot.AtRest(m) && !w.Snapshot.ServesOn(m) || !w.Found.Group.One {
		return nil
	}
	inputs, err := w.Objects.Overlays(w.Scope).Inputs(s)
	if err != nil {
		return err
	}
	if have, ok := w.RenderedState(m); ok && have.Inputs == inputs {
		return nil
	}
	next, err := w.rerender(ctx, m, s, inputs)
	if next != nil && err == nil {
		w.SetRenderedState(m, *next)
	}
	return err
}

// rerender renders an operator's objects anew and writes those that are to change at once; nil while its bundle is not
// to be had: then it stays as it is.
func (w worker) rerender(ctx context.Context, m *scope.Operator, s scope.RenderTarget, inputs string) (
	*scope.RenderedState, error,
) {
	objects, f := w.ObjectsOf(ctx, s)
	if f != nil {
		w.Env.Log.WarnContext(ctx, "the objects of an operator cannot be rendered", "csv", s.Bundle.CSV, "namespace",
			w.Namespace, "reason", f.Reason, "message", f.Message)
		if f.Class != failure.Conflict { // rules that this release does not have do not come back by themselves
			w.Attempts.Soon(w.Env.Pause)
		}
		return nil, nil //nolint:nilnil // not known now is an answer here
	}
	if err := w.Conversions.Hold(ctx, w.Scope, s); err != nil {
		return nil, err
	}
	var last []render.Object
	out := &scope.RenderedState{Inputs: inputs, Digests: map[string]string{}}
	for _, o := range objects {
		body, rendered, err := w.Objects.Overlays(w.Scope).Apply(s, o)
		if err != nil {
			return nil, err
		}
		if rendered == "" {
			continue
		}
		out.Digests[scope.ObjectKey(body.GetKind(), o.Name)] = rendered
		if o.GVK == kube.GVKDeployment {
			last = append(last, o)
			continue
		}
		if err := w.reapplyIfChanged(ctx, m, s, o, rendered); err != nil {
			return nil, err
		}
	}
	for _, o := range last {
		if !w.Snapshot.ServesOn(m) {
			break
		}
		if err := w.reapplyIfChanged(ctx, m, s, o, out.Digests[scope.ObjectKey(o.GVK.Kind, o.Name)]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// reapplyIfChanged writes an object where it does not look as it is to look, and where it is not a successor's by now.
func (w worker) reapplyIfChanged(ctx context.Context, m *scope.Operator, s scope.RenderTarget, o render.Object,
	rendered string,
) error {
	if o.GVK == kube.GVKCSV {
		if m.Object.GetAnnotations()[scope.AnnotationRendered] == rendered {
			return nil
		}
		written, err := w.Objects.In(w.Scope).Reapply(ctx, s, o)
		if err == nil {
			m.Take(written)
		}
		return err
	}
	if o.GVK == kube.GVKCRD && w.Snapshot.ServesOn(m) {
		return w.Conversions.Trust(ctx, w.Scope, s, o.Name)
	}
	live, err := w.Env.Client.Get(ctx, o.GVK, o.Namespace, o.Name)
	own := kube.Operator{Namespace: w.Namespace, Name: m.Name()}
	if err != nil || !rewrites(live, rendered, own, w.Snapshot.ServesOn(m)) {
		return err
	}
	_, err = w.Objects.In(w.Scope).Reapply(ctx, s, o)
	return err
}
