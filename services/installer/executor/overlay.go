package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/clusterconfig"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/drift"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

// dressedType is the type prefix of the digest of an object with its overlays.
const dressedType = "chandler.dressed.v1"

// overlay is one thing that the live cluster adds to rendered objects. The plan's digests do not cover it; when its
// input changes, the objects of the operators at rest are written again, and Deployments roll.
type overlay struct {
	// about reports the objects that it may change; kind is InstalledOperator for the operator itself.
	about func(s subject, kind, name string) bool
	// input is what it depends on for an operator, as a value that JSON holds.
	input func(s subject) any
	// lay changes the body of one such object. It must come to the same for the same body and input.
	lay func(s subject, body *unstructured.Unstructured) error
}

// overlays are all of them, in the order in which they are laid: a later one sees what an earlier one did.
func (w *work) overlays() []overlay {
	return []overlay{w.targetsOverlay(), w.servingOverlay(), w.proxyOverlay(), w.pullOverlay()}
}

// subject is the operator whose object is dressed.
type subject struct {
	plan, component, traceParent string
	bundle                       events.PlannedBundle
	csv                          bundle.CSV
	config                       json.RawMessage       // of its subscription
	uid                          string                // of its InstalledOperator; "" while that is not written
	log                          *kube.ExecutionStatus // of its plan, which has ended; nil where that does not matter
}

// subject is a plan's view of one of its operators.
func (r ready) subject(x *kube.Execution, name string) (subject, error) {
	i := slices.IndexFunc(r.document.Bundles, func(b events.PlannedBundle) bool { return b.CSV == name })
	if i < 0 {
		return subject{}, fmt.Errorf("plan %s has no bundle %s", r.Name, name)
	}
	s := subject{plan: r.ID, component: r.Component, traceParent: r.TraceParent, bundle: r.document.Bundles[i], csv: r.csvs[name], config: r.Configs[name]}
	if x == nil {
		return s, nil
	}
	for _, step := range x.Status.Steps {
		if step.Kind == kube.GVKCSV.Kind && step.Name == name && step.State == kube.StepDone {
			s.uid = step.UID
		}
	}
	return s, nil
}

// subject is the view of an operator at rest, as its plan left it; false while that is under way or forgotten.
func (w *work) subject(m *member) (subject, bool) {
	x := w.execution(m.plan)
	if x == nil || !ended(x) || m.doubted {
		return subject{}, false
	}
	a := m.object.GetAnnotations()
	b := events.PlannedBundle{CSV: m.name(), Package: a[annotationPackage], Version: m.csv.Spec.Version, Content: a[annotationContent], Replaces: m.csv.Spec.Replaces, Reason: a[annotationReason]}
	return subject{
		plan: m.plan, component: x.Spec.Component, traceParent: a[annotationTraceParent], bundle: b, csv: m.csv,
		config: w.configNow(m.name(), x.Spec.Configs[m.name()]), uid: string(m.object.GetUID()), log: &x.Status,
	}, true
}

// wrote reports an object that the operator's plan brought into the cluster. What a plan did not come to write, because it
// failed or has yet to, nothing else writes: webhooks with nobody behind them, or what its account may not write.
func (s subject) wrote(o render.Object) bool {
	return s.log == nil || s.log.Wrote(o.GVK.Group, o.GVK.Kind, o.Namespace, o.Name)
}

// configNow is what the subscription of an operator configures now, else what its plan was made with (R-SUB-14).
func (w *work) configNow(name string, planned json.RawMessage) json.RawMessage {
	i := slices.IndexFunc(w.plans.Installed, func(i protocol.Installed) bool { return i.CSV == name })
	if i < 0 || len(w.plans.Installed[i].Config) == 0 {
		return planned
	}
	return w.plans.Installed[i].Config
}

// dress adds to a rendered object what only the plan and the cluster know.
func (w *work) dress(s subject, o render.Object) (*unstructured.Unstructured, error) {
	step, err := o.Digest()
	if err != nil {
		return nil, err
	}
	body, dressed, err := w.lay(s, o)
	if err != nil {
		return nil, err
	}
	extra := map[string]string{annotationDigest: string(step), annotationDressed: dressed, annotationPlan: s.plan, annotationComponent: s.component}
	if body.GetKind() == kube.GVKInstalledOperator.Kind {
		extra[annotationContent], extra[annotationPackage], extra[annotationTraceParent] = s.bundle.Content, s.bundle.Package, s.traceParent
		extra[annotationReason] = s.bundle.Reason
	}
	annotations := body.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	for k, v := range extra {
		if v != "" {
			annotations[k] = v
		}
	}
	body.SetAnnotations(annotations)
	labels := body.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[kube.LabelManaged] = "true"
	if s.bundle.Package != "" {
		labels[mirror.ComponentLabel(s.bundle.Package, w.ns)] = ""
	}
	body.SetLabels(labels)
	part, err := w.shareIn(s, o)
	if err != nil {
		return nil, err
	}
	if part != nil {
		kube.NoteWants(body, part.owner)
	}
	if o.Namespace != w.ns || body.GetKind() == kube.GVKInstalledOperator.Kind {
		return body, nil // an owner in another namespace would have the cluster remove it
	}
	if s.uid == "" {
		return nil, fmt.Errorf("%s comes before its ClusterServiceVersion %s", o, o.Resolving)
	}
	kube.SetOwner(body, o.Resolving, s.uid)
	return body, nil
}

