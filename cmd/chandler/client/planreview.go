package client

import (
	"context"
	"fmt"
	"net/url"

	"github.com/chandler-fleet/chandler/libs/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// PlanObjects are the objects of an install plan as they will be applied, of one kind or, with "", all.
func (c *Client) PlanObjects(ctx context.Context, id, kind string) ([]model.PlanObject, error) {
	req := client.NewListInstallplanObjectsRequest(id, &client.ListInstallplanObjectsParams{Kind: kind})
	return all[model.PlanObject](ctx, c, req)
}

// PlanRights is everything that the operators of an install plan will be allowed to do.
func (c *Client) PlanRights(ctx context.Context, id string) (model.PlanRights, error) {
	return get[model.PlanRights](ctx, c, client.NewGetInstallplanRightsRequest(id, nil))
}

// PlanDiff is what an install plan changes of what is installed.
func (c *Client) PlanDiff(ctx context.Context, id string) (model.PlanDiff, error) {
	var all model.PlanDiff
	query := url.Values{}
	for range maxPages {
		page, err := get[model.PlanDiff](ctx, c, where(client.NewGetInstallplanDiffRequest(id, nil), query))
		if err != nil {
			return all, err
		}
		page.Items = append(all.Items, page.Items...)
		if all = page; page.Next == "" {
			return all, nil
		}
		query.Set("cursor", page.Next)
	}
	return all, fmt.Errorf("the difference of install plan %s did not end after %d pages", id, maxPages)
}

// PlanDiffText is the same as a unified diff.
func (c *Client) PlanDiffText(ctx context.Context, id string) (string, error) {
	r := client.NewGetInstallplanDiffRequest(id, nil)
	r.Text()
	return get[string](ctx, c, r)
}
