package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// IdentityCommand shows who has signed in at identity providers and which machines have shown certificates, and says
// whose each identity is.
func IdentityCommand(a *command.Env) *cobra.Command {
	c := &cobra.Command{Use: "identity", Short: "List, link and disable people and machines that sign in"}
	c.AddCommand(identityListCommand(a), identityLinkCommand(a),
		identityDisableCommand(a, "disable", "Let nobody in by an identity", true),
		identityDisableCommand(a, "enable", "Let somebody in by an identity again", false))
	return c
}

func identityListCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	c := &cobra.Command{
		Use: "list", Short: "List who has signed in, and machines that have shown certificates", Args: cobra.NoArgs,
		Long: `Lists identities by name, with the actor that events record for each: people of identity providers (User), and
machines that show client certificates (ServiceAccount), whose provider is the authority of certificates. Who has not
signed in yet is not listed.`,
		Example: "  chandler identity list",
		RunE: a.Run(func(ctx context.Context, c *client.Client, _ []string) error {
			list, err := c.Identities(ctx)
			return printer.List(a, &o, printer.Table{
				Plural:  "identities",
				Columns: printer.Columns("ID", "Kind", "Provider", "Name", "Actor", "State", "Seen"),
			}, list, err, func(i model.Identity) printer.Item {
				state := "Active"
				if i.Disabled {
					state = "Disabled"
				}
				return printer.Item{Name: "identity/" + i.ID, Value: i, Cells: []any{
					i.ID, i.Kind, i.Provider, printer.Or(i.Name, printer.None), i.Actor, state,
					printer.Age(a.Now(), i.SeenAt),
				}}
			})
		}),
	}
	o.Flags(c)
	return c
}

func identityLinkCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "link ID ACTOR", Short: "Say that an identity is a person or machine that is known already",
		Args: command.RequireArgs(2), //nolint:mnd // identity and actor
		Long: `Has approvals count an identity and the tokens of the same person, or machine, as one. From then on the identity
acts as that actor: role bindings of the actor hold for both. What the identity has done before stays that of its
former actor.`,
		Example: "  chandler identity link identity-4tz2kq7mw3xa person-9bw1cd5ef2gh",
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			i, err := c.ConfigureIdentity(ctx, args[0], model.ConfigureIdentity{Actor: args[1]})
			if err != nil {
				return err
			}
			return a.Say("identity/%s is %s", i.ID, i.Actor)
		}),
	}
}

func identityDisableCommand(a *command.Env, name, short string, disabled bool) *cobra.Command {
	return &cobra.Command{
		Use: name + " ID", Short: short, Args: command.RequireArgs(1),
		Long: short + ", whatever the identity provider or the authority of certificates says.\nIt holds from the next " +
			"request on, and open streams follow. Tokens of the same person or machine are not touched.",
		Example: "  chandler identity " + name + " identity-4tz2kq7mw3xa",
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			i, err := c.ConfigureIdentity(ctx, args[0], model.ConfigureIdentity{Disabled: &disabled})
			if err != nil {
				return err
			}
			return a.Say("identity/%s %sd", i.ID, name)
		}),
	}
}
