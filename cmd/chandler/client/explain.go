package client

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// ExplainSubscription explains the last decision about a subscription.
func (c *Client) ExplainSubscription(ctx context.Context, r Ref) (model.Decision, error) {
	return get[model.Decision](ctx, c, client.NewExplainSubscriptionRequest(r.Cluster, r.Namespace, r.Name, nil))
}

// ExplainPlan explains an install plan.
func (c *Client) ExplainPlan(ctx context.Context, id string) (model.Decision, error) {
	return get[model.Decision](ctx, c, client.NewExplainInstallplanRequest(id, nil))
}

// WhyOperator says why an operator is what it is; the name is its CSV, its subscription or its package.
func (c *Client) WhyOperator(ctx context.Context, r Ref) (model.OperatorReasoning, error) {
	return get[model.OperatorReasoning](ctx, c, client.NewWhyOperatorRequest(r.Cluster, r.Namespace, r.Name, nil))
}

// CheckPlan asks the cluster of an install plan what stands in its way now.
func (c *Client) CheckPlan(ctx context.Context, id string) (model.PlanCheck, error) {
	return get[model.PlanCheck](ctx, c, client.NewCheckInstallplanRequest(id, nil))
}
