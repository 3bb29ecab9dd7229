package kinds

import (
	"context"
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// ObjectText is an object as messages name it.
func ObjectText(o model.Object) string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// LeftText says why an object stays.
func LeftText(l model.Leftover) string {
	switch l.Reason {
	case protocol.LeftNotAsked:
		return "not requested (--delete-crds, --crd)"
	case protocol.LeftOtherOwners:
		return "also installed by " + strings.Join(l.Owners, ", ")
	case protocol.LeftNotOurs:
		return "not written by Chandler"
	}
	return l.Reason
}

// leftovers are what uninstalled operators left, each under the name that the operator had.
func leftovers(a *command.Env) Kind {
	show := func(l model.Leftovers) printer.Item {
		left := make([]string, len(l.Objects))
		for i, o := range l.Objects {
			left[i] = ObjectText(o.Object) + " (" + o.Reason + ")"
		}
		key := l.Cluster + "/" + l.Namespace + "/" + l.Name
		return printer.Item{
			Name: "leftover/" + key, Value: l, Subject: key, Stream: events.KindCSV,
			Describe: func(p *printer.Page) { describeLeftovers(p, l) }, Cells: []any{
				l.Cluster, l.Namespace, l.Name, l.Package, printer.Age(a.Now(), l.RemovedAt), len(l.Objects),
				printer.Or(strings.Join(left, ", "), printer.None),
			},
		}
	}
	return Kind{
		Document: "Leftovers",
		Names:    []string{"leftover", "leftovers"},
		scoped:   true,
		filters:  []string{FlagCluster, FlagNamespace, FlagPackage},
		columns: []printer.Column{
			{Name: "Cluster"},
			{Name: "Namespace"},
			{Name: "Name"},
			{Name: "Package", Cut: 9},
			{Name: "Removed", Cut: 8},
			{Name: "Objects"},
			{Name: "Left", Wide: true},
		},
		List: func(ctx context.Context, c *client.Client, s client.Selection) ([]printer.Item, error) {
			list, err := c.Leftovers(ctx, s)
			return printer.Items(list, err, show)
		},
		Get: func(ctx context.Context, c *client.Client, r client.Ref) (printer.Item, error) {
			list, err := c.Leftovers(ctx, client.Selection{Cluster: r.Cluster, Namespace: r.Namespace})
			for _, l := range list {
				if l.Name == r.Name {
					return show(l), nil
				}
			}
			if err == nil {
				err = notFound("uninstalled operator", r)
			}
			return printer.Item{}, err
		},
	}
}

func describeLeftovers(p *printer.Page, l model.Leftovers) {
	p.Scope(l.Cluster, l.Namespace, l.Name)
	p.Line("Package", l.Package)
	p.Line("Removal", l.Removal)
	p.When("Removed", l.RemovedAt)
	if len(l.Objects) == 0 {
		return
	}
	p.Section("Left")
	for _, o := range l.Objects {
		p.Row(ObjectText(o.Object), LeftText(o))
	}
	if l.More > 0 {
		p.Row("and "+printer.Plural(l.More, "other object"),
			"not listed, because the cluster's report is too large for a message")
	}
}
