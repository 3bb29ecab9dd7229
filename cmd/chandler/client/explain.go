package client

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// ExplainSubscription explains the last decision about a subscription.
func (c *Client) ExplainSubscription(ctx context.Context, r Ref) (model.Decision, error) {
	return ask[model.Decision](ctx, c, http.MethodGet, r.path("subscriptions")+"/explanation", nil, nil)
}

// ExplainPlan explains an install plan.
func (c *Client) ExplainPlan(ctx context.Context, id string) (model.Decision, error) {
	return ask[model.Decision](ctx, c, http.MethodGet, join("installplans", id, "explanation"), nil, nil)
}

// WhyOperator says why an operator is what it is; the name is its CSV, its subscription or its package.
func (c *Client) WhyOperator(ctx context.Context, r Ref) (model.OperatorReasoning, error) {
	return ask[model.OperatorReasoning](ctx, c, http.MethodGet, r.path("operators")+"/why", nil, nil)
}

// CheckPlan asks the cluster of an install plan what stands in its way now.
func (c *Client) CheckPlan(ctx context.Context, id string) (model.PlanCheck, error) {
	return ask[model.PlanCheck](ctx, c, http.MethodGet, join("installplans", id, "check"), nil, nil)
}
