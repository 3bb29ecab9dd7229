package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/hubclient"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// plan carries one plan as far as it goes now and notes the outcome. A panic blocks this plan alone.
func (w *work) plan(ctx context.Context, p protocol.Plan) error {
	err := failure.Guard(ctx, w.Log, "plan "+p.Name, func() error { return w.carry(ctx, p) })
	if failure.IsPanic(err) {
		f := failure.OwnObject(err)
		return w.blocked(ctx, p, w.Execution(p.ID), &f)
	}
	return err
}

func (w *work) carry(ctx context.Context, p protocol.Plan) (err error) {
	x := w.Execution(p.ID)
	if x != nil && scope.Ended(x) {
		w.outcome(p, x, nil)
		return nil
	}
	ctx, end := telemetry.Span(telemetry.WithTraceParent(ctx, p.TraceParent), "execute install plan")
	defer func() { end(err) }()
	begun := x != nil && x.Status.Begun
	if f := w.admit(p, begun); f != nil {
		return w.blocked(ctx, p, x, f)
	}
	if x, err = w.stillFor(ctx, x); err != nil {
		return w.interrupted(ctx, p, x, err)
	}
	if wait, f := w.notYet(p.ID, x); wait && !w.newlyChosen(p) {
		w.outcome(p, x, f)
		return nil
	}
	r, f := w.Open(ctx, p, x)
	if f == nil {
		of := w.check
		if begun {
			of = w.claim // a claim of before a restart that no object says yet
		}
		if f, err = of(ctx, r); err != nil {
			return err
		}
	}
	if f != nil && (f.Class != failure.Permanent || x == nil && !w.mayFail(f)) {
		return w.blocked(ctx, p, x, f)
	}
	if x, err = w.begin(ctx, r, x); err != nil {
		return w.interrupted(ctx, p, x, err)
	}
	if f != nil {
		return w.fail(ctx, p, x, f)
	}
	overlay.Expect(w.Scope, w.overlays(w.Scope), r)
	w.groups.Rest.Busy(w.Namespace, w.Now())
	f, err = w.steps(ctx, r, x)
	switch {
	case err != nil:
		return w.interrupted(ctx, p, x, err)
	case f != nil && f.Class == failure.Permanent:
		return w.fail(ctx, p, x, f)
	case f != nil:
		return w.blocked(ctx, p, x, f)
	}
	for _, b := range r.Document.Bundles {
		delete(w.Expected, b.CSV)
	}
	return w.finish(ctx, p, x)
}

// mayFail reports whether a plan may be failed for good before it is begun: only what no retry can
// change, and only under a grant that was checked.
func (w *work) mayFail(f *failure.Failure) bool {
	return f.Reason == failure.ReasonDigest || f.Reason == failure.ReasonUnsupported
}

// admit asks what needs neither cluster nor content (DESIGN D6, R-IP-42):
//
//  1. a record that has gone back: nothing is done at all
//  2. the stop switch: no further step
//  3. a grant that is not the hub's, or about something else
//  4. before the first step: a grant for another service account than the operator group names, or that has run out, which is asked once more right before the log says that the plan
//     has begun
//  5. no operator group, or several: whom the operators serve is not known; a namespace where no operator may be
func (w *work) admit(p protocol.Plan, begun bool) *failure.Failure {
	if w.RecordBehind {
		return &failure.Failure{
			Class: failure.Stopped, Reason: failure.ReasonBehind, Quick: true,
			Message: fmt.Sprintf("the record stands at %s, this cluster has acted on %s", w.Wanted.Position, w.seenAt(w.Namespace)),
		}
	}
	if f := w.Stopped(); f != nil {
		return f
	}
	g := p.Grant
	if err := g.Verify(w.cfg.GrantKey); err != nil {
		return &failure.Failure{Class: failure.Conflict, Reason: failure.ReasonGrant, Quick: true, Message: err.Error()}
	}
	if g.Plan != p.ID || g.Digest != p.Digest || g.Cluster != w.cfg.ClusterID || g.Namespace != w.Namespace {
		return &failure.Failure{Class: failure.Conflict, Reason: failure.ReasonGrant, Quick: true, Message: "the grant is for another plan, digest, cluster or namespace"}
	}
	if !begun && g.Expired(w.Now()) {
		return expired(g)
	}
	if f := w.CheckGroup(); f != nil || begun {
		return f
	}
	if g.Account != w.GroupAccount().Name {
		return &failure.Failure{Class: failure.Conflict, Reason: failure.ReasonGrant, Quick: true, Message: "the grant is for another service account than the operator group names"}
	}
	return nil
}

