package executor

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/clusterconfig"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// fit finds for each operator at rest how its objects are to look now. What is no Deployment and does not look so is
// written at once; Deployments wait for the phases that write them (R-CSV-10). Rendering is done once for each input.
//
// One that waits behind its successor has no such phases, and may serve for weeks if that one fails: what is still its
// own is written at once, Deployments last (R-CSV-50).
func (w *work) fit(ctx context.Context) error {
	if w.Stopped() != nil || !w.Live.Group.One { // whom it serves is not known without a group
		return nil
	}
	for _, m := range w.Operators {
		if w.Waits(m.Name(), scope.PartOverlays) {
			continue
		}
		err := w.serveOn(ctx, m)
		if err == nil {
			err = w.fitOne(ctx, m)
		}
		if err := w.Alone(ctx, m.Name(), scope.PartOverlays, err); err != nil {
			return err
		}
	}
	return nil
}

// fitOne is fit for one operator, with its error.
func (w *work) fitOne(ctx context.Context, m *scope.Operator) error {
	s, ok := w.Target(m)
	if !ok || !w.AtRest(m) && !w.ServesOn(m) || !w.Live.Group.One {
		return nil
	}
	inputs, err := w.overlays(w.Scope).Inputs(s)
	if err != nil {
		return err
	}
	if have, ok := w.RenderedState(m); ok && have.Inputs == inputs {
		return nil
	}
	next, err := w.tailor(ctx, m, s, inputs)
	if next != nil && err == nil {
		w.SetRenderedState(m, *next)
	}
	return err
}

// tailor renders an operator's objects anew and writes those that are to change at once; nil while its bundle is not
// to be had: then it stays as it is.
func (w *work) tailor(ctx context.Context, m *scope.Operator, s scope.RenderTarget, inputs string) (*scope.RenderedState, error) {
	objects, f := w.ObjectsOf(ctx, s)
	if f != nil {
		w.Log.WarnContext(ctx, "what an operator should look like is not known", "csv", s.Bundle.CSV, "namespace", w.Namespace, "reason", f.Reason, "message", f.Message)
		w.Soon(w.Pause)
		return nil, nil //nolint:nilnil // not known now is an answer here
	}
	if err := w.hold(ctx, s); err != nil {
		return nil, err
	}
	var last []render.Object
	out := &scope.RenderedState{Inputs: inputs, Digests: map[string]string{}}
	for _, o := range objects {
		body, dressed, err := w.overlays(w.Scope).Apply(s, o)
		if err != nil {
			return nil, err
		}
		if dressed == "" {
			continue
		}
		out.Digests[scope.ObjectKey(body.GetKind(), o.Name)] = dressed
		if o.GVK == kube.GVKDeployment {
			last = append(last, o)
			continue
		}
		if err := w.refit(ctx, m, s, o, dressed); err != nil {
			return nil, err
		}
	}
	for _, o := range last {
		if !w.ServesOn(m) {
			break
		}
		if err := w.refit(ctx, m, s, o, out.Digests[scope.ObjectKey(o.GVK.Kind, o.Name)]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// refit writes an object where it does not look as it is to look, and where it is not a successor's by now.
func (w *work) refit(ctx context.Context, m *scope.Operator, s scope.RenderTarget, o render.Object, dressed string) error {
	if o.GVK == kube.GVKCSV {
		if m.Object.GetAnnotations()[scope.AnnotationRendered] == dressed {
			return nil
		}
		written, err := w.objects.In(w.Scope).Reapply(ctx, s, o)
		if err == nil {
			m.Take(written)
		}
		return err
	}
	if o.GVK == kube.GVKCRD && w.ServesOn(m) {
		return w.trust(ctx, s, o.Name)
	}
	live, err := w.Client.Get(ctx, o.GVK, o.Namespace, o.Name)
	own := kube.Operator{Namespace: w.Namespace, Name: m.Name()}.Label()
	if err != nil || live != nil && live.GetAnnotations()[scope.AnnotationRendered] == dressed || w.ServesOn(m) && (live == nil || kube.OwnerOf(live) != own) {
		return err
	}
	_, err = w.objects.In(w.Scope).Reapply(ctx, s, o)
	return err
}

// lookAround finds what every operator of the cluster is told. Most looks ask the cluster nothing.
func (w *work) lookAround(ctx context.Context) (err error) {
	w.Live.Config, err = w.around.Get(ctx)
	return err
}

// proxyOverlay gives operators the cluster's proxy, unless their subscription says something of one (R-SUB-10, R-PRX-1).
func (w *work) proxyOverlay() overlay.Overlay {
	proxy := w.Live.Config.Proxy
	return overlay.Overlay{
		About: func(_ scope.RenderTarget, kind, _ string) bool { return kind == kube.GVKDeployment.Kind },
		Input: func(scope.RenderTarget) any { return proxy },
		Apply: func(s scope.RenderTarget, body *unstructured.Unstructured) error {
			if overridden, err := clusterconfig.Overridden(s.Config); overridden || err != nil {
				return err
			}
			return proxy.Lay(body)
		},
	}
}

// pullOverlay leaves Chandler's pull secrets on an account whose bundle brings a list of its own; on the others
// copyPullSecrets puts them beside what is there.
func (w *work) pullOverlay() overlay.Overlay {
	secrets := w.Live.Config.PullSecrets
	return overlay.Overlay{
		About: func(_ scope.RenderTarget, kind, _ string) bool {
			return kind == kube.GVKServiceAccount.Kind && len(secrets) > 0
		},
		Input: func(scope.RenderTarget) any { return clusterconfig.Names(secrets) },
		Apply: func(_ scope.RenderTarget, body *unstructured.Unstructured) error {
			return clusterconfig.Leave(body, secrets)
		},
	}
}

// overlays are all overlays of a namespace, in the order in which they are applied.
func (s *session) overlays(sc *scope.Scope) overlay.Set {
	w := &work{session: s, Scope: sc}
	return overlay.Set{w.targetsOverlay(), w.servingOverlay(), w.proxyOverlay(), w.pullOverlay()}
}
