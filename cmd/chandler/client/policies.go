package client

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// ApprovalPolicies lists approval policies.
func (c *Client) ApprovalPolicies(ctx context.Context, s Selection) ([]model.ApprovalPolicy, error) {
	return list[model.ApprovalPolicy](ctx, c, "/approvalpolicies", s.query())
}

// ApprovalPolicy returns one approval policy.
func (c *Client) ApprovalPolicy(ctx context.Context, name string) (model.ApprovalPolicy, error) {
	return ask[model.ApprovalPolicy](ctx, c, http.MethodGet, join("approvalpolicies", name), nil, nil)
}

// SetApprovalPolicy makes an approval policy, or replaces all of it.
func (c *Client) SetApprovalPolicy(ctx context.Context, name string, want model.SetApprovalPolicy) (
	model.ApprovalPolicy, error,
) {
	return ask[model.ApprovalPolicy](ctx, c, http.MethodPut, join("approvalpolicies", name), nil, want)
}

// DeleteApprovalPolicy ends an approval policy.
func (c *Client) DeleteApprovalPolicy(ctx context.Context, name string) (model.Removed, error) {
	return ask[model.Removed](ctx, c, http.MethodDelete, join("approvalpolicies", name), nil, nil)
}
