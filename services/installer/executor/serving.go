package executor

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/group"
	"github.com/chandler-fleet/chandler/services/installer/serving"
)

// reasonNotServing is why a plan waits before the steps that have the API server call its operator.
const reasonNotServing = "DeploymentNotReady"

// lookAtCertificates finds the serving certificates of the namespace. Most looks ask the cluster nothing.
func (w *work) lookAtCertificates(ctx context.Context) (err error) {
	w.Live.Former = map[string]certs.Former{}
	w.Live.Certificates, err = w.certificates.Get(ctx, w.Client, w.Namespace)
	return err
}

// servingOverlay lays over an operator's objects the CA under which it serves, and the namespaces about which its
// webhooks are asked (R-CSV-40, R-CSV-44).
func (w *work) servingOverlay() overlay.Overlay {
	g, certificates := w.Wanted.OperatorGroup, w.Live.Certificates
	selector := certs.Namespaces(group.LabelNamespacePrefix+g.ID, g.Spec)
	secret := func(deployment string) string { return render.SecretName(render.ServiceName(deployment)) }
	return overlay.Overlay{
		About: func(s scope.RenderTarget, kind, name string) bool {
			_, held := w.Live.Former[name]
			switch {
			case kind == kube.GVKCRD.Kind:
				return held || slices.Contains(certs.Converted(s.CSV), name)
			case !scope.Serves(s.CSV):
				return false
			case kind == kube.GVKDeployment.Kind:
				return slices.ContainsFunc(w.Called(s.CSV), func(c render.Serving) bool { return c.Deployment == name })
			}
			return slices.ContainsFunc([]schema.GroupVersionKind{render.GVKAPIService, render.GVKValidatingWebhook, render.GVKMutatingWebhook},
				func(gvk schema.GroupVersionKind) bool { return gvk.Kind == kind })
		},
		Input: func(s scope.RenderTarget) any {
			if !scope.Serves(s.CSV) {
				return nil
			}
			hashes := map[string]string{}
			for _, c := range w.Called(s.CSV) {
				hashes[c.Secret] = certificates[c.Secret].Hash()
			}
			return map[string]any{"certificates": hashes, "namespaces": selector}
		},
		Apply: func(_ scope.RenderTarget, body *unstructured.Unstructured) error {
			switch former, held := w.Live.Former[body.GetName()]; {
			case body.GetKind() == kube.GVKDeployment.Kind:
				return certs.Restart(body, certificates[secret(body.GetName())])
			case body.GetKind() == kube.GVKCRD.Kind && held:
				if err := former.Keep(body); err != nil {
					return err
				}
			}
			return certs.Trust(body, certificates, selector)
		},
	}
}

// certify makes sure of the certificates of an operator before anything needs them: its pods mount them, and the API
// server trusts their CA. One that is due is renewed where its operator is at rest; in an upgrade it is good enough,
// and is renewed after, unless that takes too long.
func (w *work) certify(ctx context.Context, s scope.RenderTarget) (*failure.Failure, error) {
	renewed := false
	for _, c := range w.Called(s.CSV) {
		have := w.Live.Certificates[c.Secret]
		now, owner := w.Now(), w.keeper(s, have)
		bad := have.Gone || have.Problem(now, c.Hosts) != "" || have.Overdue(now) || have.Due(now) && !w.Planned(owner.Bundle.CSV)
		if !bad && have.Owner == owner.UID {
			continue
		}
		next, err := w.certificate(ctx, owner, c, have, bad)
		if err != nil {
			if failure.Final(ctx, err) {
				return nil, err
			}
			f := failure.Classify(err)
			f.Message = fmt.Sprintf("Secret %s/%s: %s", w.Namespace, c.Secret, f.Message)
			return &f, nil
		}
		w.Live.Certificates[c.Secret], renewed = next, renewed || bad
	}
	if !renewed {
		return nil, nil //nolint:nilnil // nothing is missing
	}
	// The API server is to trust the new CA before the first pod serves under it.
	i := slices.IndexFunc(w.Operators, func(m *scope.Operator) bool { return m.Name() == s.Bundle.CSV })
	if i < 0 {
		return nil, nil //nolint:nilnil // the plan writes it
	}
	return nil, w.fitOne(ctx, w.Operators[i])
}

