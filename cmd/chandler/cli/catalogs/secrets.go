package catalogs

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/sources"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// secretCommand keeps credentials of catalog sources. Values come from files and standard input.
func secretCommand(a *command.Env) *cobra.Command {
	c := &cobra.Command{Use: "secret", Short: "Manage credentials of catalog sources"}
	c.AddCommand(secretSetCommand(a), secretListCommand(a), secretDeleteCommand(a))
	return c
}

func secretSetCommand(a *command.Env) *cobra.Command {
	var flags sources.Secret
	c := &cobra.Command{
		Use:   "set NAME",
		Short: "Store or replace a credential; it is encrypted and never shown again",
		Long: `Stores a credential that catalogs refer to with --secret: a docker configuration, user and password, a token, an SSH
key, or CA certificates. Values are read from files or standard input, so that the list of processes does not show
them. Catalogs that refer to it are polled again at once.`,
		Example: `  chandler catalog secret set dock-pull --docker-config ~/.docker/config.json
  chandler catalog secret set git-bot --username bot --password-stdin < password
  chandler catalog secret set git-key --ssh-key id_ed25519 --known-hosts known_hosts`,
		Args: command.RequireArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := flags.Value(a.In)
			if err != nil {
				return command.BadFlags(err)
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			if _, err := c.SetCatalogSecret(cmd.Context(), args[0], in); err != nil {
				return err
			}
			return a.Say("catalogsecret/%s set", args[0])
		},
	}
	flags.Register(c)
	return c
}

func secretListCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	c := &cobra.Command{
		Use: "list", Short: "List credentials, and the catalogs that use them", Args: cobra.NoArgs,
		Long:    "Lists credentials of catalog sources by name. Their values are never shown.",
		Example: "  chandler catalog secret list",
		RunE: a.Run(func(ctx context.Context, c *client.Client, _ []string) error {
			list, err := c.CatalogSecrets(ctx)
			return printer.List(a, &o, printer.Table{
				Plural: "catalog secrets", Columns: printer.Columns("Name", "Kind", "Used By", "Age"),
			}, list, err, func(s model.CatalogSecret) printer.Item {
				return printer.Item{Name: "catalogsecret/" + s.Name, Value: s, Cells: []any{
					s.Name, string(s.Kind), printer.Or(strings.Join(s.UsedBy, ","), printer.None),
					printer.Age(a.Now(), s.UpdatedAt),
				}}
			})
		}),
	}
	o.Flags(c)
	return c
}

func secretDeleteCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "Erase a credential; catalogs that use it stay, and report it as missing",
		Args: command.RequireArgs(1),
		Long: "Erases a credential for good. Catalogs that use it keep their content, and report the credential as " +
			"missing.", Example: "  chandler catalog secret delete dock-pull",
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			if _, err := c.DeleteCatalogSecret(ctx, args[0]); err != nil {
				return err
			}
			return a.Say("catalogsecret/%s deleted", args[0])
		}),
	}
}
