package client

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// AddToken makes a token; its secret is in this answer alone.
func (c *Client) AddToken(ctx context.Context, in model.AddToken) (model.NewToken, error) {
	return ask[model.NewToken](ctx, c, http.MethodPost, "/tokens", nil, in)
}

// Tokens lists tokens without their secrets, revoked ones included.
func (c *Client) Tokens(ctx context.Context) ([]model.Token, error) {
	return list[model.Token](ctx, c, "/tokens", nil)
}

// RevokeToken has a token refused from now on.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	_, err := ask[struct{}](ctx, c, http.MethodDelete, join("tokens", id), nil, nil)
	return err
}

// KeyUses lists what uses which key of the installation.
func (c *Client) KeyUses(ctx context.Context) ([]model.KeyUse, error) {
	return list[model.KeyUse](ctx, c, "/keys", nil)
}