// keeper is whom the Secret of a certificate belongs to: the operator that needs it, or one of its successors that has taken
// it over and shares it.
func (w *work) keeper(s scope.RenderTarget, have certs.Kept) scope.RenderTarget {
	name := s.Bundle.CSV
	for range w.Chain {
		name = w.Chain.Successor(name)
		if slices.ContainsFunc(w.Operators, func(m *scope.Operator) bool { return m.Name() == name && string(m.Object.GetUID()) == have.Owner }) {
			s.Bundle.CSV, s.UID = name, have.Owner
			break
		}
	}
	return s
}

// certificate writes the Secret of one Deployment: with a new certificate, or the same one for its new owner.
func (w *work) certificate(ctx context.Context, s scope.RenderTarget, c render.Serving, have certs.Kept, renew bool) (certs.Kept, error) {
	next := certs.Kept{Certificate: have.Certificate, Owner: s.UID}
	if renew {
		keys, err := certs.Draw()
		if err != nil {
			return next, err
		}
		if next.Certificate, err = serving.Issue(w.Now().UTC(), c.Hosts, keys, have.CA); err != nil {
			return next, err
		}
	}
	body := certs.Secret(w.Namespace, c.Secret, s.Bundle.CSV, next.Certificate)
	kube.SetOwner(body, s.Bundle.CSV, s.UID)
	as := w.Client // what a plan has brought is kept up by Chandler, whatever the plan's account may do today (R-OG-64)
	if x := w.UnderWay(s.Bundle.CSV); x != nil {
		var err error
		if as, err = w.as(x, certs.GVKSecret); err != nil {
			return next, err
		}
	}
	if err := w.Points.At("before certificate"); err != nil {
		return next, err
	}
	if _, err := as.Apply(ctx, body, w.Manager(s.Bundle.Package)); err != nil {
		return next, err
	}
	w.certificates.Forget(w.Namespace)
	w.Log.InfoContext(ctx, "serving certificate written", "csv", s.Bundle.CSV, "namespace", w.Namespace, "secret", c.Secret, "renewed", renew)
	return next, w.Points.At("certificate")
}

// certTimes are when the certificates of an operator were made, and when the first is to be renewed (R-CSV-5).
func (w *work) certTimes(m *scope.Operator) (updated, rotateAt time.Time) {
	var list []certs.Kept
	for _, c := range w.Called(m.CSV) {
		list = append(list, w.Live.Certificates[c.Secret])
	}
	return certs.Times(list)
}

// passCRDs makes the certificates before the first CRD of an operator that converts: the API server is never told to
// call somebody whom it cannot trust. What the CRDs keep of their former form is found here, too.
func (w *work) passCRDs(ctx context.Context, r scope.Plan, x *kube.Execution, name string) (*failure.Failure, error) {
	s, err := r.Target(x, name)
	if err != nil {
		return nil, err
	}
	if s.Bundle.Replaces != "" && !w.Loaded {
		if err := w.Load(ctx); err != nil {
			return nil, err
		}
	}
	if err := w.hold(ctx, s); err != nil || len(certs.Converted(s.CSV)) == 0 {
		return nil, err
	}
	return w.certify(ctx, s)
}

// passCallers holds back what has the API server call an operator until its Deployments answer: a webhook that fails
// closed would refuse what it is about, at an upgrade even what the running version allows. Where they do not become
// scope.Plan in the time for an install, the plan ends without, so that another version can follow; the steps that are left
// are done when the operator has recovered (summon).
func (w *work) passCallers(ctx context.Context, r scope.Plan, x *kube.Execution, name string) (*failure.Failure, error) {
	if err := w.follow(ctx); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(w.Operators, func(m *scope.Operator) bool { return m.Name() == name })
	if i < 0 {
		return w.lost(ctx, name)
	}
	deployments, err := w.ReadDeployments(ctx)
	if err != nil {
		return nil, err
	}
	c := w.Running(w.Operators[i], deployments)
	switch {
	case c.Healthy:
		return nil, nil //nolint:nilnil // the way is free
	case w.Operators[i].Status.Phase != csv.PhaseFailed:
		return &failure.Failure{Class: failure.Transient, Reason: reasonNotServing, Message: c.Message, Quick: true}, nil
	}
	for n := range x.Status.Steps {
		if s := &x.Status.Steps[n]; s.State == kube.StepTaken && r.Objects[n].Resolving == name && render.Calls(r.Objects[n].GVK) {
			s.State, s.Operator, s.Warnings = kube.StepLeft, name, []string{"not written: what it has the API server call does not answer (" + c.Message + "); it is written when that does"}
		}
	}
	return nil, nil //nolint:nilnil // it had its time
}

