package executor

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// maxTransitions bounds one look: a chain of ClusterServiceVersions makes a handful, and a machine that
// went round must not hold a worker.
const maxTransitions = 50

// Parts of the care for an operator of which each may fail for itself (work.alone).
const (
	partOrigin      = "where it comes from"
	partPhase       = "phase"
	partObjects     = "objects"
	partLook        = "appearance" // what overlays say of its objects
	partLabel       = "label"
	partRights      = "rights in target namespaces"
	partHalt        = "end of Deployments of an operator whose APIs are another group's"
	partRemains     = "removal of what a deleted operator leaves"
	partComponents  = "look at its objects"
	partLogs        = "removal of old step logs"
	partCondition   = "operator condition"
	partPullSecrets = "pull secrets"
	partLate        = "objects that waited for their kind"
)

var gvkDeployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// selectManaged selects what Chandler wrote.
const selectManaged = kube.LabelManaged + "=true"

// member is one installed operator of the namespace: its InstalledOperator, which stands for its ClusterServiceVersion.
type member struct {
	object *unstructured.Unstructured
	csv    bundle.CSV
	status csv.Status
	plan   string
	// doubted is one of which nobody knows whether the hub granted what it says (vouched): nothing is done for it.
	doubted bool
	granted map[string]string // annotations as they are to be
}

