package client

import (
	"context"
	"net/url"
	"strings"

	"github.com/chandler-fleet/chandler/libs/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// RemovalPlan asks what uninstalling an operator would do; crds are names of definitions, or *.
func (c *Client) RemovalPlan(ctx context.Context, r Ref, crds []string) (model.RemovalPlan, error) {
	query := url.Values{"dryRun": {"true"}}
	if len(crds) > 0 {
		query.Set("crds", strings.Join(crds, ","))
	}
	req := client.NewUninstallOperatorRequest(r.Cluster, r.Namespace, r.Name, nil)
	return get[model.RemovalPlan](ctx, c, where(req, query))
}

// Uninstall asks that an operator is removed from its cluster.
func (c *Client) Uninstall(ctx context.Context, r Ref, in model.Uninstall) (model.RemovalRequested, error) {
	query := url.Values{}
	if len(in.CRDs) > 0 {
		query.Set("crds", strings.Join(in.CRDs, ","))
	}
	if in.Plan != "" {
		query.Set("plan", in.Plan)
	}
	if in.Subscriptions {
		query.Set("subscriptions", "delete")
	}
	req := client.NewUninstallOperatorRequest(r.Cluster, r.Namespace, r.Name, nil)
	return get[model.RemovalRequested](ctx, c, where(req, query))
}

// SetOverrides replaces what counts in the place of the conditions of an operator whose tag is match.
func (c *Client) SetOverrides(ctx context.Context, r Ref, match string, in model.SetOverrides) (
	model.OperatorOverrides, error,
) {
	req := client.NewSetOperatorOverridesRequest(r.Cluster, r.Namespace, r.Name, nil, client.SetOverrides{})
	return replace[model.OperatorOverrides](ctx, c, with(req, in), match)
}

// Overrides returns what counts in the place of the conditions of an operator.
func (c *Client) Overrides(ctx context.Context, r Ref) (model.OperatorOverrides, error) {
	req := client.NewGetOperatorOverridesRequest(r.Cluster, r.Namespace, r.Name, nil)
	return get[model.OperatorOverrides](ctx, c, req)
}

// RemoveOverrides lets the operator's own conditions count again.
func (c *Client) RemoveOverrides(ctx context.Context, r Ref) (model.Removed, error) {
	return get[model.Removed](ctx, c, client.NewRemoveOperatorOverridesRequest(r.Cluster, r.Namespace, r.Name, nil))
}

// Leftovers lists what uninstalled operators left.
func (c *Client) Leftovers(ctx context.Context, s Selection) ([]model.Leftovers, error) {
	req := client.NewListLeftoversRequest(&client.ListLeftoversParams{
		Cluster: s.Cluster, Namespace: s.Namespace, Package: s.Package, MinPosition: s.MinPosition,
	})
	return all[model.Leftovers](ctx, c, req)
}

// Logs are lines that pods of an operator have written: a part of them, which says where the next one begins.
func (c *Client) Logs(ctx context.Context, r Ref, which client.GetOperatorLogsParams) (client.OperatorLogs, error) {
	return get[client.OperatorLogs](ctx, c, client.NewGetOperatorLogsRequest(r.Cluster, r.Namespace, r.Name, &which))
}
