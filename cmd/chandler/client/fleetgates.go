package client

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/client"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// PassGate lets the open wave of a rollout go on without one of its gates.
func (c *Client) PassGate(
	ctx context.Context, r RolloutRef, gate string, in fleetmodel.PassGate,
) (fleetmodel.Rollout, error) {
	req := client.NewPassRolloutGateRequest(r.FleetSubscription, r.number(), gate, nil, client.PassGate{})
	return get[fleetmodel.Rollout](ctx, c, with(req, in))
}
