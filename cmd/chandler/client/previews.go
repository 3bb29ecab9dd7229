package client

import (
	"context"
	"net/url"
	"strings"

	"github.com/chandler-fleet/chandler/libs/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// NewPreview asks what changes would lead to, in all namespaces.
func (c *Client) NewPreview(ctx context.Context, in model.PreviewRequest, how model.Validate) (model.Preview, error) {
	query := url.Values{}
	if how != "" {
		query.Set("validate", string(how))
	}
	req := client.NewCreatePreviewRequest(nil, client.PreviewRequest{})
	p, err := get[model.Preview](ctx, c, with(where(req, query), in))
	if err != nil {
		return p, err
	}
	return c.rest(ctx, p)
}

// Preview reads all of a preview.
func (c *Client) Preview(ctx context.Context, id string) (model.Preview, error) {
	p, err := get[model.Preview](ctx, c, client.NewGetPreviewRequest(id, nil))
	if err != nil {
		return p, err
	}
	return c.rest(ctx, p)
}

// rest follows the pages of a preview to its end.
func (c *Client) rest(ctx context.Context, p model.Preview) (model.Preview, error) {
	for p.Next != "" {
		req := client.NewGetPreviewRequest(p.ID, &client.GetPreviewParams{Cursor: p.Next})
		next, err := get[model.Preview](ctx, c, req)
		if err != nil {
			return p, err
		}
		p.Items = append(p.Items, next.Items...)
		p.Totals, p.Next = next.Totals, next.Next
	}
	return p, nil
}

// ApplyPreview carries out what was previewed, and waits until lists show it.
func (c *Client) ApplyPreview(ctx context.Context, id string) (model.PreviewApplied, error) {
	done, err := get[model.PreviewApplied](ctx, c, client.NewApplyPreviewRequest(id))
	for _, w := range done.Writes {
		kind, _, _ := strings.Cut(w.Stream, ":")
		if list := listOfKind[kind]; list != "" {
			c.waitForWrite(ctx, list, w.Position)
		}
	}
	return done, err
}

// listOfKind are the lists that show streams of a kind.
var listOfKind = map[string]string{
	"subscription": "/subscriptions", "operatorgroup": "/operatorgroups", "catalog": "/catalogs",
	"policy": "/approvalpolicies",
}

// Shadow makes recorded decisions again, all that were asked for, and hands on each page.
func (c *Client) Shadow(ctx context.Context, in model.ShadowRequest, page func(model.Shadow) error) error {
	for {
		p, err := get[model.Shadow](ctx, c, with(client.NewShadowRequest(client.ShadowRequest{}), in))
		if err != nil {
			return err
		}
		if err := page(p); err != nil || p.Next == "" {
			return err
		}
		in.Cursor = p.Next
	}
}
