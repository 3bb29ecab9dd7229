package client

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// ApprovalPolicies lists approval policies.
func (c *Client) ApprovalPolicies(ctx context.Context, s Selection) ([]model.ApprovalPolicy, error) {
	return all[model.ApprovalPolicy](ctx, c, where(client.NewListApprovalPoliciesRequest(nil), s.query()))
}

// ApprovalPolicy returns one approval policy.
func (c *Client) ApprovalPolicy(ctx context.Context, name string) (model.ApprovalPolicy, error) {
	return get[model.ApprovalPolicy](ctx, c, client.NewGetApprovalPolicyRequest(name, nil))
}

// SetApprovalPolicy makes an approval policy, or replaces all of the one whose tag is match.
func (c *Client) SetApprovalPolicy(ctx context.Context, name, match string, want model.SetApprovalPolicy) (
	model.ApprovalPolicy, error,
) {
	req := client.NewSetApprovalPolicyRequest(name, client.SetApprovalPolicy{})
	return replace[model.ApprovalPolicy](ctx, c, with(req, want), match)
}

// DeleteApprovalPolicy ends an approval policy.
func (c *Client) DeleteApprovalPolicy(ctx context.Context, name string) (model.Removed, error) {
	return get[model.Removed](ctx, c, client.NewDeleteApprovalPolicyRequest(name))
}
