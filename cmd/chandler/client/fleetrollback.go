package client

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/client"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// RollBackRollout has the newest rollout of a fleet subscription taken back, and returns that one.
func (c *Client) RollBackRollout(
	ctx context.Context, fleet string, in fleetmodel.RollBackRollout,
) (fleetmodel.Rollout, error) {
	req := client.NewRollbackFleetSubscriptionRequest(fleet, nil, client.RollBackRollout{})
	return get[fleetmodel.Rollout](ctx, c, with(req, in))
}
