package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// RemovalPlan asks what uninstalling an operator would do; crds are names of definitions, or *.
func (c *Client) RemovalPlan(ctx context.Context, r Ref, crds []string) (model.RemovalPlan, error) {
	query := url.Values{"dryRun": {"true"}}
	if len(crds) > 0 {
		query.Set("crds", strings.Join(crds, ","))
	}
	return ask[model.RemovalPlan](ctx, c, http.MethodDelete, r.path("operators"), query, nil)
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
	return ask[model.RemovalRequested](ctx, c, http.MethodDelete, r.path("operators"), query, nil)
}

// Leftovers lists what uninstalled operators left.
func (c *Client) Leftovers(ctx context.Context, s Selection) ([]model.Leftovers, error) {
	return list[model.Leftovers](ctx, c, "/leftovers", url.Values{
		"cluster": {s.Cluster}, "namespace": {s.Namespace}, "package": {s.Package}, "minPosition": {s.MinPosition},
	})
}
