// Package objects holds the commands that work on objects of every kind, as kubectl does: chandler get, describe,
// apply, delete, wait and events.
package objects

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
)

// ListCommand is the command list below the command of a kind.
func ListCommand(a *command.Env, kind string) *cobra.Command {
	var o printer.Output
	c := &cobra.Command{
		Use: "list", Short: "Show all " + kind, Args: cobra.NoArgs,
		Long:    "Lists all " + kind + ". chandler get " + kind + " does the same, and can filter.",
		Example: "  chandler " + strings.TrimSuffix(kind, "s") + " list -o wide",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return get(cmd.Context(), a, getOptions{Output: o}, []string{kind})
		},
	}
	o.Flags(c)
	return c
}

// getOptions are the flags of chandler get.
type getOptions struct {
	command.Scope
	printer.Output

	selection     client.Selection
	allNamespaces bool
	allClusters   bool
	watching      watchOptions
	places        []command.Scope // of the lists of each target
}

// GetCommand is chandler get.
func GetCommand(a *command.Env) *cobra.Command {
	var o getOptions
	c := &cobra.Command{
		Use: "get (KIND[,KIND...] [NAME...] | KIND/NAME...)",
		Short: "Show clusters, catalogs, packages, subscriptions, operatorgroups, installplans, operators, leftovers, " +
			"fleetsubscriptions, approvalpolicies, roles, rolebindings or webhooks",
		Long: `Lists objects of one or several kinds: all of the fleet, or those of a cluster, a namespace, or with the given
names. Where neither flags nor the context (chandler config) name a cluster or a namespace, all are listed; -A lists
all namespaces, --all-clusters the fleet.

Kinds and their short names: clusters, catalogs (catsrc), packages (packagemanifests), operatorgroups (og),
subscriptions (sub), installplans (ip), operators (csv), fleetsubscriptions (fsub: operators for many clusters),
approvalpolicies (policies), leftovers (objects that
uninstalled operators left in their clusters), operatorhubs (the one that enables default catalogs), roles and
rolebindings (who may do what, and where), webhooks (wh: who is sent events). "all" is sub, csv, ip and og.

The output of -o yaml and -o json for subscriptions, operatorgroups, catalogs, installplans, fleetsubscriptions,
approvalpolicies, roles, rolebindings, operatorhubs and webhooks can be applied again with chandler apply -f. Paths of
jsonpath, custom-columns, go-template and --sort-by are those of -o json.

--sort-by with a path sorts here, after all was read. With created, changed, or a word and - in front (-name) the server
sorts: clusters and catalogs by name, state, created and changed; subscriptions and operators by name, package, created
and changed; operators also by phase; installplans by name, cluster, phase, created and changed. What a field selector
knows is named by the refusal of one that it does not.

On a terminal that is too narrow a table leaves out its least important columns; -o wide shows all there are.

--watch goes on until Ctrl-C, and writes each object that changes. An object that is gone is told on standard error.`,
		Example: `  chandler get subscriptions
  chandler get csv --cluster east-1 -n ports -o wide
  chandler get csv --cluster east-1 -A
  chandler get sub,ip --cluster east-1 --watch
  chandler get clusters --state Unreachable
  chandler get operators --field-selector status.phase!=Succeeded --cluster-selector site=north --sort-by -changed
  chandler get installplans --phase RequiresApproval --sort-by .proposedAt
  chandler get operators --cluster east-1 --serves harbor
  chandler get operators -o custom-columns=CLUSTER:.cluster,CSV:.name,PHASE:.phase
  chandler get clusters -o jsonpath='{.items[*].name}'
  chandler get installplan/east-1/ports/install-7x2kq sub/east-1/ports/tidegauge -o yaml`,
		Args: command.RequireArgs(command.Unlimited),
		RunE: func(cmd *cobra.Command, args []string) error { return get(cmd.Context(), a, o, args) },
	}
	o.Scope.Flags(c)
	o.Output.Flags(c)
	o.LabelFlags(c)
	o.watching.flags(c)
	f, sel := c.Flags(), &o.selection
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "objects of all namespaces, as without --namespace")
	f.BoolVar(&o.allClusters, "all-clusters", false, "objects of all clusters and namespaces, whatever the context says")
	f.StringVar(&sel.Package, kinds.FlagPackage, "", "only subscriptions or operators of this package")
	f.StringVar(&sel.Catalog, kinds.FlagCatalog, "", "only subscriptions of this catalog")
	f.StringVar(&sel.Phase, kinds.FlagPhase, "", "only subscriptions, install plans or operators in this phase")
	f.StringVar(&sel.State, kinds.FlagState, "", "only clusters, catalogs, subscriptions or operators in this state")
	f.StringVarP(&sel.Label, kinds.FlagLabel, "l", "", "only objects with these labels, such as tier=1,site in (a,b)")
	f.StringVar(&sel.Blocked, kinds.FlagBlocked, "", "only blocked install plans; with =false only those that are not")
	f.Lookup(kinds.FlagBlocked).NoOptDefVal = "true"
	f.StringVar(&sel.FieldSelector, kinds.FlagFields, "", "only objects with these fields, such as status.phase=Failed,cluster!=a")
	f.StringVar(&sel.ClusterSelector, kinds.FlagClusters, "", "only objects in clusters with these labels, such as site=north")
	f.StringVar(&sel.Serves, kinds.FlagServes, "", "only operators that serve this namespace")
	return c
}

