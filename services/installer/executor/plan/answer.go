package plan

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/allowance"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/preflight"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// Check says what would stand in the way of a plan now: everything, not the first thing only; of a plan that was begun,
// what its log says.
func (s *Stage) Check(ctx context.Context, sc *scope.Scope, p protocol.Plan) (protocol.PlanCheck, error) {
	return worker{s, sc}.checkAll(ctx, p)
}

func (w worker) checkAll(ctx context.Context, p protocol.Plan) (protocol.PlanCheck, error) {
	if x := w.Snapshot.Executions.Of(p.ID); x != nil && x.Status.Begun {
		return w.begunCheck(ctx, p, x)
	}
	var obstacles []protocol.Obstacle
	note := func(f *failure.Failure) {
		if f != nil {
			f = w.Webhooks.Explain(ctx, w.Env.Log, f)
			obstacles = append(obstacles, protocol.Obstacle{Class: f.Class, Reason: f.Reason, Message: f.Message})
		}
	}
	note(checkGroup(w.Snapshot.Wanted))
	r, f := w.Open(ctx, p, w.Snapshot.Executions.Of(p.ID))
	if f != nil {
		note(f)
		return protocol.PlanCheck{Account: w.Snapshot.GroupAccount().User(), Obstacles: obstacles}, nil
	}
	all := func(ctx context.Context, r scope.Plan) (*failure.Failure, error) {
		// of one that is there the verdict says more
		return w.taken(ctx, r, func(o render.Object) bool {
			return preflight.Protected(o) || preflight.Definition(o) && !w.defines(ctx, o)
		})
	}
	for _, of := range append(w.checks(), all) {
		f, err := of(ctx, r)
		if err != nil {
			return protocol.PlanCheck{}, err
		}
		note(f)
	}
	refusals, err := w.Webhooks.Try(ctx, r.Objects)
	if err != nil {
		return protocol.PlanCheck{}, err
	}
	for _, x := range refusals {
		f := failure.Classify(x.Err)
		f.Message = x.Object + ": " + f.Message
		note(&f)
	}
	q, err := w.question(r)
	if err != nil {
		return protocol.PlanCheck{}, err
	}
	done, err := w.judges(ctx)
	if err != nil {
		return protocol.PlanCheck{}, err
	}
	defer done()
	out, err := preflight.Check(ctx, w.Env.Client, q)
	if err == nil {
		out.Shared, err = w.Objects.In(w.Scope).Findings(ctx, r)
	}
	if err == nil {
		out.Allowances, err = allowance.Of(r.Document.Bundles, r.Objects, r.Grant.Choices)
	}
	out.Obstacles = append(obstacles, out.Obstacles...)
	return out, err
}

// begunCheck says of a plan that has begun what keeps it from going on. What a person may settle came since it was
// looked at, and is looked at as it is now.
func (w worker) begunCheck(ctx context.Context, p protocol.Plan, x *kube.Execution) (
	out protocol.PlanCheck, err error,
) {
	out.Account = x.Spec.Account
	s := x.Status
	if s.Phase != protocol.PlanBlocked && s.Phase != protocol.PlanFailed {
		return out, nil
	}
	out.Obstacles = []protocol.Obstacle{{Class: s.Class, Reason: s.Reason, Message: s.Message}}
	r, f := w.Open(ctx, p, x)
	if f != nil || s.Reason != failure.ReasonShared && s.Reason != reasonUnsafeCRD {
		return out, nil
	}
	q, err := w.question(r)
	if err != nil {
		return out, err
	}
	q.Objects = nil
	for _, i := range s.Taken() {
		q.Objects = append(q.Objects, r.Objects[i])
		found, err := w.Objects.In(w.Scope).Finding(ctx, r, r.Objects[i])
		if err != nil {
			return out, err
		}
		if found != nil {
			out.Shared = append(out.Shared, *found)
		}
	}
	out.Obstacles = nil
	out.CRDs, err = w.definitions(ctx, q)
	return out, err
}
