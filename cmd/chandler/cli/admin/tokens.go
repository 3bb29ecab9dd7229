package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TokenCommand makes and revokes the tokens that settings name. A secret is shown once, on standard output.
func TokenCommand(a *command.Env) *cobra.Command {
	c := &cobra.Command{Use: "token", Short: "Create, list and revoke tokens"}
	c.AddCommand(tokenAddCommand(a), tokenListCommand(a), tokenRevokeCommand(a))
	return c
}

func tokenAddCommand(a *command.Env) *cobra.Command {
	var role, actor string
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Create a token; it is shown once",
		Long: `Creates a token for a person or a program. The name is only for display and is not recorded in events: they hold the
actor id. Each token gets a new actor, unless --actor names the actor of another token of the same person.`,
		Example: `  chandler token add "Ingrid, laptop" --role admin
  chandler token add "Ingrid, phone" --role viewer --actor person-4tz2kq7mw3xa`,
		Args: command.RequireArgs(1),
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			t, err := c.AddToken(ctx, model.AddToken{Name: args[0], Role: model.Role(role), Actor: actor})
			if err != nil {
				return err
			}
			return a.Say("id: %s\nactor: %s\ntoken: %s", t.ID, t.Actor, t.Secret)
		}),
	}
	c.Flags().StringVar(&role, "role", string(model.RoleViewer), "admin: everything; viewer: reads; none: what role bindings give to the actor")
	c.Flags().StringVar(&actor, "actor", "", "actor of another token of the same person")
	return c
}

func tokenListCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	c := &cobra.Command{
		Use: "list", Short: "List tokens, revoked ones included", Args: cobra.NoArgs,
		Long:    "Lists tokens by id, with the actor that events record for them. Secrets are never shown.",
		Example: "  chandler token list",
		RunE: a.Run(func(ctx context.Context, c *client.Client, _ []string) error {
			list, err := c.Tokens(ctx)
			return printer.List(a, &o, printer.Table{
				Plural: "tokens", Columns: printer.Columns("ID", "Name", "Role", "Actor", "State", "Age"),
			}, list, err, func(t model.Token) printer.Item {
				state := "Active"
				if t.Ended(a.Now()) {
					state = "Ended"
				}
				return printer.Item{Name: "token/" + t.ID, Value: t, Cells: []any{
					t.ID, printer.Or(t.Name, printer.None), string(t.Role), t.Actor, state,
					printer.Age(a.Now(), t.CreatedAt),
				}}
			})
		}),
	}
	o.Flags(c)
	return c
}

func tokenRevokeCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "Revoke a token", Args: command.RequireArgs(1),
		Long: "Revokes a token for good. The last token of an administrator cannot be revoked. chandler token " +
			"list shows the ids.",
		Example: "  chandler token revoke 0b0e2f5c-5d1c-4f6e-9a55-8f0c9d6f1e21",
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			if err := c.RevokeToken(ctx, args[0]); err != nil {
				return err
			}
			return a.Say("token/%s revoked", args[0])
		}),
	}
}
