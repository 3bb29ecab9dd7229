package steplog

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// keptExecutions is how many ended executions stay beside those that are still referred to (R-IP-4).
const keptExecutions = 5

// Read reads the PlanExecutions of a namespace that the hub granted. Others are left alone, and stand in nobody's way:
// what they say was not asked for.
func (w Writer) Read(ctx context.Context) error {
	list, unread, err := (kube.StepLogs{Epoch: w.Env.Client}).Executions(ctx, w.Namespace)
	if err != nil {
		return err
	}
	w.Snapshot.Executions = slices.DeleteFunc(list, func(x *kube.Execution) bool {
		err := x.Proven(w.GrantKey, w.ClusterID)
		if err != nil {
			unread = append(unread, err)
		}
		return err != nil
	})
	for _, err := range unread {
		w.Env.Log.WarnContext(ctx, "PlanExecution is passed over", "namespace", w.Namespace, "error", err)
	}
	return nil
}

// Open opens an execution; one of that name that is there must be the hub's.
func (w Writer) Open(ctx context.Context, spec kube.ExecutionSpec) (*kube.Execution, error) {
	x, err := (kube.StepLogs{Epoch: w.Env.Client}).Open(ctx, w.Namespace, spec)
	if err == nil {
		err = x.Proven(w.GrantKey, w.ClusterID)
	}
	if err != nil {
		return nil, err
	}
	w.Snapshot.Executions = append(w.Snapshot.Executions, x)
	return x, nil
}

// Discard removes an execution of which no step was taken.
func (w Writer) Discard(ctx context.Context, x *kube.Execution) error {
	if err := (kube.StepLogs{Epoch: w.Env.Client}).Discard(ctx, x); err != nil {
		return err
	}
	w.Snapshot.Executions = slices.DeleteFunc(slices.Clone(w.Snapshot.Executions),
		func(o *kube.Execution) bool { return o == x })
	return nil
}

// Block notes why a plan waits. The log keeps it, with the back-off, once there is a log.
func (w Writer) Block(ctx context.Context, p protocol.Plan, x *kube.Execution, f *failure.Failure) error {
	f = w.Webhooks.Explain(ctx, w.Env.Log, f)
	defer func() { w.Outcome(p, x, f) }()
	if f.Quick {
		w.Attempts.Soon(w.Env.Pause)
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
		s.Since = w.Env.Now().UTC()
	}
	s.Phase, s.Class, s.Reason, s.Message = protocol.PlanBlocked, f.Class, f.Reason, f.Message
	if !f.Quick {
		s.Attempts++
		wait := w.backoff(s.Attempts)
		s.NotBefore = w.Env.Now().UTC().Add(wait)
		w.Attempts.Soon(wait)
	}
	return (kube.StepLogs{Epoch: w.Env.Client}).Save(ctx, x)
}

// logWait logs why a plan waits; what waits for the same as before, only to those who look for everything.
func (w Writer) logWait(ctx context.Context, p protocol.Plan, f *failure.Failure, news bool) {
	level := slog.LevelDebug
	if news {
		level = slog.LevelInfo
	}
	w.Env.Log.Log(ctx, level, "plan waits", "plan", p.Name, "namespace", w.Namespace, "class", f.Class, "reason",
		f.Reason, "message", f.Message)
}

// Fail ends a plan for good.
func (w Writer) Fail(ctx context.Context, p protocol.Plan, x *kube.Execution, f *failure.Failure) error {
	w.Env.Log.WarnContext(ctx, "plan failed", "plan", p.Name, "namespace", w.Namespace, "reason", f.Reason, "message",
		f.Message)
	s := &x.Status
	s.Phase, s.Class, s.Reason, s.Message = protocol.PlanFailed, f.Class, f.Reason, f.Message
	s.Ended = w.Env.Now().UTC()
	if err := (kube.StepLogs{Epoch: w.Env.Client}).Save(ctx, x); err != nil {
		return err
	}
	w.Outcome(p, x, nil)
	return nil
}

// Interrupted turns an error of the API into a block of the plan; a crash, a lost fence and the end of
// the session pass through.
func (w Writer) Interrupted(ctx context.Context, p protocol.Plan, x *kube.Execution, err error) error {
	if failure.Final(ctx, err) {
		return err
	}
	f := failure.OwnObject(err)
	return w.Block(ctx, p, x, &f)
}

// Pruner is the stage that removes executions that nobody refers to any more, but the newest few.
type Pruner struct{}

// Reconcile removes old executions.
func (Pruner) Reconcile(ctx context.Context, sc *scope.Scope) (res scope.Result, err error) {
	var old []*kube.Execution
	wanted := sc.Snapshot.Wanted
	for _, x := range sc.Snapshot.Executions {
		referred := slices.ContainsFunc(sc.Snapshot.Installed.Operators,
			func(m *scope.Operator) bool { return m.Plan == x.Spec.Plan }) ||
			slices.Contains(slices.Collect(maps.Values(sc.Snapshot.Installed.Unreadable)), x.Spec.Plan) ||
			slices.ContainsFunc(wanted.Plans, func(p protocol.Plan) bool { return p.ID == x.Spec.Plan }) ||
			slices.ContainsFunc(wanted.Removals, func(r protocol.Removal) bool { return r.ID == x.Spec.Plan })
		if scope.Ended(x) && !referred {
			old = append(old, x)
		}
	}
	if len(old) <= keptExecutions {
		return res, nil
	}
	slices.SortFunc(old, func(a, b *kube.Execution) int {
		if c := a.Status.Ended.Compare(b.Status.Ended); c != 0 {
			return c
		}
		return strings.Compare(a.Spec.Plan, b.Spec.Plan)
	})
	for _, x := range old[:len(old)-keptExecutions] {
		err := (kube.StepLogs{Epoch: sc.Env.Client}).Discard(ctx, x)
		if err := sc.Attempts.Alone(ctx, "", scope.PartLogs, err); err != nil {
			return res, err
		}
	}
	return res, nil
}
