package uninstall

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/removal"
)

// removedUninstalled is why a ClusterServiceVersion is gone that somebody asked to be removed.
const removedUninstalled = "Uninstalled"

// Reasons for which a removal waits, or plans wait for a removal.
const (
	reasonPlanUnderWay  = "PlanUnderWay"
	reasonReplacing     = "BeingReplaced"
	reasonFinalizers    = "FinalizersPending"
	reasonTerminating   = "NamespaceTerminating"
	finalizersPause     = 2 * time.Second
	removalNamePrefix   = "removal of "
	invalidRemoval      = "Invalid"
	finalizersNextSteps = ": they end what the operator has to end; see its log, or why it does not run"
)

// all carries every removal as far as it goes now.
func (w worker) all(ctx context.Context) error {
	list := removals(&w.Snapshot)
	if len(list) == 0 || w.Snapshot.RecordBehind {
		return nil
	}
	if err := w.Load(ctx); err != nil {
		return err
	}
	for _, r := range list {
		err := failure.Guard(ctx, w.Env.Log, removalNamePrefix+r.CSV, func() error { return w.one(ctx, r) })
		if err != nil && (failure.Final(ctx, err) || !failure.IsPanic(err)) {
			return err
		}
		if err != nil {
			f := failure.OwnObject(err)
			if err := w.Logs.In(w.Scope).Block(ctx, asPlan(r), w.Snapshot.Executions.Of(r.ID), &f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w worker) one(ctx context.Context, r protocol.Removal) error {
	p, x := asPlan(r), w.Snapshot.Executions.Of(r.ID)
	if x != nil && scope.Ended(x) {
		w.Logs.In(w.Scope).Outcome(p, x, nil)
		return nil
	}
	if f := w.Stopped(); f != nil {
		return w.Logs.In(w.Scope).Block(ctx, p, x, f)
	}
	if wait, f := w.Logs.In(w.Scope).Wait(p.ID, x); wait {
		w.Logs.In(w.Scope).Outcome(p, x, f)
		return nil
	}
	var f *failure.Failure
	var err error
	if x == nil || !x.Status.Begun {
		if f = checkGrant(r, w.Logs.Config, w.Namespace, w.Env.Now()); f != nil {
			return w.Logs.In(w.Scope).Block(ctx, p, x, f)
		}
		x, f, err = w.beginRemoval(ctx, r, x)
	}
	if f == nil && err == nil && !scope.Ended(x) {
		err = w.checkSame(ctx, r, x)
	}
	if f == nil && err == nil && !scope.Ended(x) {
		f, err = w.uninstall(ctx, r, x)
	}
	switch {
	case err != nil && failure.Final(ctx, err):
		return err
	case err != nil:
		g := w.removalError(ctx, err)
		return w.Logs.In(w.Scope).Block(ctx, p, x, &g)
	case f != nil:
		return w.Logs.In(w.Scope).Block(ctx, p, x, f)
	}
	w.Logs.In(w.Scope).Outcome(p, x, nil)
	return nil
}

// removalError sorts an error. No object is to blame for good: it is tried again whatever it is.
func (w worker) removalError(ctx context.Context, err error) failure.Failure {
	f := failure.OwnObject(err)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		f.Reason = reasonTerminating
		if text, lookErr := Terminating(ctx, w.Client, w.Namespace); lookErr == nil && text != "" {
			f.Message = text
		}
	}
	return f
}

// beginRemoval decides whether a removal is carried out, and writes down what it is to do.
func (w worker) beginRemoval(ctx context.Context, r protocol.Removal, x *kube.Execution) (
	*kube.Execution, *failure.Failure, error,
) {
	if f := busy(&w.Snapshot, r); f != nil {
		return x, f, nil
	}
	found, err := Find(ctx, w.Client, w.question(r))
	var reason, message string
	switch {
	case errs.Is(err, errs.Invalid):
		reason, message = invalidRemoval, err.Error()
	case err != nil:
		return x, nil, err
	default:
		if reason, message, err = removal.Refuse(found.Plan, r.Plan); err != nil {
			return x, nil, err
		}
	}
	if x == nil {
		if err := w.Env.Note(ctx, w.Snapshot.Wanted); err != nil {
			return x, nil, err
		}
		if err := w.Env.Points.At("begin removal"); err != nil {
			return x, nil, err
		}
		spec := kube.ExecutionSpec{Plan: r.ID, Name: removalNamePrefix + r.CSV, Digest: r.Plan, Removal: &r}
		if x, err = w.Logs.In(w.Scope).Open(ctx, spec); err != nil {
			return nil, nil, err
		}
	}
	now := w.Env.Now().UTC()
	if reason != "" {
		x.Status = kube.ExecutionStatus{Phase: protocol.RemovalRefused, Reason: reason, Message: message, Ended: now}
		w.Env.Log.InfoContext(ctx, "removal refused", "csv", r.CSV, "namespace", w.Namespace, "reason", reason,
			"message", message)
		return x, nil, w.Objects.In(w.Scope).SaveLog(ctx, x, "removal refused")
	}
	if err := w.abortPlan(ctx, r); err != nil {
		return x, nil, err
	}
	x.Status = kube.ExecutionStatus{
		Phase: protocol.PlanStarted, Begun: true, Started: now, Left: found.Plan.Stays,
		Steps: found.Log(w.Client.Number, now),
	}
	w.Env.Log.InfoContext(ctx, "removal begins", "csv", r.CSV, "namespace", w.Namespace, "steps", len(x.Status.Steps))
	return x, nil, w.Objects.In(w.Scope).SaveLog(ctx, x, "removal begun")
}

// uninstall carries out what is not Done, batch by batch. One write of the log ends a batch and takes the next.
func (w worker) uninstall(ctx context.Context, r protocol.Removal, x *kube.Execution) (*failure.Failure, error) {
	back := false
	for batch := Next(x.Status.Steps); len(batch) > 0; batch = Next(x.Status.Steps) {
		if err := w.takeBatch(ctx, x, batch); err != nil {
			return nil, err
		}
		w.SetUninstalling()
		if !back && w.Snapshot.Executions.Leaving(r.CSV) {
			if err := w.handBack(ctx, r); err != nil {
				return nil, err
			}
			back = true
		}
		left, err := w.batch(ctx, r, x, batch)
		if err != nil {
			return nil, err
		}
		if left.Count > 0 {
			return w.finalizers(left), nil
		}
		for n := range batch {
			batch[n].State, batch[n].Time = kube.StepDone, w.Env.Now().UTC()
		}
		if f := w.Stopped(); f != nil {
			return f, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	left, err := w.finalReport(ctx, r, x)
	if err != nil {
		return nil, err
	}
	if left.Count > 0 {
		return w.finalizers(left), nil
	}
	s := &x.Status
	s.Phase, s.Class, s.Reason, s.Message, s.Ended = protocol.PlanFinished, "", "", "", w.Env.Now().UTC()
	w.Env.Log.InfoContext(ctx, "operator uninstalled", "csv", r.CSV, "namespace", w.Namespace, "left", len(s.Left))
	return nil, w.Objects.In(w.Scope).SaveLog(ctx, x, "removal finished")
}

// finalizers: objects are to go and somebody still has to end something of theirs. No notification says when that is
// done.
func (w worker) finalizers(left Waiting) *failure.Failure {
	w.Attempts.Soon(finalizersPause)
	return &failure.Failure{Class: failure.Transient, Reason: reasonFinalizers, Quick: true, Message: "still there: " +
		left.String() + finalizersNextSteps}
}

func (w worker) takeBatch(ctx context.Context, x *kube.Execution, batch []kube.Step) error {
	if batch[0].State == kube.StepTaken {
		return nil
	}
	s := &x.Status
	s.Phase, s.Class, s.Reason, s.Message, s.Attempts = protocol.PlanStarted, "", "", "", 0
	for n := range batch {
		batch[n].State, batch[n].Epoch, batch[n].Time = kube.StepTaken, w.Client.Number, w.Env.Now().UTC()
	}
	return w.Objects.In(w.Scope).SaveLog(ctx, x, "batch taken")
}

// batch does what one batch says, and returns what is still there. Doing it again is right.
func (w worker) batch(ctx context.Context, r protocol.Removal, x *kube.Execution, steps []kube.Step) (
	left Waiting, err error,
) {
	action := steps[0].Action
	switch {
	case action == protocol.RemovalConversion:
		return left, w.Conversions.ResetConversion(ctx, w.Scope, r.CSV)
	case action == protocol.RemovalObjects && steps[0].Kind == kube.GVKInstalledOperator.Kind:
		return left, nil // it goes last, after its final report
	case action == protocol.RemovalObjects:
		if steps, err = w.remover().FilterCurrent(ctx, w.question(r), steps); err != nil {
			return left, err
		}
		return left, w.remover().Delete(ctx, steps)
	}
	doomed, spared, err := w.remover().Spare(ctx, w.question(r), steps)
	if err == nil {
		doomed, err = w.remover().FilterCurrent(ctx, w.question(r), doomed)
	}
	if err != nil {
		return left, err
	}
	for _, l := range spared {
		if !slices.ContainsFunc(x.Status.Left, func(o protocol.Leftover) bool { return o.Name == l.Name }) {
			x.Status.Left = append(x.Status.Left, l)
		}
	}
	if action == protocol.RemovalCustomResources {
		return w.remover().Empty(ctx, doomed)
	}
	if err := w.remover().Delete(ctx, doomed); err != nil {
		return left, err
	}
	return w.remover().Remaining(ctx, doomed)
}

func (w worker) question(r protocol.Removal) Question {
	return Question{
		Kinds: removableKinds(), Namespace: w.Namespace, CSV: r.CSV, CRDs: r.CRDs, Dependants: r.Dependants,
		Named: true, Operators: w.Known,
	}
}

// finalReport removes what came meanwhile, keeps what is to be told of the operator, and removes the InstalledOperator.
func (w worker) finalReport(ctx context.Context, r protocol.Removal, x *kube.Execution) (left Waiting, err error) {
	if left, err = w.remover().Sweep(ctx, w.question(r)); err != nil || left.Count > 0 {
		return left, err
	}
	if len(x.Status.Removed) == 0 {
		x.Status.Removed = []protocol.CSVReport{w.reportOf(r)}
		if err := w.Objects.In(w.Scope).SaveLog(ctx, x, "words kept"); err != nil {
			return left, err
		}
	}
	if words := x.Status.Removed[0]; words.Package != "" {
		if err := (kube.Shares{Epoch: w.Client}).ForgetElections(ctx, w.Namespace, words.Package); err != nil {
			return left, err
		}
	}
	last := Last(x.Status.Steps)
	if err := w.remover().Delete(ctx, last); err != nil {
		return left, err
	}
	return w.remover().Remaining(ctx, last)
}

// reportOf is what is notified of an operator that is uninstalled; of one that somebody deleted meanwhile, what the
// record knows.
func (w worker) reportOf(r protocol.Removal) protocol.CSVReport {
	words := protocol.CSVReport{Name: r.CSV}
	for _, o := range w.Snapshot.Wanted.Installed {
		if o.CSV == r.CSV {
			words.Content, words.Plan = o.Content, o.Plan
		}
	}
	if i := slices.IndexFunc(w.Snapshot.Installed.Uninstalling,
		func(m *scope.Operator) bool { return m.Name() == r.CSV }); i >= 0 {
		words = w.Describe(w.Scope, w.Snapshot.Installed.Uninstalling[i])
	}
	words.Removed, words.RemovedReason, words.Removal = true, removedUninstalled, r.ID
	return words
}

// handBack writes back to the operator that one which is being uninstalled was to replace what both have by name: what
// bears its labels after that is none of the removal's.
func (w worker) handBack(ctx context.Context, r protocol.Removal) error {
	i := slices.IndexFunc(w.Snapshot.Installed.Uninstalling, func(m *scope.Operator) bool { return m.Name() == r.CSV })
	if i < 0 {
		return nil
	}
	j := slices.IndexFunc(w.Snapshot.Installed.Operators, func(m *scope.Operator) bool {
		return m.Name() == w.Snapshot.Installed.Uninstalling[i].CSV.Spec.Replaces && m.Status.Phase != csv.PhaseDeleting
	})
	if j < 0 {
		return nil
	}
	back, err := w.Lifecycle.Restore(ctx, w.Scope, w.Snapshot.Installed.Operators[j])
	if err == nil && !back {
		err = errs.New(errs.Unavailable,
			"%s cannot be put back in the place of %s now: see why its bundle is not to be had",
			w.Snapshot.Installed.Operators[j].Name(), r.CSV)
	}
	return err
}

// abortPlan ends, before the removal of one of its operators begins, a plan that was begun and is stuck: nobody else
// could (DESIGN D6).
func (w worker) abortPlan(ctx context.Context, r protocol.Removal) error {
	x := w.Snapshot.Executions.UnderWay(r.CSV)
	if x == nil {
		return nil
	}
	p := protocol.Plan{ID: x.Spec.Plan, Name: x.Spec.Name}
	plans := w.Snapshot.Wanted.Plans
	if i := slices.IndexFunc(plans, func(p protocol.Plan) bool { return p.ID == x.Spec.Plan }); i >= 0 {
		p = plans[i]
	}
	if err := w.Env.Points.At("before abort"); err != nil {
		return err
	}
	message := "aborted by the removal of " + r.CSV + " (" + r.ID + ")"
	if x.Status.Message != "" {
		message += "; it waited: " + x.Status.Message
	}
	if err := w.Logs.In(w.Scope).Fail(ctx, p, x, &failure.Failure{
		Class: failure.Permanent, Reason: failure.ReasonAborted, Message: message,
	}); err != nil {
		return err
	}
	return w.Env.Points.At("aborted")
}

// checkSame ends a removal of which the operator is gone while another one was installed under its name: what bears
// that name now is not what was looked at.
func (w worker) checkSame(ctx context.Context, r protocol.Removal, x *kube.Execution) error {
	live, err := w.Client.GetServed(ctx, kube.GVKInstalledOperator, w.Namespace, r.CSV)
	if err != nil || !Another(live, x.Status.Steps) {
		return err
	}
	s := &x.Status
	s.Phase, s.Class, s.Reason, s.Message, s.Ended = protocol.RemovalRefused, "", removal.RefusedAnother,
		removal.ChangedMessage(r.CSV), w.Env.Now().UTC()
	w.Forget()
	w.Attempts.Soon(time.Millisecond)
	return w.Objects.In(w.Scope).SaveLog(ctx, x, "removal refused")
}