func parseMember(o *unstructured.Unstructured) (*member, error) {
	raw, err := o.MarshalJSON()
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "ClusterServiceVersion %s", o.GetName())
	}
	m := &member{object: o, plan: o.GetAnnotations()[annotationPlan]}
	if m.csv, err = bundle.ParseCSV(raw); err != nil {
		return nil, err
	}
	var s struct {
		Status csv.Status `json:"status"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "status of ClusterServiceVersion %s", o.GetName())
	}
	m.status = s.Status
	return m, nil
}

func (m *member) name() string { return m.object.GetName() }

// report is what the hub is told of a ClusterServiceVersion.
func (m *member) report() protocol.CSVReport {
	a := m.object.GetAnnotations()
	r := protocol.CSVReport{
		Name: m.name(), Package: a[annotationPackage], Version: m.csv.Spec.Version, Content: a[annotationContent], Plan: m.plan,
		UID: string(m.object.GetUID()), Dropped: m.status.ConditionsDropped, TraceParent: a[annotationTraceParent],
	}
	for _, c := range m.status.Conditions {
		r.History = append(r.History, protocol.Transition{
			Phase: string(c.Phase), Reason: string(c.Reason), Message: c.Message, Time: c.LastTransitionTime.UTC(),
		})
	}
	return r
}

// resting reports a look at a namespace in which nothing is under way: it can wait for others.
func (w *work) resting() bool {
	return len(w.plans.Removals) == 0 && !slices.ContainsFunc(w.plans.Plans, func(p protocol.Plan) bool {
		x := w.execution(p.ID)
		return x == nil || !ended(x)
	})
}

// follow moves every ClusterServiceVersion of the namespace as far as it goes now, one written transition at a
// time; repairs what lost a Deployment; removes what was replaced.
func (w *work) follow(ctx context.Context) error {
	if !w.loaded || len(w.plans.Removals) > 0 {
		if err := w.load(ctx); err != nil {
			return err
		}
	}
	if w.refused {
		return nil
	}
	if err := w.arrange(ctx); err != nil {
		return err
	}
	for range maxTransitions {
		moved, err := w.advance(ctx)
		if err != nil {
			return err
		}
		if moved {
			continue
		}
		acted, err := w.act(ctx)
		if err != nil {
			return err
		}
		if !acted {
			break
		}
		if err := w.load(ctx); err != nil {
			return err
		}
	}
	return w.findGone(ctx)
}

// arrange keeps, at the start of every follow, what an operator needs beside the objects of its plan.
func (w *work) arrange(ctx context.Context) error {
	for _, keep := range []func(context.Context) error{w.arrangeGroup, w.copyPullSecrets, w.fit, w.keepConditions, w.lookAtConditions} {
		if err := keep(ctx); err != nil {
			return err
		}
	}
	return nil
}

// copyPullSecrets keeps the pull secrets where the operators of the namespace find them (R-IP-22). While one of these
// cannot be read, they stay.
func (w *work) copyPullSecrets(ctx context.Context) error {
	if w.stopped() != nil || w.waits("", partPullSecrets) {
		return nil
	}
	var accounts []string
	for _, m := range w.members {
		accounts = append(accounts, csv.Accounts(m.csv.Spec)...)
	}
	if len(accounts) == 0 && len(w.unread) > 0 {
		return nil
	}
	slices.Sort(accounts)
	return w.alone(ctx, "", partPullSecrets, w.around.Copy(ctx, w.ns, w.live.around.PullSecrets, slices.Compact(accounts), w.clean))
}

// prepare makes, right before Deployments of an operator are written, what they cannot start without. A failure holds
// them back.
func (w *work) prepare(ctx context.Context, s subject) (*failure.Failure, error) {
	for _, prepare := range []func(context.Context, subject) (*failure.Failure, error){w.certify} {
		if f, err := prepare(ctx, s); f != nil || err != nil {
			return f, err
		}
	}
	return nil, nil //nolint:nilnil // nothing is missing
}

func (w *work) load(ctx context.Context) error {
	list, err := w.client.ListServed(ctx, kube.GVKInstalledOperator, w.ns)
	if err != nil {
		return err
	}
	w.members, w.aside, w.unread = w.members[:0], nil, map[string]string{}
	for i := range list {
		o := &list[i]
		if o.GetLabels()[kube.LabelManaged] != "true" {
			if o, err = w.relabel(ctx, o); err != nil {
				return err
			}
		}
		if o == nil {
			continue
		}
		m, err := parseMember(o)
		if err != nil {
			w.unread[list[i].GetName()] = list[i].GetAnnotations()[annotationPlan]
			w.cfg.Log.WarnContext(ctx, "ClusterServiceVersion is not followed", "name", list[i].GetName(), "namespace", w.ns, "error", err)
			continue
		}
		w.operators.Note(o, m.csv)
		if err := w.alone(ctx, m.name(), partOrigin, w.vouched(ctx, m)); err != nil {
			return err
		}
		w.members = append(w.members, m)
	}
	slices.SortFunc(w.members, func(a, b *member) int { return strings.Compare(a.name(), b.name()) })
	w.setAside()
	w.line = lineOf(w.members)
	w.loaded, w.deployed = true, nil
	return nil
}

// relabel puts Chandler's label back on an InstalledOperator of one of its plans. Until that is done nobody follows it,
// and it is not gone either; nil says so. One that neither a plan nor the record knows is nobody's.
func (w *work) relabel(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	plan := o.GetAnnotations()[annotationPlan]
	if w.execution(plan) == nil && !slices.ContainsFunc(w.plans.Installed, func(i protocol.Installed) bool { return i.CSV == o.GetName() }) {
		return nil, nil //nolint:nilnil // it is not followed
	}
	w.unread[o.GetName()] = plan
	if w.refused || w.stopped() != nil || w.waits(o.GetName(), partLabel) {
		return nil, nil //nolint:nilnil // it is not followed now
	}
	if err := w.points.At("before label put back"); err != nil {
		return nil, err
	}
	patch := []byte(`{"metadata":{"labels":{"` + kube.LabelManaged + `":"true"}}}`)
	labelled, err := w.client.MergePatch(ctx, kube.GVKInstalledOperator, w.ns, o.GetName(), patch)
	if err != nil {
		return nil, w.alone(ctx, o.GetName(), partLabel, err)
	}
	delete(w.unread, o.GetName())
	w.cfg.Log.InfoContext(ctx, "InstalledOperator has Chandler's label again", "name", o.GetName(), "namespace", w.ns)
	return labelled, w.alone(ctx, o.GetName(), partLabel, w.points.At("label put back"))
}

// advance makes at most one transition of each member.
func (w *work) advance(ctx context.Context) (moved bool, err error) {
	if len(w.members) == 0 {
		return false, nil
	}
	deployments, err := w.deployments(ctx)
	if err != nil {
		return false, err
	}
	for _, m := range w.members {
		if w.frozen(m) {
			continue
		}
		went, err := w.advanceOne(ctx, m, deployments)
		if err := w.alone(ctx, m.name(), partPhase, err); err != nil {
			return moved, err
		}
		moved = moved || went && err == nil // after a write that failed the others see what it left
	}
	return moved, nil
}

// advanceOne reports a transition after which the others may go on.
func (w *work) advanceOne(ctx context.Context, m *member, deployments []appsv1.Deployment) (moved bool, err error) {
	o, err := w.observe(ctx, m, deployments)
	if err != nil {
		return false, err
	}
	t, ok := csv.Next(m.status, o)
	w.soon(csv.Wake(m.status, o))
	if !ok {
		return false, w.noteRequirements(ctx, m, o)
	}
	if m.status.Phase == csv.PhaseReplacing && t.Phase == csv.PhasePending {
		if back, err := w.restored(ctx, m); err != nil || !back {
			return false, err
		}
	}
	return t.Reason != csv.ReasonInstallWaiting, w.write(ctx, m, t, o)
}

// write puts one transition into the object's status, by compare-and-set.
func (w *work) write(ctx context.Context, m *member, t csv.Transition, o csv.Observation) error {
	if err := w.points.At("before phase"); err != nil {
		return err
	}
	next := m.status.Apply(t, o.Now)
	next.RequirementStatus = o.Requirements
	next.CertsLastUpdated, next.CertsRotateAt = w.certTimes(m)
	if err := w.saveStatus(ctx, m, next); err != nil {
		return err
	}
	w.cfg.Log.InfoContext(ctx, "phase changed", "csv", m.name(), "namespace", w.ns, "phase", t.Phase, "reason", t.Reason, "message", t.Message)
	return w.points.At("phase")
}

// saveStatus writes the status of a member by compare-and-set.
func (w *work) saveStatus(ctx context.Context, m *member, next csv.Status) error {
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&struct {
		Status csv.Status `json:"status"`
	}{next})
	if err != nil {
		return errs.Wrap(errs.Internal, err, "encode status of %s", m.name())
	}
	object := m.object.DeepCopy()
	object.Object["status"] = body["status"]
	written, err := w.client.UpdateStatus(ctx, object)
	if err != nil {
		return err
	}
	m.status, w.live.group.moved = next, true
	m.take(written)
	return nil
}

// deployments are those that Chandler wrote, read once as long as nothing is written: when one moves meanwhile, the watch
// asks for another look.
func (w *work) deployments(ctx context.Context) ([]appsv1.Deployment, error) {
	if w.deployed != nil {
		return w.deployed, nil
	}
	list, err := w.client.List(ctx, gvkDeployment, w.ns, selectManaged)
	if err != nil {
		return nil, err
	}
	out := make([]appsv1.Deployment, len(list))
	w.live.deployments = make(map[string]*unstructured.Unstructured, len(list))
	for i := range list {
		w.live.deployments[list[i].GetName()] = &list[i]
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list[i].Object, &out[i]); err != nil {
			return nil, errs.Wrap(errs.Internal, err, "decode deployment %s", list[i].GetName())
		}
	}
	w.deployed = out
	return out, nil
}

// act does what a phase asks for beside being written: an install again, or a removal.
func (w *work) act(ctx context.Context) (acted bool, err error) {
	if w.stopped() != nil {
		return false, nil
	}
	for _, m := range w.members {
		if m.doubted || w.waits(m.name(), partObjects) {
			continue
		}
		done, err := w.actOne(ctx, m)
		if err := w.alone(ctx, m.name(), partObjects, err); err != nil {
			return acted, err
		}
		acted = acted || done
	}
	return acted, nil
}

func (w *work) actOne(ctx context.Context, m *member) (acted bool, err error) {
	if m.status.Phase != csv.PhaseDeleting && w.waits(m.name(), partPhase) {
		return false, nil // a phase whose writing failed may have been written all the same: it is read again before it is acted on
	}
	switch m.status.Phase {
	case csv.PhaseInstallReady:
		if w.planned(m.name()) {
			return false, nil // its plan is about to write the Deployments
		}
		return w.repair(ctx, m)
	case csv.PhaseInstalling, csv.PhaseFailed:
		return w.carryOn(ctx, m)
	case csv.PhaseDeleting:
		err = w.remove(ctx, m)
		return err == nil, err
	default:
	}
	return false, nil
}

// repair writes again, as its plan had them and under the overlays of now, the objects of an operator that are not as
// they should be. False means that it cannot be done now.
func (w *work) repair(ctx context.Context, m *member) (bool, error) {
	s, ok := w.subject(m)
	if !ok {
		return false, nil // a plan is under way, or what it was made with is not known any more
	}
	objects, f := w.objectsOf(ctx, s)
	if f == nil {
		var err error
		if f, err = w.prepare(ctx, s); err != nil {
			return false, err
		}
	}
	if f != nil {
		w.cfg.Log.WarnContext(ctx, "operator cannot be repaired", "csv", m.name(), "namespace", w.ns, "reason", f.Reason, "message", f.Message)
		w.soon(w.cfg.Timing.Pause)
		return false, nil
	}
	for _, o := range objects {
		if o.GVK == kube.GVKCSV || o.GVK == gvkCRD {
			continue
		}
		_, err := w.reapply(ctx, s, o)
		if apierrors.IsConflict(err) {
			w.cfg.Log.WarnContext(ctx, "operator cannot be repaired", "csv", m.name(), "namespace", w.ns, "error", err)
			w.soon(w.cfg.Timing.Pause)
			return false, nil
		}
		if err != nil && !w.unserved(o.GVK, err) {
			return false, err
		}
	}
	return true, nil
}
