package queries

import (
	"context"
	"encoding/json"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// Plans makes questions about install plans.
type Plans interface {
	// PlanQuestion is the question to the executor of a cluster about a plan that has not ended.
	PlanQuestion(ctx context.Context, tenant, plan string) (cluster string, q protocol.PlanQuestion, err error)
}

// ServePlanChecks answers questions about what blocks install plans.
func (q Server) ServePlanChecks(ctx context.Context) error {
	return q.Bus.ServeWith(ctx, protocol.RPCInstallerCheck, limits, q.check)
}

func (q Server) check(ctx context.Context, raw json.RawMessage) (any, error) {
	var in protocol.LivePlanQuestion
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "read the question about a plan")
	}
	cluster, question, err := q.Plans.PlanQuestion(ctx, in.Tenant, in.Plan)
	if err != nil {
		return nil, err
	}
	var out protocol.PlanCheck
	err = q.askExecutor(ctx, in.Tenant, cluster, protocol.RPCCheckPlan, question, &out)
	return out, err
}