// lay returns the object with its overlays, and the digest of that where an overlay is about it.
func (w *work) lay(s subject, o render.Object) (body *unstructured.Unstructured, dressed string, err error) {
	body = &unstructured.Unstructured{Object: o.Clone().Body}
	if o.GVK.Kind == kube.GVKCSV.Kind {
		kube.InstalledOperator(body)
		if s.bundle.Replaces != "" { // the installed one, from which a range may have skipped
			if err := unstructured.SetNestedField(body.Object, s.bundle.Replaces, "spec", "replaces"); err != nil {
				return nil, "", errs.Wrap(errs.Invalid, err, "%s", o)
			}
		}
	}
	about := false
	for _, l := range w.overlays() {
		if !l.about(s, body.GetKind(), body.GetName()) {
			continue
		}
		about = true
		if err := l.lay(s, body); err != nil {
			return nil, "", fmt.Errorf("%s: %w", o, err)
		}
	}
	if !about {
		return body, "", nil
	}
	d, err := digest.JSON(dressedType, body.Object)
	return body, string(d), err
}

// attire is what the objects of an operator at rest look like under the overlays of now.
type attire struct {
	inputs string // digest of all that the overlays depend on
	// dressed are the digests of objects that overlays are about, by kind and name.
	dressed map[string]string
}

func attireKey(kind, name string) string { return kind + "/" + name }

// inputs is the digest of what all overlays depend on for an operator.
func (w *work) inputs(s subject) (string, error) {
	in := map[string]any{"plan": s.plan, "content": s.bundle.Content, "config": s.config}
	for i, l := range w.overlays() {
		in[fmt.Sprint(i)] = l.input(s)
	}
	d, err := digest.JSON(dressedType, in)
	return string(d), err
}

// fit finds for each operator at rest how its objects are to look now. What is no Deployment and does not look so is
// written at once; Deployments wait for the phases that write them (R-CSV-10). Rendering is done once for each input.
//
// One that waits behind its successor has no such phases, and may serve for weeks if that one fails: what is still its
// own is written at once, Deployments last (R-CSV-50).
func (w *work) fit(ctx context.Context) error {
	if w.stopped() != nil || !w.live.group.one { // whom it serves is not known without a group
		return nil
	}
	for _, m := range w.members {
		if w.waits(m.name(), partLook) {
			continue
		}
		err := w.serveOn(ctx, m)
		if err == nil {
			err = w.fitOne(ctx, m)
		}
		if err := w.alone(ctx, m.name(), partLook, err); err != nil {
			return err
		}
	}
	return nil
}

// fitOne is fit for one operator, with its error.
func (w *work) fitOne(ctx context.Context, m *member) error {
	s, ok := w.subject(m)
	if !ok || !w.atRest(m) && !w.servesOn(m) || !w.live.group.one {
		return nil
	}
	inputs, err := w.inputs(s)
	if err != nil {
		return err
	}
	if have, ok := w.attireOf(m); ok && have.inputs == inputs {
		return nil
	}
	next, err := w.tailor(ctx, m, s, inputs)
	if next != nil && err == nil {
		w.setAttire(m, *next)
	}
	return err
}

func (w *work) attireOf(m *member) (attire, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a, ok := w.attires[w.ns][string(m.object.GetUID())]
	return a, ok
}

// setAttire keeps it, and forgets those of operators that are gone.
func (w *work) setAttire(m *member, a attire) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := map[string]attire{}
	for _, o := range w.members {
		uid := string(o.object.GetUID())
		if have, ok := w.attires[w.ns][uid]; ok {
			kept[uid] = have
		}
	}
	kept[string(m.object.GetUID())] = a
	w.attires[w.ns] = kept
}

// dressed is the digest that a Deployment of an operator is to have; false while nothing says so.
func (w *work) dressed(m *member, deployment string) (string, bool) {
	if w.planned(m.name()) {
		d, ok := w.wanted[m.name()][deployment]
		return d, ok
	}
	a, ok := w.attireOf(m)
	if !ok || !w.atRest(m) {
		return "", false
	}
	d, ok := a.dressed[attireKey(gvkDeployment.Kind, deployment)]
	return d, ok
}

// atRest reports an operator that no plan is about to change and that is installed, as far as it can be.
func (w *work) atRest(m *member) bool {
	return !w.planned(m.name()) && w.line.Successor(m.name()) == "" && !halted(m) && (settled(m.status.Phase) || m.status.Phase == csv.PhaseFailed)
}

