package executor

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/facts"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/uninstall"
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
	reasonUninstalling  = "BeingUninstalled"
	reasonFinalizers    = "FinalizersPending"
	reasonTerminating   = "NamespaceTerminating"
	finalizersPause     = 2 * time.Second
	removalNamePrefix   = "removal of "
	invalidRemoval      = "Invalid"
	finalizersNextSteps = ": they end what the operator has to end; see its log, or why it does not run"
)

// removableKinds are the kinds of which an operator may own objects, its condition included.
func removableKinds() []schema.GroupVersionKind { return append(ownedKinds(), facts.GVKCondition) }

// asPlan is a removal as the log of executions, back-off and reports know a plan.
func asPlan(r protocol.Removal) protocol.Plan {
	return protocol.Plan{ID: r.ID, Name: removalNamePrefix + r.CSV}
}

// removals are those that were asked for, oldest first, and those that were begun and that nobody asks for any more:
// what was begun is brought to its end.
func (w *work) removals() []protocol.Removal {
	out := slices.Clone(w.Wanted.Removals)
	for _, x := range w.Executions {
		r := x.Spec.Removal
		if r != nil && !scope.Ended(x) && !slices.ContainsFunc(out, func(o protocol.Removal) bool { return o.ID == r.ID }) {
			out = append(out, *r)
		}
	}
	return out
}

// checkRemovals: nothing is installed over what is being removed, or follows it.
func (w *work) checkRemovals(_ context.Context, r scope.Plan) (*failure.Failure, error) {
	for _, b := range r.Document.Bundles {
		for _, name := range []string{b.CSV, b.Replaces} {
			if x := w.Removing(name); x != nil {
				return &failure.Failure{
					Class: failure.Conflict, Reason: reasonUninstalling, Quick: true,
					Message: name + " is being uninstalled (removal " + x.Spec.Plan + "): the plan goes on when that has ended",
				}, nil
			}
		}
	}
	return nil, nil //nolint:nilnil // nothing is in the way
}

