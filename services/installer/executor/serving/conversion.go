package serving

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

func (w worker) hold(ctx context.Context, s scope.RenderTarget) error {
	own := certs.Converted(s.CSV)
	i := slices.IndexFunc(w.Snapshot.Installed.Operators,
		func(m *scope.Operator) bool { return m.Name() == s.Bundle.CSV })
	for _, name := range passing(w.Snapshot.Installed, s.Bundle.CSV, own) {
		delete(w.Found.Former, name)
		if i >= 0 {
			m := w.Snapshot.Installed.Operators[i]
			if m.Status.Phase == csv.PhaseSucceeded || w.Snapshot.ServesOn(m) {
				continue
			}
		}
		live, err := w.Env.Client.Get(ctx, kube.GVKCRD, "", name)
		if err != nil {
			return err
		}
		f, ok, err := certs.FormerOf(live, w.Namespace)
		if err != nil {
			return err
		}
		if ok && (f.ByWebhook() || slices.Contains(own, name)) {
			w.Found.Former[name] = f
		}
	}
	return nil
}

// unconverted are the CRDs of an operator that answers whose new form is not whole: they are converted as before it.
// known is false where that cannot be reported now.
func (w worker) unconverted(ctx context.Context, m *scope.Operator, deployments []appsv1.Deployment) (
	s scope.RenderTarget, out []render.Object, known bool, err error,
) {
	own := certs.Converted(m.CSV)
	names := passing(w.Snapshot.Installed, m.Name(), own)
	answers := w.Running(m, deployments)
	if len(own) == 0 { // nobody is called any more: it takes over when all of it runs
		answers = csv.Observe(m.CSV.Spec.Install.Spec.Deployments, w.OwnDeployments(m, deployments), nil)
	}
	if len(names) == 0 || !answers.Healthy {
		return s, nil, true, nil
	}
	s, objects, known := w.RenderedObjects(ctx, m)
	for _, o := range objects {
		if o.GVK != kube.GVKCRD || !slices.Contains(names, o.Name) {
			continue
		}
		delete(w.Found.Former, o.Name)
		_, rendered, err := w.Objects.Overlays(w.Scope).Apply(s, o)
		if err != nil {
			return s, nil, known, err
		}
		live, err := w.Env.Client.Get(ctx, kube.GVKCRD, "", o.Name)
		if err != nil {
			return s, nil, known, err
		}
		if live != nil && live.GetAnnotations()[scope.AnnotationRendered] != rendered {
			out = append(out, o)
		}
	}
	return s, out, known, nil
}

func (w worker) takeOver(ctx context.Context, m *scope.Operator) (bool, error) {
	if !w.Found.Group.One || scope.Halted(m) {
		return false, nil
	}
	deployments, err := w.ReadDeployments(ctx)
	if err != nil {
		return false, err
	}
	s, left, _, err := w.unconverted(ctx, m, deployments)
	if err != nil {
		return false, err
	}
	for _, o := range left {
		if _, err := w.Objects.In(w.Scope).Reapply(ctx, s, o); err != nil {
			return false, err
		}
		w.Facts.ForgetCRD(o.Name)
		w.Env.Log.InfoContext(ctx, "the new version of an operator converts a CustomResourceDefinition", "crd", o.Name,
			"csv", m.Name(), "namespace", w.Namespace)
	}
	return len(left) > 0, nil
}

func (w worker) trust(ctx context.Context, s scope.RenderTarget, name string) error {
	live, err := w.Env.Client.Get(ctx, kube.GVKCRD, "", name)
	if err != nil || live == nil {
		return err
	}
	conversion, distrusts, err := certs.Distrusts(live, w.Namespace, w.Found.Certificates)
	if err != nil || !distrusts {
		return err
	}
	return w.Env.Points.Between("trust", func() error {
		return kube.Definitions{Epoch: w.Env.Client}.Convert(
			ctx, live, conversion, w.Manager(s.Bundle.Package))
	})
}

func (w worker) resetConversion(ctx context.Context, name string) error {
	crds, err := w.Env.Client.List(ctx, kube.GVKCRD, "", certs.LabelConverted+"="+w.Namespace)
	if err != nil {
		return err
	}
	for i := range crds {
		converts := func(m *scope.Operator) bool {
			return m.Name() != name && slices.Contains(certs.Converted(m.CSV), crds[i].GetName())
		}
		heirs := slices.DeleteFunc(slices.Clone(w.Snapshot.Installed.Operators),
			func(m *scope.Operator) bool { return !converts(m) })
		switch {
		case len(heirs) > 0:
			err = w.handConversionBack(ctx, &crds[i], heirs)
		case slices.ContainsFunc(w.Snapshot.Installed.Uninstalling, converts),
			len(w.Snapshot.Installed.Unreadable) > 0 &&
				!certs.InstalledBy(&crds[i], w.Namespace+"/"+name):
			continue // they do so as long as they are there
		default:
			w.Env.Log.InfoContext(ctx, "conversion of a CustomResourceDefinition is by name again", "crd",
				crds[i].GetName(), "csv", name, "namespace", w.Namespace)
			err = w.Env.Points.Between("conversion",
				func() error {
					return kube.Definitions{Epoch: w.Env.Client}.ResetConversion(ctx, &crds[i], certs.LabelConverted)
				})
		}
		if err != nil {
			return err
		}
		w.Facts.ForgetCRD(crds[i].GetName())
	}
	return nil
}

// handConversionBack has a CRD converted by one of the operators that stay, unless it is: one whose pods answer, else
// the first.
func (w worker) handConversionBack(ctx context.Context, crd *unstructured.Unstructured, heirs []*scope.Operator) error {
	deployments, err := w.ReadDeployments(ctx)
	if err != nil {
		return err
	}
	heir := heirs[0]
	for _, m := range heirs {
		if slices.ContainsFunc(w.Called(m.CSV), func(c render.Serving) bool {
			return c.Service == certs.ConvertedAt(
				crd, w.Namespace)
		}) {
			return nil
		}
		if !w.Running(heir, deployments).Healthy && w.Running(m, deployments).Healthy {
			heir = m
		}
	}
	s, objects, _ := w.RenderedObjects(ctx, heir)
	i := slices.IndexFunc(objects, func(o render.Object) bool {
		return o.GVK == kube.GVKCRD &&
			o.Name == crd.GetName()
	})
	if i < 0 {
		return errs.New(errs.Unavailable,
			"CustomResourceDefinition %s cannot be handed back to %s now: see why its bundle is not to be had",
			crd.GetName(), heir.Name())
	}
	body := &unstructured.Unstructured{Object: objects[i].Clone().Body}
	if err := certs.Trust(body, w.Found.Certificates, nil); err != nil {
		return err
	}
	conversion, _, err := unstructured.NestedMap(body.Object, "spec", "conversion")
	if err != nil {
		return err
	}
	return w.Env.Points.Between("conversion", func() error {
		return kube.Definitions{Epoch: w.Env.Client}.Convert(
			ctx, crd, conversion, w.Manager(s.Bundle.Package))
	})
}
