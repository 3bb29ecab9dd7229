package client

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// AddToken makes a token; its secret is in this answer alone.
func (c *Client) AddToken(ctx context.Context, in model.AddToken) (model.NewToken, error) {
	return get[model.NewToken](ctx, c, with(client.NewAddTokenRequest(client.AddToken{}), in))
}

// Tokens lists tokens without their secrets, revoked ones included.
func (c *Client) Tokens(ctx context.Context) ([]model.Token, error) {
	return all[model.Token](ctx, c, client.NewListTokensRequest(nil))
}

// Token shows a token, also one that is refused by now.
func (c *Client) Token(ctx context.Context, id string) (model.Token, error) {
	return get[model.Token](ctx, c, client.NewGetTokenRequest(id))
}

// RotateToken gives a token another secret, which is in this answer alone.
func (c *Client) RotateToken(ctx context.Context, id string, in model.RotateToken) (model.NewToken, error) {
	return get[model.NewToken](ctx, c, with(client.NewRotateTokenRequest(id, client.RotateToken{}), in))
}

// RevokeToken has a token refused from now on.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	_, err := get[struct{}](ctx, c, client.NewRevokeTokenRequest(id))
	return err
}

// CreateBreakGlass makes the token that works while nobody can sign in, in the place of the one before.
func (c *Client) CreateBreakGlass(ctx context.Context) (model.NewBreakGlass, error) {
	return get[model.NewBreakGlass](ctx, c, client.NewCreateBreakGlassRequest())
}

// BreakGlass shows that token, without its secret.
func (c *Client) BreakGlass(ctx context.Context) (model.BreakGlass, error) {
	return get[model.BreakGlass](ctx, c, client.NewGetBreakGlassRequest())
}

// RevokeBreakGlass has it refused from now on.
func (c *Client) RevokeBreakGlass(ctx context.Context) error {
	_, err := get[struct{}](ctx, c, client.NewRevokeBreakGlassRequest())
	return err
}

// OpenBreakGlass has it let in for an hour; it has to be the token of the client.
func (c *Client) OpenBreakGlass(ctx context.Context, in model.OpenBreakGlass) (model.BreakGlassUse, error) {
	return get[model.BreakGlassUse](ctx, c, with(client.NewOpenBreakGlassRequest(client.OpenBreakGlass{}), in))
}

// AuthConfig tells how people sign in; it wants no token.
func (c *Client) AuthConfig(ctx context.Context) (model.AuthConfig, error) {
	return get[model.AuthConfig](ctx, c, client.NewGetAuthConfigRequest())
}

// Identities lists who has signed in at identity providers.
func (c *Client) Identities(ctx context.Context) ([]model.Identity, error) {
	return all[model.Identity](ctx, c, client.NewListIdentitiesRequest(nil))
}

// ConfigureIdentity says whose an identity is, and whether it lets anybody in.
func (c *Client) ConfigureIdentity(
	ctx context.Context, id string, in model.ConfigureIdentity,
) (model.Identity, error) {
	return get[model.Identity](ctx, c, with(client.NewConfigureIdentityRequest(id, client.ConfigureIdentity{}), in))
}

// KeyUses lists what uses which key of the installation.
func (c *Client) KeyUses(ctx context.Context) ([]model.KeyUse, error) {
	return all[model.KeyUse](ctx, c, client.NewListKeyUsesRequest())
}

// Quotas lists what tenants may have, beside what they have.
func (c *Client) Quotas(ctx context.Context) ([]model.Quota, error) {
	return all[model.Quota](ctx, c, client.NewListQuotasRequest())
}

// Quota returns what one tenant may have, beside what it has.
func (c *Client) Quota(ctx context.Context, tenant string) (model.Quota, error) {
	return get[model.Quota](ctx, c, client.NewGetQuotaRequest(tenant))
}

// SetQuota sets what a tenant may have and ask for, or replaces all of the quota whose tag is match.
func (c *Client) SetQuota(ctx context.Context, tenant, match string, in model.SetQuota) (model.Quota, error) {
	return replace[model.Quota](ctx, c, with(client.NewSetQuotaRequest(tenant, client.SetQuota{}), in), match)
}