// carryRemovals carries every removal as far as it goes now.
func (w *work) carryRemovals(ctx context.Context) error {
	list := w.removals()
	if len(list) == 0 || w.RecordBehind {
		return nil
	}
	if err := w.Load(ctx); err != nil {
		return err
	}
	for _, r := range list {
		err := failure.Guard(ctx, w.Log, removalNamePrefix+r.CSV, func() error { return w.carryRemoval(ctx, r) })
		if err != nil && (failure.Final(ctx, err) || !failure.IsPanic(err)) {
			return err
		}
		if err != nil {
			f := failure.OwnObject(err)
			if err := w.blocked(ctx, asPlan(r), w.Execution(r.ID), &f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *work) carryRemoval(ctx context.Context, r protocol.Removal) error {
	p, x := asPlan(r), w.Execution(r.ID)
	if x != nil && scope.Ended(x) {
		w.outcome(p, x, nil)
		return nil
	}
	if f := w.Stopped(); f != nil {
		return w.blocked(ctx, p, x, f)
	}
	if wait, f := w.notYet(p.ID, x); wait {
		w.outcome(p, x, f)
		return nil
	}
	var f *failure.Failure
	var err error
	if x == nil || !x.Status.Begun {
		if f = w.granted(r); f != nil {
			return w.blocked(ctx, p, x, f)
		}
		x, f, err = w.beginRemoval(ctx, r, x)
	}
	if f == nil && err == nil && !scope.Ended(x) {
		err = w.another(ctx, r, x)
	}
	if f == nil && err == nil && !scope.Ended(x) {
		f, err = w.takeApart(ctx, r, x)
	}
	switch {
	case err != nil && failure.Final(ctx, err):
		return err
	case err != nil:
		g := w.removalError(ctx, err)
		return w.blocked(ctx, p, x, &g)
	case f != nil:
		return w.blocked(ctx, p, x, f)
	}
	w.outcome(p, x, nil)
	return nil
}

// removalError sorts an error. No object is to blame for good: it is tried again whatever it is.
func (w *work) removalError(ctx context.Context, err error) failure.Failure {
	f := failure.OwnObject(err)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		f.Reason = reasonTerminating
		if text, lookErr := uninstall.Terminating(ctx, w.Client, w.Namespace); lookErr == nil && text != "" {
			f.Message = text
		}
	}
	return f
}

// beginRemoval decides whether a removal is carried out, and writes down what it is to do.
func (w *work) beginRemoval(ctx context.Context, r protocol.Removal, x *kube.Execution) (*kube.Execution, *failure.Failure, error) {
	if f := w.busy(r); f != nil {
		return x, f, nil
	}
	found, err := uninstall.Look(ctx, w.Client, w.about(r))
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
		if err := w.Points.At("begin removal"); err != nil {
			return x, nil, err
		}
		spec := kube.ExecutionSpec{Plan: r.ID, Name: removalNamePrefix + r.CSV, Digest: r.Plan, Removal: &r}
		if x, err = w.openExecution(ctx, spec); err != nil {
			return nil, nil, err
		}
	}
	now := w.Now().UTC()
	if reason != "" {
		x.Status = kube.ExecutionStatus{Phase: protocol.RemovalRefused, Reason: reason, Message: message, Ended: now}
		w.Log.InfoContext(ctx, "removal refused", "csv", r.CSV, "namespace", w.Namespace, "reason", reason, "message", message)
		return x, nil, w.save(ctx, x, "removal refused")
	}
	if err := w.abort(ctx, r); err != nil {
		return x, nil, err
	}
	x.Status = kube.ExecutionStatus{Phase: protocol.PlanStarted, Begun: true, Started: now, Left: found.Plan.Stays, Steps: found.Log(w.Client.Number, now)}
	w.Log.InfoContext(ctx, "removal begins", "csv", r.CSV, "namespace", w.Namespace, "steps", len(x.Status.Steps))
	return x, nil, w.save(ctx, x, "removal begun")
}

// busy: an operator that is on its way in, or out already, is not removed beside that.
func (w *work) busy(r protocol.Removal) *failure.Failure {
	if x := w.UnderWay(r.CSV); x != nil && !w.Stuck(x) {
		return &failure.Failure{Class: failure.Conflict, Reason: reasonPlanUnderWay, Quick: true, Message: "the install plan that brings " + r.CSV + " is under way: its removal begins when that has ended"}
	}
	if i := slices.IndexFunc(w.Operators, func(m *scope.Operator) bool { return m.CSV.Spec.Replaces == r.CSV }); i >= 0 {
		next := w.Operators[i].Name()
		return &failure.Failure{Class: failure.Conflict, Reason: reasonReplacing, Quick: true, Message: next + " takes the place of " + r.CSV + ", which goes when that has succeeded: to have neither, uninstall " + next}
	}
	return nil
}

// takeApart carries out what is not Done, stretch by stretch. One write of the log ends a stretch and takes the next.
func (w *work) takeApart(ctx context.Context, r protocol.Removal, x *kube.Execution) (*failure.Failure, error) {
	back := false
	for stretch := uninstall.Next(x.Status.Steps); len(stretch) > 0; stretch = uninstall.Next(x.Status.Steps) {
		if err := w.takeStretch(ctx, x, stretch); err != nil {
			return nil, err
		}
		w.SetUninstalling()
		if !back && w.Leaving(r.CSV) {
			if err := w.handBack(ctx, r); err != nil {
				return nil, err
			}
			back = true
		}
		left, err := w.stretch(ctx, r, x, stretch)
		if err != nil {
			return nil, err
		}
		if left.Count > 0 {
			return w.finalizers(left), nil
		}
		for n := range stretch {
			stretch[n].State, stretch[n].Time = kube.StepDone, w.Now().UTC()
		}
		if f := w.Stopped(); f != nil {
			return f, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	left, err := w.lastWords(ctx, r, x)
	if err != nil {
		return nil, err
	}
	if left.Count > 0 {
		return w.finalizers(left), nil
	}
	s := &x.Status
	s.Phase, s.Class, s.Reason, s.Message, s.Ended = protocol.PlanFinished, "", "", "", w.Now().UTC()
	w.Log.InfoContext(ctx, "operator uninstalled", "csv", r.CSV, "namespace", w.Namespace, "left", len(s.Left))
	return nil, w.save(ctx, x, "removal finished")
}

// finalizers: objects are to go and somebody still has to end something of theirs. Nothing tells when that is done.
func (w *work) finalizers(left uninstall.Waiting) *failure.Failure {
	w.Soon(finalizersPause)
	return &failure.Failure{Class: failure.Transient, Reason: reasonFinalizers, Quick: true, Message: "still there: " + left.String() + finalizersNextSteps}
}

func (w *work) takeStretch(ctx context.Context, x *kube.Execution, stretch []kube.Step) error {
	if stretch[0].State == kube.StepTaken {
		return nil
	}
	s := &x.Status
	s.Phase, s.Class, s.Reason, s.Message, s.Attempts = protocol.PlanStarted, "", "", "", 0
	for n := range stretch {
		stretch[n].State, stretch[n].Epoch, stretch[n].Time = kube.StepTaken, w.Client.Number, w.Now().UTC()
	}
	return w.save(ctx, x, "stretch taken")
}

func (w *work) hands() uninstall.Hands { return uninstall.Hands{Client: w.Client, At: w.Points.At} }

// stretch does what one stretch says, and returns what is still there. Doing it again is right.
func (w *work) stretch(ctx context.Context, r protocol.Removal, x *kube.Execution, steps []kube.Step) (left uninstall.Waiting, err error) {
	action := steps[0].Action
	switch {
	case action == protocol.RemovalConversion:
		return left, w.resetConversion(ctx, r.CSV)
	case action == protocol.RemovalObjects && steps[0].Kind == kube.GVKInstalledOperator.Kind:
		return left, nil // it goes last, after its last words
	case action == protocol.RemovalObjects:
		if steps, err = w.hands().Still(ctx, w.about(r), steps); err != nil {
			return left, err
		}
		return left, w.hands().Delete(ctx, steps)
	}
	doomed, spared, err := w.hands().Spare(ctx, w.about(r), steps)
	if err == nil {
		doomed, err = w.hands().Still(ctx, w.about(r), doomed)
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
		return w.hands().Empty(ctx, doomed)
	}
	if err := w.hands().Delete(ctx, doomed); err != nil {
		return left, err
	}
	return w.hands().Remaining(ctx, doomed)
}

func (w *work) about(r protocol.Removal) uninstall.Question {
	return uninstall.Question{Kinds: removableKinds(), Namespace: w.Namespace, CSV: r.CSV, CRDs: r.CRDs, Dependants: r.Dependants, Named: true, Operators: w.operators}
}

// lastWords removes what came meanwhile, keeps what is to be told of the operator, and removes the InstalledOperator.
func (w *work) lastWords(ctx context.Context, r protocol.Removal, x *kube.Execution) (left uninstall.Waiting, err error) {
	if left, err = w.hands().Sweep(ctx, w.about(r)); err != nil || left.Count > 0 {
		return left, err
	}
	if len(x.Status.Removed) == 0 {
		x.Status.Removed = []protocol.CSVReport{w.wordsOf(r)}
		if err := w.save(ctx, x, "words kept"); err != nil {
			return left, err
		}
	}
	if words := x.Status.Removed[0]; words.Package != "" {
		if err := w.Client.ForgetElections(ctx, w.Namespace, words.Package); err != nil {
			return left, err
		}
	}
	last := uninstall.Last(x.Status.Steps)
	if err := w.hands().Delete(ctx, last); err != nil {
		return left, err
	}
	return w.hands().Remaining(ctx, last)
}

// wordsOf is what is told of an operator that is uninstalled; of one that somebody deleted meanwhile, what the record
// knows.
func (w *work) wordsOf(r protocol.Removal) protocol.CSVReport {
	words := protocol.CSVReport{Name: r.CSV}
	for _, o := range w.Wanted.Installed {
		if o.CSV == r.CSV {
			words.Content, words.Plan = o.Content, o.Plan
		}
	}
	if i := slices.IndexFunc(w.Uninstalling, func(m *scope.Operator) bool { return m.Name() == r.CSV }); i >= 0 {
		words = w.describe(w.Uninstalling[i])
	}
	words.Removed, words.RemovedReason, words.Removal = true, removedUninstalled, r.ID
	return words
}

// tellRemovals reports the removals that the hub names.
func (w *work) tellRemovals(r *protocol.ScopeReport) {
	for _, asked := range w.Wanted.Removals {
		o, ok := w.Outcomes[asked.ID]
		if !ok {
			continue
		}
		t := protocol.RemovalReport{ID: asked.ID, CSV: asked.CSV, Phase: o.Phase, Class: o.Class, Reason: o.Reason, Message: o.Message}
		if x := w.Execution(asked.ID); x != nil && o.Phase == protocol.PlanFinished {
			t.Left = x.Status.Left
		}
		r.Removals = append(r.Removals, t)
	}
}

// answerRemoval says what a removal would do now.
func (s *session) answerRemoval(ctx context.Context, raw json.RawMessage) (any, error) {
	var q protocol.RemovalQuestion
	if err := json.Unmarshal(raw, &q); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "read the question")
	}
	f, err := uninstall.Look(ctx, s.client, uninstall.Question{Kinds: removableKinds(), Namespace: q.Namespace, CSV: q.CSV, CRDs: q.CRDs, Dependants: q.Dependants, Count: true, Operators: s.operators})
	if err == nil && !f.Installed {
		err = errs.New(errs.NotFound, "operator %s is not installed in namespace %s of cluster %s any more", q.CSV, q.Namespace, s.cfg.Cluster)
	}
	return f.Plan, err
}
