package executor

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/group"
	"github.com/chandler-fleet/chandler/services/installer/serving"
)

// reasonNotServing is why a plan waits before the steps that have the API server call its operator.
const reasonNotServing = "DeploymentNotReady"

// lookAtCertificates finds the serving certificates of the namespace. Most looks ask the cluster nothing.
func (w *work) lookAtCertificates(ctx context.Context) (err error) {
	w.live.former = map[string]certs.Former{}
	w.live.certificates, err = w.certificates.Get(ctx, w.client, w.ns)
	return err
}

// serves reports an operator that the API server calls.
func serves(c bundle.CSV) bool {
	return len(c.Spec.Webhooks) > 0 || len(c.Spec.APIServices.Owned) > 0
}

// called are the Deployments of an operator that the API server calls; none while it is declared in a wrong way,
// which its phase says.
func (w *work) called(c bundle.CSV) []render.Serving {
	if !serves(c) {
		return nil
	}
	list, err := render.ServingOf(c, w.ns)
	if err != nil {
		return nil
	}
	return list
}

// servingOverlay lays over an operator's objects the CA under which it serves, and the namespaces about which its
// webhooks are asked (R-CSV-40, R-CSV-44).
func (w *work) servingOverlay() overlay {
	g, certificates := w.plans.OperatorGroup, w.live.certificates
	selector := certs.Namespaces(group.LabelNamespacePrefix+g.ID, g.Spec)
	secret := func(deployment string) string { return render.SecretName(render.ServiceName(deployment)) }
	return overlay{
		about: func(s subject, kind, name string) bool {
			_, held := w.live.former[name]
			switch {
			case kind == gvkCRD.Kind:
				return held || slices.Contains(certs.Converted(s.csv), name)
			case !serves(s.csv):
				return false
			case kind == gvkDeployment.Kind:
				return slices.ContainsFunc(w.called(s.csv), func(c render.Serving) bool { return c.Deployment == name })
			}
			return slices.ContainsFunc([]schema.GroupVersionKind{render.GVKAPIService, render.GVKValidatingWebhook, render.GVKMutatingWebhook},
				func(gvk schema.GroupVersionKind) bool { return gvk.Kind == kind })
		},
		input: func(s subject) any {
			if !serves(s.csv) {
				return nil
			}
			hashes := map[string]string{}
			for _, c := range w.called(s.csv) {
				hashes[c.Secret] = certificates[c.Secret].Hash()
			}
			return map[string]any{"certificates": hashes, "namespaces": selector}
		},
		lay: func(_ subject, body *unstructured.Unstructured) error {
			switch former, held := w.live.former[body.GetName()]; {
			case body.GetKind() == gvkDeployment.Kind:
				return certs.Restart(body, certificates[secret(body.GetName())])
			case body.GetKind() == gvkCRD.Kind && held:
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
func (w *work) certify(ctx context.Context, s subject) (*failure.Failure, error) {
	renewed := false
	for _, c := range w.called(s.csv) {
		have := w.live.certificates[c.Secret]
		now, owner := w.cfg.Now(), w.keeper(s, have)
		bad := have.Gone || have.Problem(now, c.Hosts) != "" || have.Overdue(now) || have.Due(now) && !w.planned(owner.bundle.CSV)
		if !bad && have.Owner == owner.uid {
			continue
		}
		next, err := w.certificate(ctx, owner, c, have, bad)
		if err != nil {
			if failure.Final(ctx, err) {
				return nil, err
			}
			f := failure.Classify(err)
			f.Message = fmt.Sprintf("Secret %s/%s: %s", w.ns, c.Secret, f.Message)
			return &f, nil
		}
		w.live.certificates[c.Secret], renewed = next, renewed || bad
	}
	if !renewed {
		return nil, nil //nolint:nilnil // nothing is missing
	}
	// The API server is to trust the new CA before the first pod serves under it.
	i := slices.IndexFunc(w.members, func(m *member) bool { return m.name() == s.bundle.CSV })
	if i < 0 {
		return nil, nil //nolint:nilnil // the plan writes it
	}
	return nil, w.fitOne(ctx, w.members[i])
}

// keeper is whom the Secret of a certificate belongs to: the operator that needs it, or one of its successors that has taken
// it over and shares it.
func (w *work) keeper(s subject, have certs.Kept) subject {
	name := s.bundle.CSV
	for range w.line {
		name = w.line.Successor(name)
		if slices.ContainsFunc(w.members, func(m *member) bool { return m.name() == name && string(m.object.GetUID()) == have.Owner }) {
			s.bundle.CSV, s.uid = name, have.Owner
			break
		}
	}
	return s
}

// certificate writes the Secret of one Deployment: with a new certificate, or the same one for its new owner.
func (w *work) certificate(ctx context.Context, s subject, c render.Serving, have certs.Kept, renew bool) (certs.Kept, error) {
	next := certs.Kept{Certificate: have.Certificate, Owner: s.uid}
	if renew {
		keys, err := certs.Draw()
		if err != nil {
			return next, err
		}
		if next.Certificate, err = serving.Issue(w.cfg.Now().UTC(), c.Hosts, keys, have.CA); err != nil {
			return next, err
		}
	}
	body := certs.Secret(w.ns, c.Secret, s.bundle.CSV, next.Certificate)
	kube.SetOwner(body, s.bundle.CSV, s.uid)
	as := w.client // what a plan has brought is kept up by Chandler, whatever the plan's account may do today (R-OG-64)
	if x := w.underWay(s.bundle.CSV); x != nil {
		var err error
		if as, err = w.as(x, certs.GVKSecret); err != nil {
			return next, err
		}
	}
	if err := w.points.At("before certificate"); err != nil {
		return next, err
	}
	if _, err := as.Apply(ctx, body, w.manager(s.bundle.Package)); err != nil {
		return next, err
	}
	w.certificates.Forget(w.ns)
	w.cfg.Log.InfoContext(ctx, "serving certificate written", "csv", s.bundle.CSV, "namespace", w.ns, "secret", c.Secret, "renewed", renew)
	return next, w.points.At("certificate")
}

// certTimes are when the certificates of an operator were made, and when the first is to be renewed (R-CSV-5).
func (w *work) certTimes(m *member) (updated, rotateAt time.Time) {
	var list []certs.Kept
	for _, c := range w.called(m.csv) {
		list = append(list, w.live.certificates[c.Secret])
	}
	return certs.Times(list)
}

// passCRDs makes the certificates before the first CRD of an operator that converts: the API server is never told to
// call somebody whom it cannot trust. What the CRDs keep of their former form is found here, too.
func (w *work) passCRDs(ctx context.Context, r ready, x *kube.Execution, name string) (*failure.Failure, error) {
	s, err := r.subject(x, name)
	if err != nil {
		return nil, err
	}
	if s.bundle.Replaces != "" && !w.loaded {
		if err := w.load(ctx); err != nil {
			return nil, err
		}
	}
	if err := w.hold(ctx, s); err != nil || len(certs.Converted(s.csv)) == 0 {
		return nil, err
	}
	return w.certify(ctx, s)
}

// passCallers holds back what has the API server call an operator until its Deployments answer: a webhook that fails
// closed would refuse what it is about, at an upgrade even what the running version allows. Where they do not become
// ready in the time for an install, the plan ends without, so that another version can follow; the steps that are left
// are done when the operator has recovered (summon).
func (w *work) passCallers(ctx context.Context, r ready, x *kube.Execution, name string) (*failure.Failure, error) {
	if err := w.follow(ctx); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(w.members, func(m *member) bool { return m.name() == name })
	if i < 0 {
		return w.lost(ctx, name)
	}
	deployments, err := w.deployments(ctx)
	if err != nil {
		return nil, err
	}
	c := w.running(w.members[i], deployments)
	switch {
	case c.Healthy:
		return nil, nil //nolint:nilnil // the way is free
	case w.members[i].status.Phase != csv.PhaseFailed:
		return &failure.Failure{Class: failure.Transient, Reason: reasonNotServing, Message: c.Message, Quick: true}, nil
	}
	for n := range x.Status.Steps {
		if s := &x.Status.Steps[n]; s.State == kube.StepTaken && r.objects[n].Resolving == name && render.Calls(r.objects[n].GVK) {
			s.State, s.Operator, s.Warnings = kube.StepLeft, name, []string{"not written: what it has the API server call does not answer (" + c.Message + "); it is written when that does"}
		}
	}
	return nil, nil //nolint:nilnil // it had its time
}

// running is the state of the Deployments that the API server calls.
func (w *work) running(m *member, deployments []appsv1.Deployment) csv.Components {
	names := map[string]bool{}
	for _, c := range w.called(m.csv) {
		names[c.Deployment] = true
	}
	declared := slices.DeleteFunc(slices.Clone(m.csv.Spec.Install.Spec.Deployments), func(d bundle.Deployment) bool { return !names[d.Name] })
	return csv.Observe(declared, w.ownDeployments(m, deployments), w.toldUnready(m))
}

// toCall reports an operator whose plan has yet to tell the API server of it.
func (w *work) toCall(m *member) bool {
	x := w.underWay(m.name())
	if x == nil {
		return len(w.owed(m)) > 0
	}
	for i, o := range w.opened[x.Spec.Plan].objects {
		if o.Resolving == m.name() && render.Calls(o.GVK) && (i >= len(x.Status.Steps) || x.Status.Steps[i].State != kube.StepDone) {
			return true
		}
	}
	return false
}

// passing are the CRDs whose conversion may pass to an operator that converts own, or away from those of its chain.
func (w *work) passing(name string, own []string) []string {
	out := slices.Clone(own)
	for _, m := range w.members {
		if m.name() != name && w.line.Related(m.name(), name) {
			out = append(out, certs.Converted(m.csv)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// hold finds what the CRDs of an operator keep of their former form until it answers (R-CSV-46). One that has been
// Succeeded has taken over.
func (w *work) hold(ctx context.Context, s subject) error {
	own := certs.Converted(s.csv)
	i := slices.IndexFunc(w.members, func(m *member) bool { return m.name() == s.bundle.CSV })
	for _, name := range w.passing(s.bundle.CSV, own) {
		delete(w.live.former, name)
		if i >= 0 && (w.members[i].status.Phase == csv.PhaseSucceeded || w.servesOn(w.members[i])) {
			continue
		}
		live, err := w.client.Get(ctx, gvkCRD, "", name)
		if err != nil {
			return err
		}
		f, ok, err := certs.FormerOf(live, w.ns)
		if err != nil {
			return err
		}
		if ok && (f.ByWebhook() || slices.Contains(own, name)) {
			w.live.former[name] = f
		}
	}
	return nil
}

// unconverted are the CRDs of an operator that answers whose new form is not whole: they are converted as before it. known
// is false where that cannot be told now.
func (w *work) unconverted(ctx context.Context, m *member, deployments []appsv1.Deployment) (s subject, out []render.Object, known bool, err error) {
	own := certs.Converted(m.csv)
	names := w.passing(m.name(), own)
	answers := w.running(m, deployments)
	if len(own) == 0 { // nobody is called any more: it takes over when all of it runs
		answers = csv.Observe(m.csv.Spec.Install.Spec.Deployments, w.ownDeployments(m, deployments), nil)
	}
	if len(names) == 0 || !answers.Healthy {
		return s, nil, true, nil
	}
	s, objects, known := w.rendered(ctx, m)
	for _, o := range objects {
		if o.GVK != gvkCRD || !slices.Contains(names, o.Name) {
			continue
		}
		delete(w.live.former, o.Name)
		_, dressed, err := w.lay(s, o)
		if err != nil {
			return s, nil, known, err
		}
		live, err := w.client.Get(ctx, gvkCRD, "", o.Name)
		if err != nil {
			return s, nil, known, err
		}
		if live != nil && live.GetAnnotations()[annotationDressed] != dressed {
			out = append(out, o)
		}
	}
	return s, out, known, nil
}

// takeOver has the API server call an operator that answers: to convert its CRDs, then for the steps that its plan left.
func (w *work) takeOver(ctx context.Context, m *member) (bool, error) {
	if !w.live.group.one || halted(m) {
		return false, nil
	}
	deployments, err := w.deployments(ctx)
	if err != nil {
		return false, err
	}
	s, left, _, err := w.unconverted(ctx, m, deployments)
	if err != nil {
		return false, err
	}
	for _, o := range left {
		if _, err := w.reapply(ctx, s, o); err != nil {
			return false, err
		}
		w.facts.ForgetCRD(o.Name)
		w.cfg.Log.InfoContext(ctx, "the new version of an operator converts a CustomResourceDefinition", "crd", o.Name, "csv", m.name(), "namespace", w.ns)
	}
	if len(left) > 0 {
		return true, nil
	}
	return w.summon(ctx, m)
}

// servesOn reports an operator that goes on serving while the one that is to replace it does not yet, or not at all. How
// one that the record does not name any more is configured is not known.
func (w *work) servesOn(m *member) bool {
	named := slices.ContainsFunc(w.plans.Installed, func(i protocol.Installed) bool { return i.CSV == m.name() })
	return m.status.Phase == csv.PhaseReplacing && named && !w.planned(m.name())
}

// serveOn keeps the certificates of such an operator, and says when they are to be renewed next (R-CSV-5, R-CSV-50).
func (w *work) serveOn(ctx context.Context, m *member) error {
	s, ok := w.subject(m)
	if !ok || !w.servesOn(m) || !w.live.group.one {
		return nil
	}
	if _, err := w.deployments(ctx); err != nil { // for their replicas, where they are written
		return err
	}
	f, err := w.certify(ctx, s)
	if err != nil {
		return err
	}
	if f != nil {
		w.cfg.Log.WarnContext(ctx, "certificates cannot be renewed", "csv", m.name(), "namespace", w.ns, "reason", f.Reason, "message", f.Message)
		w.soon(w.cfg.Timing.Pause)
		return nil
	}
	next := m.status
	next.CertsLastUpdated, next.CertsRotateAt = w.certTimes(m)
	if next.CertsRotateAt.Equal(m.status.CertsRotateAt) {
		return nil
	}
	return w.saveStatus(ctx, m, next)
}

// trust puts the CA of now into a CRD that is converted here, whichever version of the operator wrote it last.
func (w *work) trust(ctx context.Context, s subject, name string) error {
	live, err := w.client.Get(ctx, gvkCRD, "", name)
	if err != nil || live == nil {
		return err
	}
	conversion, distrusts, err := certs.Distrusts(live, w.ns, w.live.certificates)
	if err != nil || !distrusts {
		return err
	}
	return w.points.Between("trust", func() error { return w.client.Convert(ctx, live, conversion, w.manager(s.bundle.Package)) })
}
