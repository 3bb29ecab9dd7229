package catalogs

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
)

// hookCommand makes and ends hooks. The secret is shown once, on standard output, as nothing else is.
func hookCommand(a *command.Env) *cobra.Command {
	c := &cobra.Command{Use: "hook", Short: "Let a registry or repository trigger a poll after a push"}
	c.AddCommand(
		onCatalog(a, cobra.Command{
			Use: "make", Short: "Create the hook of a catalog, or a new secret for it; the secret is shown once",
			Long: `Creates an address that a registry or repository can call after a push: the indexer then polls the catalog at once.
The secret is shown only now; a second call replaces it.`,
			Example: "  chandler catalog hook make fleet",
		}, func(ctx context.Context, c *client.Client, r client.Ref) error {
			h, err := c.MakeHook(ctx, r)
			if err != nil {
				return err
			}
			s, err := a.Settings()
			if err != nil {
				return err
			}
			return a.Say("url: %s%s\nsecret: %s", strings.TrimSuffix(s.URL, "/"), h.Path, h.Secret)
		}),
		onCatalog(a, cobra.Command{
			Use: "end", Short: "Delete the hook of a catalog",
			Long: "Deletes the hook of a catalog: calls of its address are refused from now on. The catalog is " +
				"polled as before.",
			Example: "  chandler catalog hook end fleet",
		}, func(ctx context.Context, c *client.Client, r client.Ref) error {
			if err := c.EndHook(ctx, r); err != nil {
				return err
			}
			return a.Say("the hook of catalog/%s is deleted", r)
		}),
	)
	return c
}

// healthCommand shows or chooses what an unhealthy catalog does to those who do not need it (R-CAT-99).
func healthCommand(a *command.Env) *cobra.Command {
	var where command.Scope
	var mode string
	c := &cobra.Command{
		Use:   "health [--set Independent|Strict]",
		Short: "Show or set whether an unhealthy catalog blocks namespaces that do not need it",
		Long: `Independent: an unhealthy catalog blocks only what needs it. Strict: nothing is installed or updated while any
visible catalog is unhealthy, as in OLM. The setting is for catalogs of the fleet, or with --cluster and -n for
those of a namespace.`,
		Example: `  chandler catalog health
  chandler catalog health --set Strict --cluster east-1 -n ports`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			h, err := c.CatalogHealth(cmd.Context(), where.Cluster, where.Namespace)
			if mode != "" {
				h, err = c.SetCatalogHealth(cmd.Context(), where.Cluster, where.Namespace, mode)
			}
			if err != nil {
				return err
			}
			return a.Say("%s", h.Mode)
		},
	}
	where.Flags(c)
	c.Flags().StringVar(&mode, "set", "", "Independent or Strict")
	return c
}
