package executor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/cluster"
	"github.com/chandler-fleet/chandler/services/installer/group"
	"github.com/chandler-fleet/chandler/services/installer/serving"
)

// reasonNotServing is why a plan waits before the steps that have the API server call its operator.
const reasonNotServing = "DeploymentNotReady"

var gvkService = schema.GroupVersionKind{Version: "v1", Kind: "Service"}

// lookAtCertificates finds the serving certificates of the namespace. Most looks ask the cluster nothing.
func (w *work) lookAtCertificates(ctx context.Context) (err error) {
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
			switch {
			case !serves(s.csv):
				return false
			case kind == gvkDeployment.Kind:
				return slices.ContainsFunc(w.called(s.csv), func(c render.Serving) bool { return c.Deployment == name })
			case kind == gvkCRD.Kind:
				return slices.Contains(converted(s.csv), name)
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
			if body.GetKind() != gvkDeployment.Kind {
				return certs.Trust(body, certificates, selector)
			}
			return certs.Restart(body, certificates[secret(body.GetName())])
		},
	}
}

// converted are the CRDs whose objects an operator converts.
func converted(c bundle.CSV) []string {
	webhooks, err := c.WebhookDescriptions()
	if err != nil {
		return nil
	}
	var out []string
	for _, h := range webhooks {
		if h.Type == bundle.ConversionWebhook {
			out = append(out, h.ConversionCRDs...)
		}
	}
	return out
}