func get(ctx context.Context, a *command.Env, o getOptions, args []string) error {
	// A name that lacks its namespace is not what is wrong where all namespaces are asked for.
	if (o.allNamespaces || o.allClusters) && (len(args) > 1 || strings.Contains(args[0], "/")) {
		return command.Usagef("a name cannot be combined with --all-namespaces or --all-clusters: give --namespace, or " +
			"no name")
	}
	targets, err := kinds.ParseTargets(a, o.Scope, args)
	if err != nil {
		return err
	}
	if err := o.check(targets); err != nil {
		return err
	}
	if err := o.sorting(targets); err != nil {
		return err
	}
	if o.places, err = o.within(a, targets); err != nil {
		return err
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	if o.watching.on() {
		return watch(ctx, a, c, o, targets)
	}
	lists, err := o.read(ctx, c, targets)
	if err != nil {
		return err
	}
	return o.ShowAll(a, lists, single(targets))
}

// single says that one object was asked for by its name.
func single(targets []kinds.Target) bool { return len(targets) == 1 && len(targets[0].Refs) == 1 }

// check refuses flags that do not go together, or with what is asked for.
func (o *getOptions) check(targets []kinds.Target) error {
	switch {
	case (o.allNamespaces || o.allClusters) && o.Namespace != "":
		return command.Usagef("either --namespace, or --all-namespaces or --all-clusters, not both")
	case o.allClusters && o.Cluster != "":
		return command.Usagef("either --cluster or --all-clusters, not both")
	}
	for _, t := range targets {
		switch {
		case len(t.Refs) == 0:
			if err := t.Kind.CheckSelection(o.chosen(o.Scope)); err != nil {
				return err
			}
		case o.selection != (client.Selection{}):
			return command.Usagef("either names or flags that select %s, not both", t.Kind.Names[1])
		}
	}
	return nil
}

// sorting hands the order to the server where --sort-by names one of its own.
func (o *getOptions) sorting(targets []kinds.Target) error {
	handed := 0
	for _, t := range targets {
		word, err := t.Kind.ServerSort(o.SortBy)
		switch {
		case err != nil:
			return err
		case word != "" && len(t.Refs) > 0:
			return command.Usagef("--sort-by %s: things that are named are sorted by a path such as .name", o.SortBy)
		case word != "":
			o.selection.Sort = word
			handed++
		}
	}
	if handed > 0 {
		o.SortBy = ""
	}
	return nil
}

// chosen is what lists are narrowed by.
func (o *getOptions) chosen(where command.Scope) client.Selection {
	s := o.selection
	s.Cluster, s.Namespace = where.Cluster, where.Namespace
	return s
}

// within says where each list is read: where flags say, else where the context does.
func (o *getOptions) within(a *command.Env, targets []kinds.Target) ([]command.Scope, error) {
	out := make([]command.Scope, len(targets))
	for i, t := range targets {
		out[i] = o.Scope
		if o.allClusters {
			continue
		}
		var err error
		if out[i], err = t.Kind.Within(a, o.Scope); err != nil {
			return nil, err
		}
		if o.allNamespaces {
			out[i].Namespace = ""
		}
	}
	return out, nil
}

// read reads what is asked for.
func (o *getOptions) read(ctx context.Context, c *client.Client, targets []kinds.Target) ([]printer.Listed, error) {
	lists := make([]printer.Listed, len(targets))
	for i, t := range targets {
		items, err := o.items(ctx, c, t, o.places[i])
		if err != nil {
			return nil, err
		}
		lists[i] = printer.Listed{Table: t.Kind.Table(o.places[i]), Items: items}
	}
	return lists, nil
}

func (o *getOptions) items(ctx context.Context, c *client.Client, t kinds.Target, where command.Scope) (
	[]printer.Item, error,
) {
	var items []printer.Item
	for _, ref := range t.Refs {
		it, err := t.Kind.Get(ctx, c, ref)
		if err != nil {
			return nil, t.Kind.Named(ctx, c, ref, err)
		}
		items = append(items, it)
	}
	if len(t.Refs) > 0 {
		return items, nil
	}
	items, err := t.Kind.List(ctx, c, o.chosen(where))
	if err == nil && where.Cluster != "" && (len(items) == 0 || t.Kind.Everywhere()) {
		err = command.CheckCluster(ctx, c, where.Cluster)
	}
	if err == nil && o.Document() {
		items, err = t.Kind.Complete(ctx, c, items)
	}
	return items, err
}