// granted asks before a removal begins whether the hub wants it, here and now (DESIGN D6).
func (w *work) granted(r protocol.Removal) *failure.Failure {
	d, err := r.Digest()
	switch err = errors.Join(err, r.Grant.Verify(w.cfg.GrantKey)); {
	case err != nil:
		return &failure.Failure{Class: failure.Conflict, Reason: failure.ReasonGrant, Quick: true, Message: err.Error()}
	case r.Grant.Plan != r.ID || r.Grant.Digest != string(d) || r.Grant.Cluster != w.cfg.ClusterID || r.Grant.Namespace != w.Namespace:
		return &failure.Failure{Class: failure.Conflict, Reason: failure.ReasonGrant, Quick: true, Message: "the grant is for another removal, cluster or namespace"}
	case r.Grant.Expired(w.Now()):
		return expired(r.Grant)
	}
	return nil
}

func expired(g protocol.Grant) *failure.Failure {
	return &failure.Failure{Class: failure.Expired, Reason: failure.ReasonExpired, Quick: true, Message: "the grant expired at " + g.Expires.UTC().Format("2006-01-02T15:04:05Z")}
}

// checks are what is to be known before the first step, beside what a check of the plan lists in full.
func (w *work) checks() []func(context.Context, scope.Plan) (*failure.Failure, error) {
	return []func(context.Context, scope.Plan) (*failure.Failure, error){w.checkBase, w.checkRemovals, w.checkUpgradeable, w.checkAccount, w.checkOwners}
}

// check asks everything that is to be known before the first step, in order; the first obstacle counts.
func (w *work) check(ctx context.Context, r scope.Plan) (*failure.Failure, error) {
	for _, of := range append(w.checks(), w.checkTaken, w.checkShared, w.checkRights, w.checkCRDs, w.claim) {
		if f, err := of(ctx, r); f != nil || err != nil {
			return f, err
		}
	}
	return nil, nil //nolint:nilnil // nothing is in the way
}

// checkBase compares what the plan stands on with the cluster, before the first step (DESIGN D6).
func (w *work) checkBase(ctx context.Context, r scope.Plan) (*failure.Failure, error) {
	for _, b := range r.Document.Bundles {
		if b.Replaces == "" {
			continue
		}
		found, err := w.Client.Get(ctx, kube.GVKInstalledOperator, w.Namespace, b.Replaces)
		if err != nil {
			return nil, err
		}
		if found == nil {
			return &failure.Failure{Class: failure.Conflict, Reason: failure.ReasonBase, Message: b.CSV + " is to follow " + b.Replaces + ", which is not installed"}, nil
		}
	}
	return nil, nil //nolint:nilnil // neither a failure nor an error: the base is as it was
}

// notYet reports a plan whose back-off still runs, and why it waits.
func (w *work) notYet(id string, x *kube.Execution) (bool, *failure.Failure) {
	now := w.Now()
	if x == nil {
		w.mu.Lock()
		note, ok := w.retry[id]
		w.mu.Unlock()
		if ok && now.Before(note.after) {
			w.Soon(note.after.Sub(now))
			return true, &note.failure
		}
		return false, nil
	}
	if now.Before(x.Status.NotBefore) {
		w.Soon(x.Status.NotBefore.Sub(now))
		return true, nil
	}
	return false, nil
}

