package client

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Replicas lists the replicas of the installer.
func (c *Client) Replicas(ctx context.Context) ([]model.Replica, error) {
	return list[model.Replica](ctx, c, "/replicas", nil)
}

// DrainReplica has a replica take clusters no more, or again.
func (c *Client) DrainReplica(ctx context.Context, in model.DrainReplica) error {
	_, err := ask[struct{}](ctx, c, http.MethodPost, "/replicas/drain", nil, in)
	return err
}
