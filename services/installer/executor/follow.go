package executor

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// maxTransitions bounds one look: a chain of ClusterServiceVersions makes a handful, and a machine that
// went round must not hold a worker.
const maxTransitions = 50

// follow moves every ClusterServiceVersion of the namespace as far as it goes now, one written transition at a
// time; repairs what lost a Deployment; removes what was replaced.
func (w *work) follow(ctx context.Context) error {
	if !w.Loaded || len(w.Wanted.Removals) > 0 {
		if err := w.Load(ctx); err != nil {
			return err
		}
	}
	if w.RecordBehind {
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
		if err := w.Load(ctx); err != nil {
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
	if w.Stopped() != nil || w.Waits("", scope.PartPullSecrets) {
		return nil
	}
	var accounts []string
	for _, m := range w.Operators {
		accounts = append(accounts, csv.Accounts(m.CSV.Spec)...)
	}
	if len(accounts) == 0 && len(w.Unreadable) > 0 {
		return nil
	}
	slices.Sort(accounts)
	return w.Alone(ctx, "", scope.PartPullSecrets, w.around.Copy(ctx, w.Namespace, w.Live.Config.PullSecrets, slices.Compact(accounts), w.Left))
}

// prepare makes, right before Deployments of an operator are written, what they cannot start without. A failure holds
// them back.
func (w *work) prepare(ctx context.Context, s scope.RenderTarget) (*failure.Failure, error) {
	for _, prepare := range []func(context.Context, scope.RenderTarget) (*failure.Failure, error){w.certify} {
		if f, err := prepare(ctx, s); f != nil || err != nil {
			return f, err
		}
	}
	return nil, nil //nolint:nilnil // nothing is missing
}

// advance makes at most one transition of each member.
func (w *work) advance(ctx context.Context) (moved bool, err error) {
	if len(w.Operators) == 0 {
		return false, nil
	}
	deployments, err := w.ReadDeployments(ctx)
	if err != nil {
		return false, err
	}
	for _, m := range w.Operators {
		if w.Frozen(m) {
			continue
		}
		went, err := w.advanceOne(ctx, m, deployments)
		if err := w.Alone(ctx, m.Name(), scope.PartPhase, err); err != nil {
			return moved, err
		}
		moved = moved || went && err == nil // after a write that failed the others see what it left
	}
	return moved, nil
}

// advanceOne reports a transition after which the others may go on.
func (w *work) advanceOne(ctx context.Context, m *scope.Operator, deployments []appsv1.Deployment) (moved bool, err error) {
	o, err := w.observe(ctx, m, deployments)
	if err != nil {
		return false, err
	}
	t, ok := csv.Next(m.Status, o)
	w.Soon(csv.Wake(m.Status, o))
	if !ok {
		return false, w.noteRequirements(ctx, m, o)
	}
	if m.Status.Phase == csv.PhaseReplacing && t.Phase == csv.PhasePending {
		if back, err := w.restored(ctx, m); err != nil || !back {
			return false, err
		}
	}
	return t.Reason != csv.ReasonInstallWaiting, w.write(ctx, m, t, o)
}

// write puts one transition into the object's status, by compare-and-set.
func (w *work) write(ctx context.Context, m *scope.Operator, t csv.Transition, o csv.Observation) error {
	if err := w.Points.At("before phase"); err != nil {
		return err
	}
	next := m.Status.Apply(t, o.Now)
	next.RequirementStatus = o.Requirements
	next.CertsLastUpdated, next.CertsRotateAt = w.certTimes(m)
	if err := w.saveStatus(ctx, m, next); err != nil {
		return err
	}
	w.Log.InfoContext(ctx, "phase changed", "csv", m.Name(), "namespace", w.Namespace, "phase", t.Phase, "reason", t.Reason, "message", t.Message)
	return w.Points.At("phase")
}

// saveStatus writes the status of a member by compare-and-set.
func (w *work) saveStatus(ctx context.Context, m *scope.Operator, next csv.Status) error {
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&struct {
		Status csv.Status `json:"status"`
	}{next})
	if err != nil {
		return errs.Wrap(errs.Internal, err, "encode status of %s", m.Name())
	}
	object := m.Object.DeepCopy()
	object.Object["status"] = body["status"]
	written, err := w.Client.UpdateStatus(ctx, object)
	if err != nil {
		return err
	}
	m.Status, w.Live.Group.Moved = next, true
	m.Take(written)
	return nil
}

// act does what a phase asks for beside being written: an install again, or a removal.
func (w *work) act(ctx context.Context) (acted bool, err error) {
	if w.Stopped() != nil {
		return false, nil
	}
	for _, m := range w.Operators {
		if m.Unverified || w.Waits(m.Name(), scope.PartObjects) {
			continue
		}
		done, err := w.actOne(ctx, m)
		if err := w.Alone(ctx, m.Name(), scope.PartObjects, err); err != nil {
			return acted, err
		}
		acted = acted || done
	}
	return acted, nil
}

func (w *work) actOne(ctx context.Context, m *scope.Operator) (acted bool, err error) {
	if m.Status.Phase != csv.PhaseDeleting && w.Waits(m.Name(), scope.PartPhase) {
		return false, nil // a phase whose writing failed may have been written all the same: it is read again before it is acted on
	}
	switch m.Status.Phase {
	case csv.PhaseInstallReady:
		if w.Planned(m.Name()) {
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
func (w *work) repair(ctx context.Context, m *scope.Operator) (bool, error) {
	s, ok := w.Target(m)
	if !ok {
		return false, nil // a plan is under way, or what it was made with is not known any more
	}
	objects, f := w.ObjectsOf(ctx, s)
	if f == nil {
		var err error
		if f, err = w.prepare(ctx, s); err != nil {
			return false, err
		}
	}
	if f != nil {
		w.Log.WarnContext(ctx, "operator cannot be repaired", "csv", m.Name(), "namespace", w.Namespace, "reason", f.Reason, "message", f.Message)
		w.Soon(w.Pause)
		return false, nil
	}
	for _, o := range objects {
		if o.GVK == kube.GVKCSV || o.GVK == kube.GVKCRD {
			continue
		}
		_, err := w.objects.In(w.Scope).Reapply(ctx, s, o)
		if apierrors.IsConflict(err) {
			w.Log.WarnContext(ctx, "operator cannot be repaired", "csv", m.Name(), "namespace", w.Namespace, "error", err)
			w.Soon(w.Pause)
			return false, nil
		}
		if err != nil && !w.Unserved(o.GVK, err) {
			return false, err
		}
	}
	return true, nil
}
