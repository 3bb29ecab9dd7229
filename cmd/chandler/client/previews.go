package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// NewPreview asks what changes would lead to, in all namespaces.
func (c *Client) NewPreview(ctx context.Context, in model.PreviewRequest, how model.Validate) (model.Preview, error) {
	query := url.Values{}
	if how != "" {
		query.Set("validate", string(how))
	}
	p, err := ask[model.Preview](ctx, c, http.MethodPost, "/previews", query, in)
	if err != nil {
		return p, err
	}
	return c.rest(ctx, p)
}

// Preview reads all of a preview.
func (c *Client) Preview(ctx context.Context, id string) (model.Preview, error) {
	p, err := ask[model.Preview](ctx, c, http.MethodGet, join("previews", id), nil, nil)
	if err != nil {
		return p, err
	}
	return c.rest(ctx, p)
}

// rest follows the pages of a preview to its end.
func (c *Client) rest(ctx context.Context, p model.Preview) (model.Preview, error) {
	for p.Next != "" {
		next, err := ask[model.Preview](ctx, c, http.MethodGet, join("previews", p.ID), url.Values{"cursor": {p.Next}},
			nil)
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
	done, err := ask[model.PreviewApplied](ctx, c, http.MethodPost, join("previews", id, "apply"), nil, nil)
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
		p, err := ask[model.Shadow](ctx, c, http.MethodPost, "/shadow", nil, in)
		if err != nil {
			return err
		}
		if err := page(p); err != nil || p.Next == "" {
			return err
		}
		in.Cursor = p.Next
	}
}
