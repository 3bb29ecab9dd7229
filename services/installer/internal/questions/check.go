package questions

import (
	"context"
	"encoding/json"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// Plans knows what executors are told of install plans.
type Plans interface {
	// PlanQuestion is what the executor of a cluster is asked about a plan that has not ended.
	PlanQuestion(ctx context.Context, tenant, plan string) (cluster string, q protocol.PlanQuestion, err error)
}

// Checks answers what stands in the way of install plans.
func (q Questions) Checks(ctx context.Context) error {
	return q.Bus.Serve(ctx, protocol.AskInstallerCheck, q.check)
}

func (q Questions) check(ctx context.Context, raw json.RawMessage) (any, error) {
	var in protocol.LivePlanQuestion
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "read the question about a plan")
	}
	cluster, question, err := q.Plans.PlanQuestion(ctx, in.Tenant, in.Plan)
	if err != nil {
		return nil, err
	}
	var out protocol.PlanCheck
	err = q.executor(ctx, in.Tenant, cluster, protocol.AskCheckPlan, question, &out)
	return out, err
}
