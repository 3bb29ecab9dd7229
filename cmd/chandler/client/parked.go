package client

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Parked lists events that a consumer could not take; consumer "" is all of them.
func (c *Client) Parked(ctx context.Context, consumer string) ([]model.ParkedEvent, error) {
	req := client.NewListParkedEventsRequest(&client.ListParkedEventsParams{Consumer: consumer})
	return all[model.ParkedEvent](ctx, c, req)
}

// ParkedEvent returns one of them with its bytes.
func (c *Client) ParkedEvent(ctx context.Context, ref model.ParkedRef) (model.ParkedEvent, error) {
	req := client.NewGetParkedEventRequest(&client.GetParkedEventParams{
		Consumer: ref.Consumer, Stream: ref.Stream, Version: ref.Version,
	})
	return get[model.ParkedEvent](ctx, c, req)
}

// RetryParked has parked events tried again at once.
func (c *Client) RetryParked(ctx context.Context, in model.RetryParked) error {
	_, err := get[struct{}](ctx, c, with(client.NewRetryParkedEventsRequest(client.RetryParked{}), in))
	return err
}

// SkipParked has a consumer go on without an event.
func (c *Client) SkipParked(ctx context.Context, in model.SkipParked) error {
	_, err := get[struct{}](ctx, c, with(client.NewSkipParkedEventRequest(client.SkipParked{}), in))
	return err
}

// Skipped lists events that consumers went on without; consumer "" is all of them.
func (c *Client) Skipped(ctx context.Context, consumer string) ([]model.SkippedEvent, error) {
	req := client.NewListSkippedEventsRequest(&client.ListSkippedEventsParams{Consumer: consumer})
	return all[model.SkippedEvent](ctx, c, req)
}