// newlyChosen reports a plan of which approvers have settled obstacles since it was tried last: it is tried at once.
func (w *work) newlyChosen(p protocol.Plan) bool {
	now := fmt.Sprint(p.Grant.Choices)
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.chosen[p.ID]
	w.chosen[p.ID] = now
	return was != now && len(p.Grant.Choices) > 0
}

// stillFor discards an execution of which no step was taken where the operator group names another account by now than
// the one that was written down in it: it is opened anew (R-OG-60).
func (w *work) stillFor(ctx context.Context, x *kube.Execution) (*kube.Execution, error) {
	if x == nil || x.Status.Begun || x.Spec.Account == w.GroupAccount().User() {
		return x, nil
	}
	if err := w.Client.Discard(ctx, x); err != nil {
		return x, err
	}
	w.Executions = slices.DeleteFunc(w.Executions, func(o *kube.Execution) bool { return o == x })
	return nil, w.Points.At("discarded")
}

// openExecution opens an execution; one of that name that is there must be the hub's.
func (w *work) openExecution(ctx context.Context, spec kube.ExecutionSpec) (*kube.Execution, error) {
	x, err := w.Client.Open(ctx, w.Namespace, spec)
	if err == nil {
		err = x.Proven(w.cfg.GrantKey, w.cfg.ClusterID)
	}
	if err != nil {
		return nil, err
	}
	w.Executions = append(w.Executions, x)
	return x, nil
}

// begin makes sure of the namespace and of the execution.
func (w *work) begin(ctx context.Context, r scope.Plan, x *kube.Execution) (*kube.Execution, error) {
	if x != nil {
		return x, nil
	}
	if err := w.Client.EnsureNamespace(ctx, w.Namespace); err != nil {
		return nil, err
	}
	if err := w.Points.At("begin"); err != nil {
		return nil, err
	}
	p := r.Plan
	spec := kube.ExecutionSpec{Plan: p.ID, Name: p.Name, Digest: p.Digest, Component: p.Component, Configs: p.Configs, Grant: p.Grant}
	spec.Steps, spec.Account = hubclient.CountSteps(p), w.GroupAccount().User()
	for _, b := range r.Document.Bundles {
		spec.Operators = append(spec.Operators, b.CSV)
	}
	x, err := w.openExecution(ctx, spec)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	delete(w.retry, p.ID)
	w.mu.Unlock()
	return x, w.Points.At("opened")
}

// interrupted turns an error of the API into a block of the plan; a crash, a lost fence and the end of
// the session pass through.
func (w *work) interrupted(ctx context.Context, p protocol.Plan, x *kube.Execution, err error) error {
	if failure.Final(ctx, err) {
		return err
	}
	f := failure.OwnObject(err)
	return w.blocked(ctx, p, x, &f)
}

// blocked notes why a plan waits. The log keeps it, with the back-off, once there is a log.
func (w *work) blocked(ctx context.Context, p protocol.Plan, x *kube.Execution, f *failure.Failure) error {
	f = w.withOwner(ctx, f)
	defer func() { w.outcome(p, x, f) }()
	if f.Quick {
		w.Soon(w.Pause)
	}
	if x == nil {
		w.logWait(ctx, p, f, w.noteRetry(p.ID, *f))
		return nil
	}
	s := &x.Status
	same := s.Phase == protocol.PlanBlocked && s.Reason == f.Reason
	w.logWait(ctx, p, f, !same || s.Message != f.Message)
	if f.Quick && same && s.Message == f.Message {
		return nil
	}
	if !same {
		s.Since = w.Now().UTC()
	}
	s.Phase, s.Class, s.Reason, s.Message = protocol.PlanBlocked, f.Class, f.Reason, f.Message
	if !f.Quick {
		s.Attempts++
		wait := w.backoff(s.Attempts)
		s.NotBefore = w.Now().UTC().Add(wait)
		w.Soon(wait)
	}
	return w.Client.Save(ctx, x)
}

