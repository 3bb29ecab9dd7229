package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
)

func (a *app) getCommand() *cobra.Command {
	var s scope
	var o output
	var sel client.Selection
	c := &cobra.Command{
		Use:   "get KIND [NAME...]",
		Short: "Show clusters, catalogs, subscriptions, operatorgroups, installplans or operators",
		Long: `Shows things of one kind: all of the fleet, or those of a cluster, a namespace, or a name.

Kinds and their short names: clusters, catalogs (catsrc), operatorgroups (og), subscriptions (sub),
installplans (ip), operators (csv).`,
		Example: `  chandler get subscriptions
  chandler get csv --cluster east-1 -n ports -o wide
  chandler get installplan east-1/ports/install-7x2kq -o yaml`,
		Args: needs(many),
		RunE: func(cmd *cobra.Command, args []string) error { return a.get(cmd.Context(), s, sel, o, args) },
	}
	s.flags(c)
	o.flags(c)
	c.Flags().StringVar(&sel.Package, "package", "", "only of this package")
	c.Flags().StringVar(&sel.Catalog, "catalog", "", "only of this catalog")
	c.Flags().StringVar(&sel.Phase, "phase", "", "only in this phase")
	c.Flags().StringVar(&sel.State, "state", "", "only in this state")
	return c
}

func (a *app) get(ctx context.Context, s scope, sel client.Selection, o output, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	t, err := a.target(s, args)
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	if len(t.refs) == 0 {
		sel.Cluster, sel.Namespace = s.cluster, s.namespace
		items, err := t.resource.list(ctx, c, sel)
		if err != nil {
			return err
		}
		return a.show(o, t.resource, items, false)
	}
	var items []item
	for _, ref := range t.refs {
		it, err := t.resource.get(ctx, c, ref)
		if err != nil {
			return err
		}
		items = append(items, it)
	}
	return a.show(o, t.resource, items, len(items) == 1)
}

// show writes items, and for an empty table says so where a person reads it but no program.
func (a *app) show(o output, r resource, items []item, single bool) error {
	if len(items) == 0 && (o.format == formatTable || o.format == formatWide) {
		_, err := fmt.Fprintf(a.Err, "No %s found.\n", r.names[1])
		return err
	}
	return o.write(a.Out, r.columns, items, single)
}