// tailor renders an operator's objects anew and writes those that are to change at once; nil while its bundle is not
// to be had: then it stays as it is.
func (w *work) tailor(ctx context.Context, m *member, s subject, inputs string) (*attire, error) {
	objects, f := w.objectsOf(ctx, s)
	if f != nil {
		w.cfg.Log.WarnContext(ctx, "what an operator should look like is not known", "csv", s.bundle.CSV, "namespace", w.ns, "reason", f.Reason, "message", f.Message)
		w.soon(w.cfg.Timing.Pause)
		return nil, nil //nolint:nilnil // not known now is an answer here
	}
	if err := w.hold(ctx, s); err != nil {
		return nil, err
	}
	var last []render.Object
	out := &attire{inputs: inputs, dressed: map[string]string{}}
	for _, o := range objects {
		body, dressed, err := w.lay(s, o)
		if err != nil {
			return nil, err
		}
		if dressed == "" {
			continue
		}
		out.dressed[attireKey(body.GetKind(), o.Name)] = dressed
		if o.GVK == gvkDeployment {
			last = append(last, o)
			continue
		}
		if err := w.refit(ctx, m, s, o, dressed); err != nil {
			return nil, err
		}
	}
	for _, o := range last {
		if !w.servesOn(m) {
			break
		}
		if err := w.refit(ctx, m, s, o, out.dressed[attireKey(o.GVK.Kind, o.Name)]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// refit writes an object where it does not look as it is to look, and where it is not a successor's by now.
func (w *work) refit(ctx context.Context, m *member, s subject, o render.Object, dressed string) error {
	if o.GVK == kube.GVKCSV {
		if m.object.GetAnnotations()[annotationDressed] == dressed {
			return nil
		}
		written, err := w.reapply(ctx, s, o)
		if err == nil {
			m.take(written)
		}
		return err
	}
	if o.GVK == gvkCRD && w.servesOn(m) {
		return w.trust(ctx, s, o.Name)
	}
	live, err := w.client.Get(ctx, o.GVK, o.Namespace, o.Name)
	own := kube.Operator{Namespace: w.ns, Name: m.name()}.Label()
	if err != nil || live != nil && live.GetAnnotations()[annotationDressed] == dressed || w.servesOn(m) && (live == nil || kube.OwnerOf(live) != own) {
		return err
	}
	_, err = w.reapply(ctx, s, o)
	return err
}

// reapply writes one object of an operator at rest as it is to be now. It is written as Chandler itself: what the plan's
// account was allowed is put back, whatever that account may do today (R-OG-64).
func (w *work) reapply(ctx context.Context, s subject, o render.Object) (*unstructured.Unstructured, error) {
	body, err := w.dress(s, o)
	if err != nil {
		return nil, err
	}
	if o.GVK == kube.GVKCSV {
		body.SetUID(types.UID(s.uid)) // of the one that was looked at: one that somebody deletes meanwhile stays deleted
	}
	if o.GVK == gvkDeployment {
		drift.LeaveReplicas(body, w.live.deployments[o.Name])
	}
	if err := w.points.At("before reapply"); err != nil {
		return nil, err
	}
	part, err := w.shareIn(s, o)
	if err != nil {
		return nil, err
	}
	var applied *unstructured.Unstructured
	if part == nil {
		applied, err = w.client.Apply(ctx, body, w.manager(s.bundle.Package))
	} else {
		applied, err = w.keepUp(ctx, body, *part)
	}
	if err != nil {
		return nil, err
	}
	if applied == nil { // its holder makes it again
		return body, nil
	}
	w.clean(applied)
	w.deployed = nil
	return applied, w.points.At("reapplied")
}

// lookAround finds what every operator of the cluster is told. Most looks ask the cluster nothing.
func (w *work) lookAround(ctx context.Context) (err error) {
	w.live.around, err = w.around.Get(ctx)
	return err
}

// proxyOverlay gives operators the cluster's proxy, unless their subscription says something of one (R-SUB-10, R-PRX-1).
func (w *work) proxyOverlay() overlay {
	proxy := w.live.around.Proxy
	return overlay{
		about: func(_ subject, kind, _ string) bool { return kind == gvkDeployment.Kind },
		input: func(subject) any { return proxy },
		lay: func(s subject, body *unstructured.Unstructured) error {
			if overridden, err := clusterconfig.Overridden(s.config); overridden || err != nil {
				return err
			}
			return proxy.Lay(body)
		},
	}
}

// pullOverlay leaves Chandler's pull secrets on an account whose bundle brings a list of its own; on the others
// copyPullSecrets puts them beside what is there.
func (w *work) pullOverlay() overlay {
	secrets := w.live.around.PullSecrets
	return overlay{
		about: func(_ subject, kind, _ string) bool { return kind == gvkAccount.Kind && len(secrets) > 0 },
		input: func(subject) any { return clusterconfig.Names(secrets) },
		lay:   func(_ subject, body *unstructured.Unstructured) error { return clusterconfig.Leave(body, secrets) },
	}
}
