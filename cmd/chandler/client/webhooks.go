package client

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Webhooks lists webhooks.
func (c *Client) Webhooks(ctx context.Context) ([]model.Webhook, error) {
	return all[model.Webhook](ctx, c, client.NewListWebhooksRequest(nil))
}

// Webhook returns one webhook.
func (c *Client) Webhook(ctx context.Context, name string) (model.Webhook, error) {
	return get[model.Webhook](ctx, c, client.NewGetWebhookRequest(name, nil))
}

// SetWebhook makes a webhook, or replaces all of the one whose tag is match.
func (c *Client) SetWebhook(ctx context.Context, name, match string, want model.WebhookSpec) (model.Webhook, error) {
	req := client.NewSetWebhookRequest(name, nil, client.WebhookSpec{})
	return replace[model.Webhook](ctx, c, with(req, want), match)
}

// DeleteWebhook ends a webhook.
func (c *Client) DeleteWebhook(ctx context.Context, name string) (model.Removed, error) {
	return get[model.Removed](ctx, c, client.NewDeleteWebhookRequest(name, nil))
}

// WebhookDeliveries lists what a webhook sends and has sent, newest first, in a state or in all.
func (c *Client) WebhookDeliveries(ctx context.Context, name, state string) ([]model.WebhookDelivery, error) {
	req := client.NewListWebhookDeliveriesRequest(name, &client.ListWebhookDeliveriesParams{
		State: client.ListWebhookDeliveriesParamsState(state),
	})
	return all[model.WebhookDelivery](ctx, c, req)
}

// TestWebhook sends a test event once.
func (c *Client) TestWebhook(ctx context.Context, name string) (model.WebhookDelivery, error) {
	return get[model.WebhookDelivery](ctx, c, client.NewTestWebhookRequest(name))
}

// ReplayWebhook has the events behind a position sent again.
func (c *Client) ReplayWebhook(ctx context.Context, name, after string) (model.Webhook, error) {
	req := client.NewReplayWebhookRequest(name, client.ReplayWebhook{})
	return get[model.Webhook](ctx, c, with(req, model.ReplayWebhook{After: after}))
}

// RotateWebhook gives a webhook another secret.
func (c *Client) RotateWebhook(ctx context.Context, name string) (model.Webhook, error) {
	return get[model.Webhook](ctx, c, client.NewRotateWebhookRequest(name))
}
