package plan

import (
	"cmp"
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

const (
	// maxBatch is how many steps one write of the log sets about.
	maxBatch = 64
	// parallelWrites is how many steps of all plans are written at a time. Most of a write is waiting for the API
	// server's disk; the wait for a CRD to be established is not counted.
	parallelWrites = 12
	// lateFor is how long after an object was made it may be one that came between the checks before a plan and its
	// step: other managers of older ones have edited what was Chandler's.
	lateFor = 10 * time.Minute
)

// steps carries out what is not Done, in order, batch by batch. It returns that the plan waits for phases, or a failure
// that stands in the way of a step, or an error that concerns the log or the session.
func (w worker) steps(ctx context.Context, r *run) (wait bool, f *failure.Failure, err error) {
	x := r.log
	if len(r.batch) == 0 {
		if !x.Status.Begun && r.Grant.Expired(w.Env.Now()) { // while content was fetched and the base was checked
			return false, failure.GrantExpired(r.Grant), nil
		}
		if err := w.take(ctx, r); err != nil {
			return false, nil, err
		}
	}
	for len(r.batch) > 0 {
		if wait, f, err = w.pass(ctx, r, r.Objects[r.batch[0]]); wait || f != nil || err != nil {
			return wait, f, err
		}
		if f, err = w.batch(ctx, r.Plan, x, r.batch, r.resumed); f != nil || err != nil {
			return false, f, err
		}
		if ctx.Err() != nil {
			return false, nil, context.Cause(ctx)
		}
		if f = w.Stopped(); f != nil && len(x.Status.Steps) < len(r.Objects) {
			return false, f, w.Objects.In(w.Scope).SaveLog(ctx, x, "stopped")
		}
		if err := w.take(ctx, r); err != nil {
			return false, nil, err
		}
	}
	return false, nil, nil // every step is done
}

// batch carries out steps side by side and notes those that are done in memory; the next write of the log
// says so. Of several failures the worst is returned: an error, then what is permanent, then the first.
//
// An account that may not bind just any role binds those that exist: under one, bindings wait for the roles (R-OG-60).
func (w worker) batch(ctx context.Context, r scope.Plan, x *kube.Execution, batch []int, resumed bool) (
	*failure.Failure, error,
) {
	type result struct {
		entry   kube.Step
		failure *failure.Failure
		err     error
	}
	results := make([]result, len(batch))
	carry := func(n, i int) {
		err := failure.Guard(ctx, w.Env.Log, "step of plan "+r.Name, func() error {
			results[n].entry, results[n].failure, results[n].err = w.step(ctx, r, x, i, resumed)
			return nil
		})
		if err != nil {
			results[n].failure, results[n].err = failure.OfStep(r.Objects[i], err)
		}
	}
	for _, last := range []bool{false, true} {
		var running sync.WaitGroup
		for n, i := range batch {
			if x.Status.Steps[i].State == kube.StepTaken && (x.Spec.Account != "" && binds(r.Objects[i])) == last {
				running.Go(func() { carry(n, i) })
			}
		}
		running.Wait()
	}
	w.Snapshot.Deployments.Forget()
	var worst *failure.Failure
	var err error
	for n, i := range batch {
		switch res := results[n]; {
		case x.Status.Steps[i].State == kube.StepLeft:
		case res.err != nil:
			err = cmp.Or(err, res.err)
		case res.failure == nil:
			x.Status.Steps[i] = res.entry
		case worst == nil, worst.Class != failure.Permanent && res.failure.Class == failure.Permanent:
			worst = res.failure
		}
	}
	return worst, err
}

// take writes into the log that the next batch is set about, and with it that those before are done; past
// the last step it ends the plan. Entries come with the plan's order, so they are only ever appended.
func (w worker) take(ctx context.Context, r *run) error {
	x := r.log
	s := &x.Status
	r.batch, r.resumed = nil, false
	now := w.Env.Now().UTC()
	s.Phase, s.Class, s.Reason, s.Message, s.Attempts = protocol.PlanStarted, "", "", "", 0
	if !s.Begun {
		s.Begun, s.Started = true, now
	}
	from := len(s.Steps)
	if from == len(r.Objects) {
		s.Phase, s.Ended = protocol.PlanFinished, now
		return w.Objects.In(w.Scope).SaveLog(ctx, x, "finished")
	}
	for i := from; i < from+following(r.Objects, from); i++ {
		o := r.Objects[i]
		r.batch = append(r.batch, i)
		s.Steps = append(s.Steps, kube.Step{
			Index: i + 1, Group: o.GVK.Group, Kind: o.GVK.Kind, Namespace: o.Namespace, Name: o.Name,
			Digest: string(r.Document.Steps[i].Digest), State: kube.StepTaken, Epoch: w.Env.Client.Number, Time: now,
		})
	}
	return w.Objects.In(w.Scope).SaveLog(ctx, x, "taken")
}

// step applies one object in its turn and returns its entry of the log as done.
func (w worker) step(ctx context.Context, r scope.Plan, x *kube.Execution, i int, resumed bool) (
	kube.Step, *failure.Failure, error,
) {
	o, entry := r.Objects[i], x.Status.Steps[i]
	s, err := r.Target(x, o.Resolving)
	if err != nil {
		f, err := failure.OfStep(o, err)
		return entry, f, err
	}
	body, err := w.Objects.Overlays(w.Scope).Decorate(w.Namespace, s, o)
	if err != nil {
		f, err := failure.OfStep(o, err)
		return entry, f, err
	}
	ctx, warnings := kube.GatherWarnings(ctx)
	as, err := w.Objects.In(w.Scope).As(x, o.GVK)
	if err != nil {
		f, err := failure.OfStep(o, err)
		return entry, f, err
	}
	part, err := overlay.ShareOf(w.Namespace, s, o)
	if err != nil {
		f, err := failure.OfStep(o, err)
		return entry, f, err
	}
	if part != nil {
		part.Grant = r.Grant
	}
	news, stop := w.Signals.Listen(scope.RefOf(body))
	defer stop()
	write := writing{body: body, as: as, manager: w.Manager(s.Bundle.Package), part: part, resumed: resumed}
	applied, found, f, err := w.turn(ctx, write)
	if kube.IsTaken(err) && w.Found.Vacant.Fill(scope.RefOf(body)) {
		// it came meanwhile, and is one that was there from now on
		if f, err = w.recheck(ctx, r, o); f == nil && err == nil {
			applied, found, f, err = w.turn(ctx, write)
		}
	}
	if f != nil {
		return entry, f, nil
	}
	if w.Snapshot.Unserved(o.GVK, err) {
		return leave(entry, o), nil, nil
	}
	if err == nil && o.GVK.Kind == kube.GVKCRD.Kind {
		if applied, err = (kube.Definitions{Epoch: w.Env.Client}).AwaitEstablished(ctx, applied, news); err == nil {
			w.Facts.NoteCRD(applied)
		}
	}
	if err != nil {
		f, err := failure.OfStep(o, err)
		return entry, f, err
	}
	entry.Warnings = warnings.List()
	entry.State, entry.UID, entry.Found, entry.Epoch, entry.Time = kube.StepDone, string(applied.GetUID()), found,
		w.Env.Client.Number, w.Env.Now().UTC()
	return entry, nil, nil
}

// writing is an object as its step writes it.
type writing struct {
	body    *unstructured.Unstructured
	as      *kube.Epoch // who writes
	manager string
	part    *overlay.Share // nil where nobody else can have the object
	resumed bool           // after a crash
}

// turn waits for the step's turn, honours the stop switch, and puts the object.
func (w worker) turn(ctx context.Context, o writing) (
	applied *unstructured.Unstructured, found bool, f *failure.Failure, err error,
) {
	w.turns <- struct{}{}
	defer func() { <-w.turns }()
	if f := w.Stopped(); f != nil {
		return nil, false, f, nil
	}
	applied, found, err = w.put(ctx, o)
	return applied, found, nil, err
}

// put applies an object. After a crash it looks first: what already carries the step's digest is not
// written again.
func (w worker) put(ctx context.Context, o writing) (applied *unstructured.Unstructured, found bool, err error) {
	body := o.body
	if o.resumed {
		live, err := w.Env.Client.Get(ctx, body.GroupVersionKind(), body.GetNamespace(), body.GetName())
		if err != nil {
			return nil, false, err
		}
		if live != nil && sameOrigin(live.GetAnnotations(), body.GetAnnotations()) {
			if w.Env.Now().Sub(live.GetCreationTimestamp().Time) < lateFor {
				err = w.Objects.In(w.Scope).AdoptLate(ctx, live, o.manager)
			}
			return live, true, err
		}
	}
	vacant := !o.resumed && w.Found.Vacant.Has(scope.RefOf(body))
	switch {
	case vacant:
		applied, err = w.Objects.In(w.Scope).Applying(
			func() (*unstructured.Unstructured, error) { return o.as.Make(ctx, body, o.manager) })
		if err == nil {
			err = w.Objects.In(w.Scope).AdoptLate(ctx, applied, o.manager)
		}
	case o.part != nil:
		applied, err = w.Objects.In(w.Scope).PutShared(ctx, o.as, body, *o.part)
	default:
		if err = w.Objects.In(w.Scope).Adopt(ctx, body); err == nil {
			applied, err = w.Objects.In(w.Scope).Applying(
				func() (*unstructured.Unstructured, error) { return o.as.Apply(ctx, body, o.manager) })
		}
	}
	if err != nil {
		return nil, false, err
	}
	w.Left(applied)
	if body.GetKind() == kube.GVKInstalledOperator.Kind {
		w.Forget() // it goes alone, so nobody else reads this now
	}
	return applied, false, w.Env.Points.At("applied")
}

// leave notes a step whose kind the cluster does not serve and that no operator needs: it is done when the kind appears
// (package deferred).
func leave(entry kube.Step, o render.Object) kube.Step {
	entry.State, entry.Operator, entry.Warnings = kube.StepLeft, o.Resolving,
		[]string{scope.WaitsFor(o.GVK.Kind, o.GVK.Group) + ": it is written when the cluster serves that"}
	return entry
}
