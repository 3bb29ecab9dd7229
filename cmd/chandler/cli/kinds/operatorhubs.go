package kinds

import (
	"context"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// operatorHubs is the one OperatorHub (R-CFG-10), so that it can be written out and applied again.
func operatorHubs() Kind {
	const name = "cluster" // as OpenShift calls its one
	show := func(h model.OperatorHub) printer.Item {
		off := 0
		for _, s := range h.Sources {
			if s.Disabled {
				off++
			}
		}
		return printer.Item{
			Name: "operatorhub/" + name, Value: h, Cells: []any{name, h.DisableAllDefaultSources, off},
			Describe: func(p *printer.Page) {
				p.Line("Name", name)
				if h.DisableAllDefaultSources {
					p.Line("Default catalogs", "disabled, except those that are named")
				}
				for _, s := range h.Status {
					p.Line("Source", s.Name+" "+s.Status+" "+s.Message)
				}
			},
		}
	}
	get := func(ctx context.Context, c *client.Client) (printer.Item, error) {
		h, err := c.OperatorHub(ctx)
		return printer.OneItem(h, err, show)
	}
	return Kind{
		Document: olm.KindOperatorHub,
		Names:    []string{"operatorhub", "operatorhubs"},
		columns:  []printer.Column{{Name: "Name"}, {Name: "All Disabled"}, {Name: "Disabled"}},
		List: func(ctx context.Context, c *client.Client, _ client.Selection) ([]printer.Item, error) {
			it, err := get(ctx, c)
			return []printer.Item{it}, err
		},
		Get: func(ctx context.Context, c *client.Client, r client.Ref) (printer.Item, error) {
			if r.Name != name {
				return printer.Item{}, notFound("OperatorHub", r)
			}
			return get(ctx, c)
		},
	}
}
