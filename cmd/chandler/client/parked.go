package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Parked lists events that a consumer could not take; consumer "" is all of them.
func (c *Client) Parked(ctx context.Context, consumer string) ([]model.ParkedEvent, error) {
	return list[model.ParkedEvent](ctx, c, "/log/parked", url.Values{"consumer": {consumer}})
}

// ParkedEvent returns one of them with its bytes.
func (c *Client) ParkedEvent(ctx context.Context, ref model.ParkedRef) (model.ParkedEvent, error) {
	return ask[model.ParkedEvent](ctx, c, http.MethodGet, "/log/parked/event", url.Values{
		"consumer": {ref.Consumer}, "stream": {ref.Stream}, "version": {strconv.FormatInt(ref.Version, 10)},
	}, nil)
}

// RetryParked has parked events tried again at once.
func (c *Client) RetryParked(ctx context.Context, in model.RetryParked) error {
	_, err := ask[struct{}](ctx, c, http.MethodPost, "/log/parked/retry", nil, in)
	return err
}

// SkipParked has a consumer go on without an event.
func (c *Client) SkipParked(ctx context.Context, in model.SkipParked) error {
	_, err := ask[struct{}](ctx, c, http.MethodPost, "/log/parked/skip", nil, in)
	return err
}

// Skipped lists events that consumers went on without; consumer "" is all of them.
func (c *Client) Skipped(ctx context.Context, consumer string) ([]model.SkippedEvent, error) {
	return list[model.SkippedEvent](ctx, c, "/log/skipped", url.Values{"consumer": {consumer}})
}
