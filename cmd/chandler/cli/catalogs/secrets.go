package catalogs

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/sources"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// secretCommand keeps credentials of catalog sources. Values come from files and standard input.
func secretCommand(a *command.Env) *cobra.Command {
	c := &cobra.Command{Use: "secret", Short: "Keep credentials that sources of catalogs need"}
	c.AddCommand(secretSetCommand(a), secretListCommand(a), secretDeleteCommand(a))
	return c
}

func secretSetCommand(a *command.Env) *cobra.Command {
	var flags sources.Secret
	c := &cobra.Command{
		Use:   "set NAME",
		Short: "Give or replace a credential; it is encrypted at once and never shown",
		Long: `Keeps a credential that catalogs name with --secret: one of a registry as docker keeps it, user and password, a token,
an SSH key, or certificates of an authority. Values come from files or standard input, so that they stand in no list of
processes. Catalogs that name it are looked at again at once.`,
		Example: `  chandler catalog secret set dock-pull --docker-config ~/.docker/config.json
  chandler catalog secret set git-bot --username bot --password-stdin < password
  chandler catalog secret set git-key --ssh-key id_ed25519 --known-hosts known_hosts`,
		Args: command.Needs(1),
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
		Use: "list", Short: "Show the names and kinds of credentials, and who uses them", Args: cobra.NoArgs,
		Long:    "Lists credentials of catalog sources by name. Their values are never shown.",
		Example: "  chandler catalog secret list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			list, err := c.CatalogSecrets(cmd.Context())
			items, err := printer.Items(list, err, func(s model.CatalogSecret) printer.Item {
				return printer.Item{Name: "catalogsecret/" + s.Name, Value: s, Cells: []any{s.Name, string(s.Kind), printer.Or(strings.Join(s.UsedBy, ","), printer.None), printer.Age(a.Now(), s.UpdatedAt)}}
			})
			if err != nil {
				return err
			}
			columns := []printer.Column{{Name: "Name"}, {Name: "Kind"}, {Name: "Used By"}, {Name: "Age"}}
			return o.Show(a.Out, a.Err, printer.Table{Plural: "catalog secrets", Columns: columns}, items, false)
		},
	}
	o.Flags(c)
	return c
}

func secretDeleteCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "Erase a credential; catalogs that name it stay, and say that it is missing", Args: command.Needs(1),
		Long:    "Erases a credential for good. Catalogs that name it serve what they have, and say that it is missing.",
		Example: "  chandler catalog secret delete dock-pull",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			if _, err := c.DeleteCatalogSecret(cmd.Context(), args[0]); err != nil {
				return err
			}
			return a.Say("catalogsecret/%s deleted", args[0])
		},
	}
}
