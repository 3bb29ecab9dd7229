package client

import (
	"context"
	"net/url"
	"strconv"

	"github.com/chandler-fleet/chandler/libs/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Access lists requests to the API, newest first, at most limit.
func (c *Client) Access(ctx context.Context, f model.AccessFilter, limit int) ([]model.AccessEntry, error) {
	q := url.Values{"limit": {strconv.Itoa(limit)}}
	for name, value := range map[string]string{"actor": f.Actor, "token": f.Token, "address": f.Address} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.MinStatus > 0 {
		q.Set("minStatus", strconv.Itoa(f.MinStatus))
	}
	page, err := get[struct{ Items []model.AccessEntry }](ctx, c, where(client.NewListAccessRequest(nil), q))
	return page.Items, err
}

// EraseBody erases what events have a commitment to, for good.
func (c *Client) EraseBody(ctx context.Context, id string) (model.ErasedBody, error) {
	return get[model.ErasedBody](ctx, c, client.NewEraseBodyRequest(id))
}
