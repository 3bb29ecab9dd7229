package client

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/client"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// FleetBudget returns the budget of mass changes, and what waits for it.
func (c *Client) FleetBudget(ctx context.Context) (fleetmodel.FleetBudget, error) {
	return get[fleetmodel.FleetBudget](ctx, c, client.NewGetFleetBudgetRequest())
}

// SetFleetBudget replaces the budget whose tag is match.
func (c *Client) SetFleetBudget(
	ctx context.Context, match string, in fleetmodel.SetFleetBudget,
) (fleetmodel.FleetBudget, error) {
	req := client.NewSetFleetBudgetRequest(nil, client.SetFleetBudget{})
	return replace[fleetmodel.FleetBudget](ctx, c, with(req, in), match)
}

// AllowFleetBudget allows more clusters, once.
func (c *Client) AllowFleetBudget(
	ctx context.Context, in fleetmodel.AllowFleetBudget,
) (fleetmodel.FleetBudget, error) {
	req := client.NewAllowFleetBudgetRequest(nil, client.AllowFleetBudget{})
	return get[fleetmodel.FleetBudget](ctx, c, with(req, in))
}
