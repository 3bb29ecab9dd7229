package steplog

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/hubclient"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// stepLogType is the type prefix of a step log's digest.
const stepLogType = "chandler.steplog.v1"

// maxUnlistedLogs bounds the bytes of the step logs of plans that the hub does not ask for: a quarter of a
// NATS message, so that they never crowd out what it asks for.
const maxUnlistedLogs = 256 << 10

// Outcome notes what the report says of a plan. f is a block that no log holds. A transient failure is
// told when it has lasted for a while: what is over by itself is no fact worth recording.
func (w Writer) Outcome(p protocol.Plan, x *kube.Execution, f *failure.Failure) {
	r := protocol.PlanReport{ID: p.ID, Steps: hubclient.CountSteps(p), TraceParent: p.TraceParent}
	if w.fill(&r, x, f) {
		w.Found.Outcomes[p.ID] = r
	}
}

// fill fills in what the execution and the block say, and reports whether there is anything to be reported.
func (w Writer) fill(r *protocol.PlanReport, x *kube.Execution, f *failure.Failure) bool {
	r.Phase = protocol.PlanBlocked
	if x != nil {
		s := x.Status
		r.Warnings, r.Started = s.Warnings(), s.Started
		r.Begun, r.Done, r.Class, r.Reason, r.Message = s.Begun, s.Done(), s.Class, s.Reason, s.Message
		if s.Phase != "" {
			r.Phase = s.Phase
		}
		if scope.Ended(x) {
			r.StepLog = w.stepLog(x)
		}
	}
	if f != nil {
		r.Phase, r.Class, r.Reason, r.Message = protocol.PlanBlocked, f.Class, f.Reason, f.Message
	}
	if r.Phase == protocol.PlanBlocked && w.young(r.ID, r.Class, x) {
		if !r.Begun {
			return false
		}
		r.Phase, r.Class, r.Reason, r.Message = protocol.PlanStarted, "", "", ""
	}
	return true
}

// young reports a transient block that is not told yet, and sees to it that it will be.
func (w Writer) young(id, class string, x *kube.Execution) bool {
	if class == "" {
		return true // opened, and nothing has happened yet
	}
	if class != failure.Transient {
		return false
	}
	since := w.Env.Now()
	if x != nil {
		since = x.Status.Since
	} else {
		w.mu.Lock()
		if note, ok := w.retry[id]; ok {
			since = note.since
		}
		w.mu.Unlock()
	}
	left := w.Grace - w.Env.Now().Sub(since)
	w.Attempts.Soon(left)
	return left > 0
}

// stepLog is the log as canonical JSON.
func (w Writer) stepLog(x *kube.Execution) []byte {
	log, err := digest.Canonical(map[string]any{
		"type": stepLogType, "plan": x.Spec.Plan, "digest": x.Spec.Digest,
		"steps": x.Status.Steps,
	})
	if err != nil {
		w.Env.Log.Error("step log cannot be encoded", "plan", x.Spec.Name, "error",
			errs.Wrap(errs.Internal, err, "encode"))
		return nil
	}
	return log
}

// Unlisted are the reports of plans that were begun and that the hub does not name (any more): one that was
// superseded while its first step was on the way here is known to the hub as never begun until it is reported.
// Those under way come first, then the ended ones as long as they are kept, newest first, within a bound.
func (w Writer) Unlisted() []protocol.PlanReport {
	var out []protocol.PlanReport
	logs := 0
	for _, x := range newestFirst(w.Snapshot.Executions) {
		if !x.Status.Begun || x.Spec.Removal != nil || slices.ContainsFunc(
			w.Snapshot.Wanted.Plans, func(p protocol.Plan) bool { return p.ID == x.Spec.Plan }) {
			continue
		}
		r := protocol.PlanReport{ID: x.Spec.Plan, Steps: x.Spec.Steps}
		if !w.fill(&r, x, nil) {
			continue
		}
		if logs += len(r.StepLog); logs > maxUnlistedLogs {
			break
		}
		out = append(out, r)
	}
	return out
}

// newestFirst sorts those that are under way before all, then by their end.
func newestFirst(all []*kube.Execution) []*kube.Execution {
	return slices.SortedFunc(slices.Values(all), func(a, b *kube.Execution) int {
		under := func(x *kube.Execution) int {
			if scope.Ended(x) {
				return 1
			}
			return 0
		}
		return cmp.Or(under(a)-under(b), b.Status.Ended.Compare(a.Status.Ended),
			strings.Compare(a.Spec.Plan, b.Spec.Plan))
	})
}

// Stored is what of a scope is certain after a reconcile that ended in an error: the plans that are begun, as their
// logs in the cluster say. What was noted since and not written is left out.
func (w Writer) Stored(ctx context.Context) []protocol.PlanReport {
	stored := w.In(scope.New(w.Env, w.Snapshot.Wanted, w.Slot, w.Attempts.Again()))
	for _, x := range w.Snapshot.Executions {
		s, err := x.Stored()
		if err != nil {
			w.Env.Log.WarnContext(ctx, "a step log is not reported", "plan", x.Spec.Name, "namespace", w.Namespace,
				"error", err)
			continue
		}
		stored.Snapshot.Executions = append(stored.Snapshot.Executions, s)
	}
	var out []protocol.PlanReport
	for _, p := range w.Snapshot.Wanted.Plans {
		if x := stored.Snapshot.Executions.Of(p.ID); x != nil && x.Status.Begun {
			stored.Outcome(p, x, nil)
			out = append(out, stored.Found.Outcomes[p.ID])
		}
	}
	return append(out, stored.Unlisted()...)
}