// logWait logs why a plan waits; what waits for the same as before, only to those who look for everything.
func (w *work) logWait(ctx context.Context, p protocol.Plan, f *failure.Failure, news bool) {
	level := slog.LevelDebug
	if news {
		level = slog.LevelInfo
	}
	w.Log.Log(ctx, level, "plan waits", "plan", p.Name, "namespace", w.Namespace, "class", f.Class, "reason", f.Reason, "message", f.Message)
}

// noteRetry notes why a plan waits that has no step log yet, and reports whether it waited for something else before.
func (w *work) noteRetry(id string, f failure.Failure) (news bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	note, ok := w.retry[id]
	if !ok {
		note.since = w.Now()
	}
	news = !ok || note.failure.Reason != f.Reason || note.failure.Message != f.Message
	note.after, note.failure = time.Time{}, f
	if !f.Quick {
		note.attempts++
		wait := w.backoff(note.attempts)
		note.after = w.Now().Add(wait)
		w.Soon(wait)
	}
	w.retry[id] = note
	return news
}

// release forgets what is noted of plans that the hub does not name any more, superseded or rejected before they began:
// nobody else would.
func (w *work) release() {
	now := make([]string, len(w.Wanted.Plans))
	for i, p := range w.Wanted.Plans {
		now[i] = p.ID
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range w.noted[w.Namespace] {
		if !slices.Contains(now, id) {
			delete(w.retry, id)
			delete(w.unsafe, id)
			delete(w.chosen, id)
		}
	}
	if len(now) == 0 {
		delete(w.noted, w.Namespace)
		return
	}
	w.noted[w.Namespace] = now
}

func (w *work) fail(ctx context.Context, p protocol.Plan, x *kube.Execution, f *failure.Failure) error {
	w.Log.WarnContext(ctx, "plan failed", "plan", p.Name, "namespace", w.Namespace, "reason", f.Reason, "message", f.Message)
	s := &x.Status
	s.Phase, s.Class, s.Reason, s.Message, s.Ended = protocol.PlanFailed, f.Class, f.Reason, f.Message, w.Now().UTC()
	if err := w.Client.Save(ctx, x); err != nil {
		return err
	}
	w.outcome(p, x, nil)
	return nil
}

func (w *work) finish(ctx context.Context, p protocol.Plan, x *kube.Execution) error {
	w.Log.InfoContext(ctx, "plan finished", "plan", p.Name, "namespace", w.Namespace, "steps", len(x.Status.Steps))
	w.outcome(p, x, nil)
	return nil
}

// summon does the steps that a plan had to leave, once the Deployments answer.
func (w *work) summon(ctx context.Context, m *scope.Operator) (bool, error) {
	owed := w.DeferredSteps(m)
	s, ok := w.Target(m)
	if len(owed) == 0 || !ok {
		return false, nil
	}
	deployments, err := w.ReadDeployments(ctx)
	if err != nil || !w.Running(m, deployments).Healthy {
		return false, err
	}
	objects, f := w.Render(ctx, s.Bundle, s.Config)
	if f != nil {
		w.Log.WarnContext(ctx, "webhooks and API services cannot be written", "csv", m.Name(), "namespace", w.Namespace, "reason", f.Reason, "message", f.Message)
		w.Soon(w.Pause)
		return false, nil
	}
	for _, step := range owed {
		i := slices.IndexFunc(objects, func(o render.Object) bool {
			return o.GVK.Group == step.Group && o.GVK.Kind == step.Kind && o.Name == step.Name
		})
		if i >= 0 { // what it renders to now need not hold it any more
			written, err := w.objects.In(w.Scope).Reapply(ctx, s, objects[i])
			if err != nil {
				return false, err
			}
			step.UID = string(written.GetUID())
		}
		step.State, step.Epoch, step.Time, step.Warnings = kube.StepDone, w.Client.Number, w.Now().UTC(), nil
	}
	return true, w.save(ctx, w.Execution(m.Plan), "summoned")
}
