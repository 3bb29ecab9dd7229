package cli

import (
	"context"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// operatorHubs is the one OperatorHub (R-CFG-10), so that it can be written out and applied again.
func (a *app) operatorHubs() resource {
	const name = "cluster" // as OpenShift calls its one
	show := func(h model.OperatorHub) item {
		off := 0
		for _, s := range h.Sources {
			if s.Disabled {
				off++
			}
		}
		return item{name: "operatorhub/" + name, value: h, cells: []any{name, h.DisableAllDefaultSources, off}, describe: func(p *page) {
			p.line("Name", name)
			if h.DisableAllDefaultSources {
				p.line("Default catalogs", "switched off, but for those that are named")
			}
			for _, s := range h.Status {
				p.line("Source", s.Name+" "+s.Status+" "+s.Message)
			}
		}}
	}
	get := func(ctx context.Context, c *client.Client) (item, error) {
		h, err := c.OperatorHub(ctx)
		return one(h, err, show)
	}
	return resource{
		kind:    olm.KindOperatorHub,
		names:   []string{"operatorhub", "operatorhubs"},
		columns: []column{{name: "Name"}, {name: "All Disabled"}, {name: "Disabled"}},
		list: func(ctx context.Context, c *client.Client, _ client.Selection) ([]item, error) {
			it, err := get(ctx, c)
			return []item{it}, err
		},
		get: func(ctx context.Context, c *client.Client, r client.Ref) (item, error) {
			if r.Name != name {
				return item{}, notFound("OperatorHub", r)
			}
			return get(ctx, c)
		},
	}
}