// passing are the CRDs whose conversion may pass to an operator that converts own, or away from those of its chain.
func (w *work) passing(name string, own []string) []string {
	out := slices.Clone(own)
	for _, m := range w.Operators {
		if m.Name() != name && w.Chain.Related(m.Name(), name) {
			out = append(out, certs.Converted(m.CSV)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// hold finds what the CRDs of an operator keep of their former form until it answers (R-CSV-46). One that has been
// Succeeded has taken over.
func (w *work) hold(ctx context.Context, s scope.RenderTarget) error {
	own := certs.Converted(s.CSV)
	i := slices.IndexFunc(w.Operators, func(m *scope.Operator) bool { return m.Name() == s.Bundle.CSV })
	for _, name := range w.passing(s.Bundle.CSV, own) {
		delete(w.Live.Former, name)
		if i >= 0 && (w.Operators[i].Status.Phase == csv.PhaseSucceeded || w.ServesOn(w.Operators[i])) {
			continue
		}
		live, err := w.Client.Get(ctx, kube.GVKCRD, "", name)
		if err != nil {
			return err
		}
		f, ok, err := certs.FormerOf(live, w.Namespace)
		if err != nil {
			return err
		}
		if ok && (f.ByWebhook() || slices.Contains(own, name)) {
			w.Live.Former[name] = f
		}
	}
	return nil
}

// unconverted are the CRDs of an operator that answers whose new form is not whole: they are converted as before it. known
// is false where that cannot be told now.
func (w *work) unconverted(ctx context.Context, m *scope.Operator, deployments []appsv1.Deployment) (s scope.RenderTarget, out []render.Object, known bool, err error) {
	own := certs.Converted(m.CSV)
	names := w.passing(m.Name(), own)
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
		delete(w.Live.Former, o.Name)
		_, dressed, err := w.overlays(w.Scope).Apply(s, o)
		if err != nil {
			return s, nil, known, err
		}
		live, err := w.Client.Get(ctx, kube.GVKCRD, "", o.Name)
		if err != nil {
			return s, nil, known, err
		}
		if live != nil && live.GetAnnotations()[scope.AnnotationRendered] != dressed {
			out = append(out, o)
		}
	}
	return s, out, known, nil
}

// takeOver has the API server call an operator that answers: to convert its CRDs, then for the steps that its plan left.
func (w *work) takeOver(ctx context.Context, m *scope.Operator) (bool, error) {
	if !w.Live.Group.One || scope.Halted(m) {
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
		if _, err := w.objects.In(w.Scope).Reapply(ctx, s, o); err != nil {
			return false, err
		}
		w.facts.ForgetCRD(o.Name)
		w.Log.InfoContext(ctx, "the new version of an operator converts a CustomResourceDefinition", "crd", o.Name, "csv", m.Name(), "namespace", w.Namespace)
	}
	if len(left) > 0 {
		return true, nil
	}
	return w.summon(ctx, m)
}

// serveOn keeps the certificates of such an operator, and says when they are to be renewed next (R-CSV-5, R-CSV-50).
func (w *work) serveOn(ctx context.Context, m *scope.Operator) error {
	s, ok := w.Target(m)
	if !ok || !w.ServesOn(m) || !w.Live.Group.One {
		return nil
	}
	if _, err := w.ReadDeployments(ctx); err != nil { // for their replicas, where they are written
		return err
	}
	f, err := w.certify(ctx, s)
	if err != nil {
		return err
	}
	if f != nil {
		w.Log.WarnContext(ctx, "certificates cannot be renewed", "csv", m.Name(), "namespace", w.Namespace, "reason", f.Reason, "message", f.Message)
		w.Soon(w.Pause)
		return nil
	}
	next := m.Status
	next.CertsLastUpdated, next.CertsRotateAt = w.certTimes(m)
	if next.CertsRotateAt.Equal(m.Status.CertsRotateAt) {
		return nil
	}
	return w.saveStatus(ctx, m, next)
}

// trust puts the CA of now into a CRD that is converted here, whichever version of the operator wrote it last.
func (w *work) trust(ctx context.Context, s scope.RenderTarget, name string) error {
	live, err := w.Client.Get(ctx, kube.GVKCRD, "", name)
	if err != nil || live == nil {
		return err
	}
	conversion, distrusts, err := certs.Distrusts(live, w.Namespace, w.Live.Certificates)
	if err != nil || !distrusts {
		return err
	}
	return w.Points.Between("trust", func() error { return w.Client.Convert(ctx, live, conversion, w.Manager(s.Bundle.Package)) })
}
