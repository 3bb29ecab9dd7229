// Package objects holds the commands that work on objects of every kind, as kubectl does: chandler get, describe,
// apply, delete and events.
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
			return get(cmd.Context(), a, command.Scope{}, client.Selection{}, o, []string{kind})
		},
	}
	o.Flags(c)
	return c
}

// GetCommand is chandler get.
func GetCommand(a *command.Env) *cobra.Command {
	var s command.Scope
	var o printer.Output
	var sel client.Selection
	var allNamespaces bool
	c := &cobra.Command{
		Use: "get KIND [NAME...]",
		Short: "Show clusters, catalogs, packages, subscriptions, operatorgroups, installplans, operators, leftovers " +
			"approvalpolicies, roles or rolebindings",
		Long: `Lists objects of one kind: all of the fleet, or those of a cluster, a namespace, or with the given names. Without
--namespace it lists all namespaces; -A does the same, as with kubectl.

Kinds and their short names: clusters, catalogs (catsrc), packages (packagemanifests), operatorgroups (og),
subscriptions (sub), installplans (ip), operators (csv), approvalpolicies (policies), leftovers (objects that
uninstalled operators left in their clusters), operatorhubs (the one that enables default catalogs), roles and
rolebindings (who may do what, and where).

The output of -o yaml and -o json for subscriptions, operatorgroups, catalogs, installplans, approvalpolicies, roles,
rolebindings and operatorhubs can be applied again with chandler apply -f.`,
		Example: `  chandler get subscriptions
  chandler get csv --cluster east-1 -n ports -o wide
  chandler get csv --cluster east-1 -A
  chandler get clusters --state Unreachable
  chandler get installplans --phase RequiresApproval --cluster east-1
  chandler get operators --cluster east-1 --serves harbor
  chandler get installplan east-1/ports/install-7x2kq -o yaml`,
		Args: command.RequireArgs(command.Unlimited),
		RunE: func(cmd *cobra.Command, args []string) error {
			if allNamespaces {
				if err := everywhere(&s, args); err != nil {
					return err
				}
			}
			return get(cmd.Context(), a, s, sel, o, args)
		},
	}
	s.Flags(c)
	o.Flags(c)
	f := c.Flags()
	f.BoolVarP(&allNamespaces, "all-namespaces", "A", false, "objects of all namespaces, as without --namespace")
	f.StringVar(&sel.Package, kinds.FlagPackage, "", "only subscriptions or operators of this package")
	f.StringVar(&sel.Catalog, kinds.FlagCatalog, "", "only subscriptions of this catalog")
	f.StringVar(&sel.Phase, kinds.FlagPhase, "", "only subscriptions, install plans or operators in this phase")
	f.StringVar(&sel.State, kinds.FlagState, "", "only clusters, catalogs or subscriptions in this state")
	f.StringVarP(&sel.Label, kinds.FlagLabel, "l", "", "only objects with this label: KEY=VALUE, or KEY")
	f.StringVar(&sel.Blocked, kinds.FlagBlocked, "", "only blocked install plans; with =false only those that are not")
	f.Lookup(kinds.FlagBlocked).NoOptDefVal = "true"
	f.StringVar(&sel.Serves, kinds.FlagServes, "", "only operators that serve this namespace")
	return c
}

// everywhere refuses what cannot be said together with --all-namespaces: a namespace, and names (args are a kind with
// names).
func everywhere(s *command.Scope, args []string) error {
	if s.Namespace != "" {
		return command.Usagef("either --namespace or --all-namespaces, not both")
	}
	if len(args) > 1 || strings.Contains(args[0], "/") {
		return command.Usagef("a name cannot be combined with --all-namespaces: give --namespace, or no name")
	}
	return nil
}

func get(ctx context.Context, a *command.Env, s command.Scope, sel client.Selection, o printer.Output,
	args []string,
) error {
	t, err := kinds.ParseTarget(a, s, args)
	if err != nil {
		return err
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	if len(t.Refs) == 0 {
		sel.Cluster, sel.Namespace = s.Cluster, s.Namespace
		if err := t.Kind.CheckSelection(sel); err != nil {
			return err
		}
		items, err := t.Kind.List(ctx, c, sel)
		if err == nil && len(items) == 0 && s.Cluster != "" {
			err = command.CheckCluster(ctx, c, s.Cluster)
		}
		if err == nil && o.Document() {
			items, err = t.Kind.Complete(ctx, c, items)
		}
		if err != nil {
			return err
		}
		return o.Show(a.Out, a.Err, t.Kind.Table(), items, false)
	}
	if sel != (client.Selection{}) {
		return command.Usagef("either names or flags that select %s, not both", t.Kind.Names[1])
	}
	var items []printer.Item
	for _, ref := range t.Refs {
		it, err := t.Kind.Get(ctx, c, ref)
		if err != nil {
			return command.OrNoCluster(ctx, c, ref.Cluster, err)
		}
		items = append(items, it)
	}
	return o.Show(a.Out, a.Err, t.Kind.Table(), items, len(items) == 1)
}
