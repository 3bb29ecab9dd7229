package admin

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// AuthCommand answers who somebody is and who may do what. Roles and bindings are objects: get, apply and delete.
func AuthCommand(a *command.Env) *cobra.Command {
	c := &cobra.Command{Use: "auth", Short: "Ask who you are and who may do what; the token for a bad day"}
	c.AddCommand(whoAmICommand(a), canICommand(a), whoCanCommand(a), breakGlassCommand(a))
	return c
}

func whoAmICommand(a *command.Env) *cobra.Command {
	var o printer.Output
	c := &cobra.Command{
		Use: "whoami", Short: "Show who you are for Chandler, and your roles", Args: cobra.NoArgs,
		Long: "Shows the actor that events record for you, your groups, and each role that you have with the scope " +
			"in which it holds.",
		Example: "  chandler auth whoami",
		RunE: a.Run(func(ctx context.Context, c *client.Client, _ []string) error {
			me, err := c.WhoAmI(ctx)
			if err == nil {
				err = command.TellBreakGlass(a, me.BreakGlass)
			}
			if err != nil {
				return err
			}
			if !o.Machine() {
				lead := "actor: " + me.Actor + "\ntenant: " + me.Tenant
				if len(me.Groups) > 0 {
					lead += "\ngroups: " + strings.Join(me.Groups, ", ")
				}
				if me.OnBehalfOf != "" {
					lead += "\non behalf of: " + me.OnBehalfOf
				}
				if err := a.Say("%s", lead); err != nil {
					return err
				}
			}
			return printer.List(a, &o, printer.Table{Plural: "roles", Columns: printer.Columns("Role", "By", "Where")},
				me.Permissions, nil, func(p model.Permission) printer.Item {
					by := "token"
					if p.Binding != "" {
						by = "rolebinding/" + p.Binding
					}
					return printer.Item{
						Name: "role/" + p.Role, Value: p, Cells: []any{p.Role, by, kinds.ScopeText(p.Scope)},
					}
				})
		}),
	}
	o.Flags(c)
	return c
}

// places adds the flags that say where.
func places(c *cobra.Command, q *client.AccessQuestion) {
	c.Flags().StringVar(&q.Cluster, "cluster", "", "in this cluster; without a place, in the fleet as a whole")
	c.Flags().StringVarP(&q.Namespace, "namespace", "n", "", "in this namespace of the cluster")
	c.Flags().StringVar(&q.Catalog, "catalog", "", "of this catalog, or of subscriptions that name it")
	c.Flags().BoolVar(&q.Anywhere, "anywhere", false, "in any place at all")
}

// checkPlace refuses a cluster that is not there: what holds in every place holds in a misspelt one, too. Who may not
// see clusters is not told which there are.
func checkPlace(ctx context.Context, c *client.Client, q client.AccessQuestion) error {
	if q.Cluster == "" {
		return nil
	}
	sees, err := c.CanI(ctx, client.AccessQuestion{Verb: "get", Resource: "clusters", Cluster: q.Cluster})
	if err != nil || !sees.Allowed {
		return err
	}
	return command.CheckCluster(ctx, c, q.Cluster)
}

func canICommand(a *command.Env) *cobra.Command {
	var q client.AccessQuestion
	c := &cobra.Command{
		Use: "can-i VERB RESOURCE", Short: "Check whether you may do something",
		Args: command.RequireArgs(2), //nolint:mnd // verb and resource
		Long: `Prints yes and what allows it, or no and what is missing; then the exit status is that of a refusal, so that scripts
can ask.

Verbs and resources are those of roles: chandler get role admin -o yaml, and docs/access.md.`,
		Example: `  chandler auth can-i approve installplans --cluster east-1 -n ports
  chandler auth can-i create subscriptions --anywhere`,
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			q.Verb, q.Resource = args[0], args[1]
			answer, err := c.CanI(ctx, q)
			if err != nil {
				return err
			}
			if answer.Allowed {
				if err := checkPlace(ctx, c, q); err != nil {
					return err
				}
				return a.Say("yes: %s", strings.Join(answer.By, ", "))
			}
			if err := a.Say("no"); err != nil {
				return err
			}
			return command.Refused(errors.New(answer.Reason))
		}),
	}
	places(c, &q)
	return c
}

func whoCanCommand(a *command.Env) *cobra.Command {
	var q client.AccessQuestion
	var o printer.Output
	c := &cobra.Command{
		Use: "who-can VERB RESOURCE", Short: "Show who may do something",
		Args: command.RequireArgs(2), //nolint:mnd // verb and resource
		Long: `Shows the subjects of role bindings that allow it in that place, and the tokens that give a role by themselves.
Members of groups are known to who authenticates people, and not listed.`,
		Example: "  chandler auth who-can approve installplans --cluster east-1 -n ports",
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			q.Verb, q.Resource = args[0], args[1]
			list, err := c.WhoCan(ctx, q)
			if err == nil {
				err = checkPlace(ctx, c, q)
			}
			return printer.List(a, &o, printer.Table{
				Plural: "subjects", Columns: printer.Columns("Kind", "Name", "Role", "By", "Where"),
			}, list, err, func(h model.Holder) printer.Item {
				by := "rolebinding/" + h.Binding
				if h.Binding == "" {
					by = "token/" + h.Token
				}
				if h.BreakGlass != "" {
					by = "break-glass (" + h.BreakGlass + ")"
				}
				return printer.Item{Name: by, Value: h, Cells: []any{
					h.Subject.Kind, h.Subject.Name, h.Role, by, kinds.ScopeText(h.Scope),
				}}
			})
		}),
	}
	places(c, &q)
	o.Flags(c)
	return c
}
