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
	c := &cobra.Command{Use: "hook", Short: "Let a registry or repository tell when something was pushed"}
	c.AddCommand(
		onCatalog(a, cobra.Command{
			Use: "make", Short: "Give a catalog a hook, or its hook another secret, which is shown once",
			Long: `Makes an address that a registry or repository can call when something was pushed: the indexer then looks at once. The
secret is shown this one time; a second call replaces it.`,
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
			Use: "end", Short: "End the hook of a catalog",
			Long:    "Ends the hook of a catalog: calls of its address are refused from now on. The catalog is polled as before.",
			Example: "  chandler catalog hook end fleet",
		}, func(ctx context.Context, c *client.Client, r client.Ref) error {
			if err := c.EndHook(ctx, r); err != nil {
				return err
			}
			return a.Say("the hook of catalog/%s has ended", r)
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
		Short: "Show or choose what an unhealthy catalog does to those who see it but do not need it",
		Long: `Independent: nothing. Strict: nothing is installed or updated while one of the visible catalogs is
unhealthy, as in OLM. For hub catalogs, or with --cluster and -n for those of a namespace.`,
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
