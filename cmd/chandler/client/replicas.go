package client

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Replicas lists the replicas of the installer.
func (c *Client) Replicas(ctx context.Context) ([]model.Replica, error) {
	return all[model.Replica](ctx, c, client.NewListReplicasRequest())
}

// DrainReplica has a replica take clusters no more, or again.
func (c *Client) DrainReplica(ctx context.Context, in model.DrainReplica) error {
	_, err := get[struct{}](ctx, c, with(client.NewDrainReplicaRequest(client.DrainReplica{}), in))
	return err
}
