package plan

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/hubclient"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// plan carries one plan as far as it goes now and notes the outcome; r is it once it has waited, and what is returned
// is it where it has to wait. A panic blocks this plan alone.
func (w worker) plan(ctx context.Context, p protocol.Plan, r *run, failed error) (waiting *run, err error) {
	logs := w.Logs.In(w.Scope)
	err = failure.Guard(ctx, w.Env.Log, "plan "+p.Name, func() (err error) {
		switch {
		case r == nil:
			waiting, err = w.begin(ctx, p)
		case failed != nil:
			err = logs.Interrupted(ctx, p, r.log, failed)
		default:
			waiting, err = w.proceed(ctx, p, r)
		}
		return err
	})
	if failure.IsPanic(err) {
		f := failure.OwnObject(err)
		return nil, logs.Block(ctx, p, w.Snapshot.Executions.Of(p.ID), &f)
	}
	return waiting, err
}

// begin admits a plan, checks what stands in its way, and carries it out.
func (w worker) begin(ctx context.Context, p protocol.Plan) (waiting *run, err error) {
	logs, x := w.Logs.In(w.Scope), w.Snapshot.Executions.Of(p.ID)
	if x != nil && scope.Ended(x) {
		logs.Outcome(p, x, nil)
		return nil, nil
	}
	begun := x != nil && x.Status.Begun
	if f := w.admission().decide(p, begun); f != nil {
		return nil, logs.Block(ctx, p, x, f)
	}
	if x, err = w.stillFor(ctx, x); err != nil {
		return nil, logs.Interrupted(ctx, p, x, err)
	}
	if wait, f := logs.Wait(p.ID, x); wait && !logs.NewlyChosen(p) {
		logs.Outcome(p, x, f)
		return nil, nil
	}
	r, f := w.Open(ctx, p, x)
	if f == nil {
		if begun {
			w.Group.Claim(w.Scope, r) // a claim of before a restart that no object says yet
		} else if f, err = w.check(ctx, r); err != nil {
			return nil, err
		}
	}
	if f != nil && (f.Class != failure.Permanent || x == nil && !mayFail(f)) {
		return nil, logs.Block(ctx, p, x, f)
	}
	if !begun {
		err = w.Env.Note(ctx, w.Snapshot.Wanted)
	}
	if err == nil {
		x, err = w.open(ctx, r, x)
	}
	if err != nil {
		return nil, logs.Interrupted(ctx, p, x, err)
	}
	if f != nil {
		return nil, logs.Fail(ctx, p, x, f)
	}
	overlay.Expect(w.Scope, w.Objects.Overlays(w.Scope), r)
	w.Group.Busy(w.Scope)
	return w.proceed(ctx, p, &run{Plan: r, log: x, batch: x.Status.Taken(), resumed: true, passed: map[string]bool{}})
}

func (w worker) admission() admission {
	return admission{
		snapshot: &w.Snapshot, logs: w.Logs.Config, seen: w.Env.Seen(w.Namespace), stopped: w.Stopped(),
		now: w.Env.Now(),
	}
}

// proceed takes the steps of a plan that are not done.
func (w worker) proceed(ctx context.Context, p protocol.Plan, r *run) (waiting *run, err error) {
	ctx, end := telemetry.Span(telemetry.WithTraceParent(ctx, p.TraceParent), "execute install plan")
	defer func() { end(err) }()
	logs := w.Logs.In(w.Scope)
	wait, f, err := w.steps(ctx, r)
	switch {
	case wait:
		return r, nil
	case err != nil:
		return nil, logs.Interrupted(ctx, p, r.log, err)
	case f != nil && f.Class == failure.Permanent:
		return nil, logs.Fail(ctx, p, r.log, f)
	case f != nil:
		return nil, logs.Block(ctx, p, r.log, f)
	}
	for _, b := range r.Document.Bundles {
		overlay.Forget(w.Scope, b.CSV)
	}
	w.Env.Log.InfoContext(ctx, "plan finished", "plan", p.Name, "namespace", w.Namespace, "steps",
		len(r.log.Status.Steps))
	logs.Outcome(p, r.log, nil)
	return nil, nil
}

// stillFor discards an execution of which no step was taken where the operator group names another account by now than
// the one that was written down in it: it is opened anew (R-OG-60).
func (w worker) stillFor(ctx context.Context, x *kube.Execution) (*kube.Execution, error) {
	if x == nil || x.Status.Begun || x.Spec.Account == w.Snapshot.GroupAccount().User() {
		return x, nil
	}
	if err := w.Logs.In(w.Scope).Discard(ctx, x); err != nil {
		return x, err
	}
	return nil, w.Env.Points.At("discarded")
}

// labelNamespace gives the namespace the labels and annotations that its operator group wants, before the first pod is
// asked of it.
// They are written as the group's account where it names one: who may not label the namespace does not by Chandler.
func (w worker) labelNamespace(ctx context.Context) error {
	want := kube.WantedOfNamespace(w.Snapshot.Wanted.OperatorGroup.Spec)
	if want.Empty() {
		return nil
	}
	as, err := w.Env.Client.As(w.Snapshot.GroupAccount())
	if err != nil {
		return err
	}
	return as.KeepNamespace(ctx, w.Namespace, want)
}

// open makes sure of the namespace and of the step log.
func (w worker) open(ctx context.Context, r scope.Plan, x *kube.Execution) (*kube.Execution, error) {
	if x != nil {
		return x, nil
	}
	if err := w.Env.Client.EnsureNamespace(ctx, w.Namespace); err != nil {
		return nil, err
	}
	if err := w.labelNamespace(ctx); err != nil {
		return nil, err
	}
	if err := w.Env.Points.At("begin"); err != nil {
		return nil, err
	}
	p := r.Plan
	spec := kube.ExecutionSpec{
		Plan: p.ID, Name: p.Name, Digest: p.Digest, Component: p.Component, Configs: p.Configs,
		Grant: p.Grant,
	}
	spec.Steps, spec.Account = hubclient.CountSteps(p), w.Snapshot.GroupAccount().User()
	for _, b := range r.Document.Bundles {
		spec.Operators = append(spec.Operators, b.CSV)
	}
	x, err := w.Logs.In(w.Scope).Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	w.Logs.Begun(p.ID)
	return x, w.Env.Points.At("opened")
}
