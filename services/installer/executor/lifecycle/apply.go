package lifecycle

import (
	"context"
	"errors"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// maxTransitions bounds one reconcile: a chain of ClusterServiceVersions makes a handful, and a machine that
// went round must not hold a worker.
const maxTransitions = 50

// maxAtOnce bounds the transitions of one operator that are written together: Pending, InstallReady, Installing, and
// what it waits for.
const maxAtOnce = 4

// advance makes of each operator the transitions that follow from what is there now.
func (w worker) advance(ctx context.Context) (moved bool, err error) {
	if len(w.Snapshot.Installed.Operators) == 0 {
		return false, nil
	}
	deployments, err := w.ReadDeployments(ctx)
	if err != nil {
		return false, err
	}
	for _, m := range w.Snapshot.Installed.Operators {
		if w.Frozen(m) {
			continue
		}
		went, err := w.advanceOne(ctx, m, deployments)
		if err := w.Attempts.Alone(ctx, m.Name(), scope.PartPhase, err); err != nil {
			return moved, err
		}
		moved = moved || went && err == nil // after a write that failed the others see what it left
	}
	return moved, nil
}

// advanceOne reports a transition after which the others may go on. An operator often goes through several phases at
// once, such as Pending and InstallReady: they are written together, each with its entry in the history, since every
// write of a status has the API server process the whole ClusterServiceVersion.
func (w worker) advanceOne(ctx context.Context, m *scope.Operator, deployments []appsv1.Deployment) (
	moved bool, err error,
) {
	next := *m // as it will be written
	var made []csv.Transition
	var o csv.Observation
	for range maxAtOnce {
		seen, failed := w.observe(ctx, &next, deployments)
		if failed != nil {
			err = failed // what was found out before is written all the same
			break
		}
		o = seen
		t, ok := csv.Next(next.Status, o)
		w.Attempts.Soon(csv.Wake(next.Status, o))
		if !ok {
			break
		}
		// The first one: see concerns. A plan that brings the operator back, as a rollback of an upgrade that failed
		// does, writes its objects itself, and waits for the phase.
		restores := next.Status.Phase == csv.PhaseReplacing && t.Phase == csv.PhasePending
		if restores && !w.Snapshot.Executions.Planned(m.Name()) {
			if back, err := w.Stage.Restore(ctx, w.Scope, m); err != nil || !back {
				return false, err
			}
		}
		next.Status = next.Status.Apply(t, o.Now)
		next.Status.RequirementStatus = o.Requirements
		made = append(made, t)
		moved = moved || t.Reason != csv.ReasonInstallWaiting
		if concerns(t.Phase) {
			break
		}
	}
	if len(made) > 0 {
		return moved, errors.Join(w.write(ctx, m, next.Status, made), err)
	}
	if err != nil {
		return false, err
	}
	return false, w.noteRequirements(ctx, m, o)
}

// write puts transitions into the object's status, by compare-and-set.
func (w worker) write(ctx context.Context, m *scope.Operator, next csv.Status, made []csv.Transition) error {
	if err := w.Env.Points.At("before phase"); err != nil {
		return err
	}
	next.CertsLastUpdated, next.CertsRotateAt = w.Serving.Times(w.Scope, m)
	if err := w.Objects.In(w.Scope).SaveStatus(ctx, m, next); err != nil {
		return err
	}
	for _, t := range made {
		w.Env.Log.InfoContext(ctx, "phase changed", "csv", m.Name(), "namespace", w.Namespace, "phase", t.Phase,
			"reason", t.Reason, "message", t.Message)
	}
	return w.Env.Points.At("phase")
}

// act does what a phase asks for beside being written: an install again, or a removal.
func (w worker) act(ctx context.Context) (acted bool, err error) {
	if w.Stopped() != nil {
		return false, nil
	}
	for _, m := range w.Snapshot.Installed.Operators {
		if m.Unverified || w.Attempts.Waits(m.Name(), scope.PartObjects) {
			continue
		}
		done, err := w.actOne(ctx, m)
		if err := w.Attempts.Alone(ctx, m.Name(), scope.PartObjects, err); err != nil {
			return acted, err
		}
		acted = acted || done
	}
	return acted, nil
}

func (w worker) actOne(ctx context.Context, m *scope.Operator) (acted bool, err error) {
	unsure := m.Status.Phase != csv.PhaseDeleting && w.Attempts.Waits(m.Name(), scope.PartPhase)
	switch asks(m.Status.Phase, w.Snapshot.Executions.Planned(m.Name()), unsure) {
	case actRepair:
		return w.repair(ctx, m)
	case actCarryOn:
		return w.carryOn(ctx, m)
	case actRemove:
		err = w.removeReplaced(ctx, m)
		return err == nil, err
	case actNothing:
	}
	return false, nil
}

// repair writes again, as its plan had them and under the overlays of now, the objects of an operator that are not as
// they should be. False means that it cannot be done now.
func (w worker) repair(ctx context.Context, m *scope.Operator) (bool, error) {
	s, ok := w.Snapshot.Target(m)
	if !ok {
		return false, nil // a plan is under way, or what it was made with is not known any more
	}
	objects, f := w.ObjectsOf(ctx, s)
	if f == nil {
		var err error
		if f, err = w.prepare(ctx, m, s); err != nil {
			return false, err
		}
	}
	if f != nil {
		w.Env.Log.WarnContext(ctx, "operator cannot be repaired", "csv", m.Name(), "namespace", w.Namespace, "reason",
			f.Reason, "message", f.Message)
		w.Attempts.Soon(w.Env.Pause)
		return false, nil
	}
	for _, o := range objects {
		if o.GVK == kube.GVKCSV || o.GVK == kube.GVKCRD {
			continue
		}
		_, err := w.Objects.In(w.Scope).Reapply(ctx, s, o)
		if apierrors.IsConflict(err) {
			w.Env.Log.WarnContext(ctx, "operator cannot be repaired", "csv", m.Name(), "namespace", w.Namespace,
				"error", err)
			w.Attempts.Soon(w.Env.Pause)
			return false, nil
		}
		if err != nil && !w.Snapshot.Unserved(o.GVK, err) {
			return false, err
		}
	}
	return true, nil
}

// carryOn writes the Deployments of an operator again that is waiting for them while they are gone, or to look
// otherwise by now: it would wait five minutes in vain. Otherwise the API server calls it once it answers.
func (w worker) carryOn(ctx context.Context, m *scope.Operator) (bool, error) {
	deployments, err := w.ReadDeployments(ctx)
	if err != nil {
		return false, err
	}
	there := csv.Observe(m.CSV.Spec.Install.Spec.Deployments, w.OwnDeployments(m, deployments), nil).Applied
	if !there && m.Status.Phase == csv.PhaseInstalling && !w.Snapshot.Executions.Planned(m.Name()) {
		return w.repair(ctx, m)
	}
	if acted, err := w.Serving.TakeOver(ctx, w.Scope, m); acted || err != nil {
		return acted, err
	}
	return w.Deferred.Callers(ctx, w.Scope, m)
}

// noteRequirements writes rows that changed though the phase stays: who waits is to see for what.
func (w worker) noteRequirements(ctx context.Context, m *scope.Operator, o csv.Observation) error {
	if reflect.DeepEqual(o.Requirements, m.Status.RequirementStatus) {
		return nil
	}
	if err := w.Env.Points.At("before requirements"); err != nil {
		return err
	}
	next := m.Status
	next.RequirementStatus = o.Requirements
	if err := w.Objects.In(w.Scope).SaveStatus(ctx, m, next); err != nil {
		return err
	}
	return w.Env.Points.At("requirements")
}

// prepare makes, right before Deployments of an operator are written, what they cannot start without. A failure holds
// them back.
func (w worker) prepare(ctx context.Context, m *scope.Operator, s scope.RenderTarget) (*failure.Failure, error) {
	renewed, f, err := w.Serving.Certify(ctx, w.Scope, s)
	if f != nil || err != nil || !renewed {
		return f, err
	}
	// the API server is to trust the new CA before a pod serves under it
	return nil, w.Rerender.Operator(ctx, w.Scope, m)
}