// certify makes sure of the certificates of an operator before anything needs them: its pods mount them, and the API
// server trusts their CA. One that is due is renewed where the operator is at rest; in an upgrade it is good enough,
// and is renewed after.
func (w *work) certify(ctx context.Context, s subject) (*failure, error) {
	renewed := false
	for _, c := range w.called(s.csv) {
		have := w.live.certificates[c.Secret]
		now := w.cfg.Now()
		bad := have.Gone || have.Fault(now, c.Hosts) != "" || have.Due(now) && !w.planned(s.bundle.CSV)
		if !bad && have.Owner == s.uid {
			continue
		}
		next, err := w.certificate(ctx, s, c, have, bad)
		if err != nil {
			if final(ctx, err) {
				return nil, err
			}
			f := classify(err)
			f.message = fmt.Sprintf("Secret %s/%s: %s", w.ns, c.Secret, f.message)
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
	setOwner(body, s.bundle.CSV, s.uid)
	as := w.client // what a plan has brought is kept up by Chandler, whatever the plan's account may do today (R-OG-64)
	if x := w.underWay(s.bundle.CSV); x != nil {
		var err error
		if as, err = w.as(x, certs.GVKSecret); err != nil {
			return next, err
		}
	}
	if err := w.at("before certificate"); err != nil {
		return next, err
	}
	if _, err := as.Apply(ctx, body, w.manager(s.bundle.Package)); err != nil {
		return next, err
	}
	w.certificates.Forget(w.ns)
	w.cfg.Log.InfoContext(ctx, "serving certificate written", "csv", s.bundle.CSV, "namespace", w.ns, "secret", c.Secret, "renewed", renew)
	return next, w.at("certificate")
}

// secrets are the Secrets that a plan brings about beside its steps, so that the right to write them can be asked for.
func (w *work) secrets(r ready) []render.Object {
	var out []render.Object
	for _, name := range slices.Sorted(maps.Keys(r.csvs)) {
		for _, c := range w.called(r.csvs[name]) {
			out = append(out, render.Object{GVK: certs.GVKSecret, Namespace: w.ns, Name: c.Secret, Resolving: name, Body: map[string]any{}})
		}
	}
	return out
}

// certTimes are when the certificates of an operator were made, and when the first is to be renewed (R-CSV-5).
func (w *work) certTimes(m *member) (updated, rotateAt time.Time) {
	for _, c := range w.called(m.csv) {
		made, rotate := w.live.certificates[c.Secret].Times()
		if made.After(updated) {
			updated = made
		}
		if rotateAt.IsZero() || rotate.Before(rotateAt) {
			rotateAt = rotate
		}
	}
	return updated, rotateAt
}

// passCRDs makes the certificates before the first CRD of an operator that converts: the API server is never told to
// call somebody whom it cannot trust.
func (w *work) passCRDs(ctx context.Context, r ready, x *cluster.Execution, name string) (*failure, error) {
	if len(converted(r.csvs[name])) == 0 {
		return nil, nil //nolint:nilnil // nothing is in the way
	}
	s, err := r.subject(x, name)
	if err != nil {
		return nil, err
	}
	return w.certify(ctx, s)
}

// passCallers holds back what has the API server call an operator until its Deployments answer: a webhook that fails
// closed would refuse what it is about, at an upgrade even what the running version allows. Where they do not become
// ready in the time for an install, the plan ends without, so that another version can follow; the steps that are left
// are done when the operator has recovered (summon).
func (w *work) passCallers(ctx context.Context, r ready, x *cluster.Execution, name string) (*failure, error) {
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
		return &failure{class: classTransient, reason: reasonNotServing, message: c.Message, quick: true}, nil
	}
	for n := range x.Status.Steps {
		if s := &x.Status.Steps[n]; s.State == cluster.StepTaken && r.objects[n].Resolving == name && render.Calls(r.objects[n].GVK) {
			s.State, s.Operator, s.Warnings = cluster.StepLeft, name, []string{"not written: what it has the API server call does not answer (" + c.Message + "); it is written when that does"}
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
	return csv.Observe(declared, w.ownDeployments(m, deployments))
}

// servingState is the part of an observation that is about webhooks and API services.
func (w *work) servingState(ctx context.Context, m *member, deployments []appsv1.Deployment) (csv.Serving, error) {
	var out csv.Serving
	if !serves(m.csv) {
		return out, nil
	}
	if err := render.CheckServing(m.csv); err != nil {
		out.InvalidWebhook = err.Error()
		return out, nil //nolint:nilerr // the error is what was asked for
	}
	for _, c := range w.called(m.csv) {
		k := w.live.certificates[c.Secret]
		out.RotationDue = out.RotationDue || k.Gone || k.Fault(w.cfg.Now(), c.Hosts) != "" || k.Due(w.cfg.Now())
	}
	if w.toCall(m) {
		out.Waiting = "webhooks and API services are not in place yet"
		return out, nil
	}
	if m.status.Phase == csv.PhaseInstalling || m.status.Phase == csv.PhaseSucceeded || m.status.Phase == csv.PhaseFailed {
		err := w.apiState(ctx, m, w.running(m, deployments).Healthy, &out)
		return out, err
	}
	return out, nil
}

// toCall reports an operator whose plan has yet to tell the API server of it.
func (w *work) toCall(m *member) bool {
	x := w.underWay(m.name())
	if x == nil {
		return len(w.owed(m)) > 0
	}
	for i, o := range w.opened[x.Spec.Plan].objects {
		if o.Resolving == m.name() && render.Calls(o.GVK) && (i >= len(x.Status.Steps) || x.Status.Steps[i].State != cluster.StepDone) {
			return true
		}
	}
	return false
}

// apiState judges the API services that an operator owns. They are looked at anew each time: few operators have any.
func (w *work) apiState(ctx context.Context, m *member, running bool, out *csv.Serving) error {
	targets := map[string]bundle.APIDescription{}
	for _, a := range m.csv.Spec.APIServices.Owned {
		targets[a.Version+"."+a.Group] = a
	}
	texts := map[*string][]string{}
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		a := targets[name]
		service := render.ServiceName(a.DeploymentName)
		found, err := w.client.Get(ctx, render.GVKAPIService, "", name)
		if err != nil {
			return err
		}
		have, err := certs.API(name, found)
		if err != nil {
			return err
		}
		behind, err := w.client.Get(ctx, gvkService, w.ns, service)
		if err != nil {
			return err
		}
		have.ServiceFound = behind != nil
		v := serving.Judge(w.cfg.Now(), have, serving.Want{
			CA: w.live.certificates[render.SecretName(service)].CA, Target: certs.Target(w.ns, service, a.Port()), Running: running,
		})
		for into, text := range map[*string]string{&out.ObjectsWrong: v.Wrong, &out.Waiting: v.Waiting, &out.Broken: v.Broken} {
			if text != "" {
				texts[into] = append(texts[into], text)
			}
		}
		if v.Waiting != "" {
			w.soon(gatePause) // nothing tells when the API server has asked again
		}
	}
	for into, list := range texts {
		*into = strings.Join(list, "; ")
	}
	return nil
}

// resetConversion lets the API server convert by itself what an operator converted that is gone without a successor
// (R-CSV-46): else no object of another version than the stored one could be read any more, and none be removed.
func (w *work) resetConversion(ctx context.Context, name string) error {
	crds, err := w.client.List(ctx, gvkCRD, "", certs.LabelConverted+"="+w.ns)
	if err != nil {
		return err
	}
	for i := range crds {
		another := slices.ContainsFunc(w.members, func(m *member) bool { return m.name() != name && slices.Contains(converted(m.csv), crds[i].GetName()) })
		if another || !installedBy(&crds[i], w.ns+"/"+name) {
			continue // one that follows it, or to which it hands back, converts them
		}
		if err := w.at("before conversion"); err != nil {
			return err
		}
		if err := w.client.ResetConversion(ctx, &crds[i], certs.LabelConverted); err != nil {
			return err
		}
		w.facts.ForgetCRD(crds[i].GetName())
		w.cfg.Log.InfoContext(ctx, "conversion of a CustomResourceDefinition is by name again", "crd", crds[i].GetName(), "csv", name, "namespace", w.ns)
		if err := w.at("conversion"); err != nil {
			return err
		}
	}
	return nil
}

// installedBy reports a CRD that an operator, as namespace/csv, is noted on.
func installedBy(crd *unstructured.Unstructured, owner string) bool {
	for key, value := range crd.GetAnnotations() {
		if strings.HasPrefix(key, render.AnnotationInstalledAlongside) && value == owner {
			return true
		}
	}
	return false
}
