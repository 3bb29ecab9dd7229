package catalogs

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func searchCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	var f model.PackageFilter
	c := &cobra.Command{
		Use:   "search [WORD...]",
		Short: "Find packages in all catalogs, best first",
		Long: `Finds packages by words in their names, display names, keywords and descriptions. Flags narrow the result by
properties of the newest version. With --cluster only catalogs count that every namespace of that cluster sees, with
-n also those that this namespace sees.`,
		Example: `  chandler packages search database
  chandler packages search --feature disconnected --category Database -o wide`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			f.Search = strings.Join(args, " ")
			if f.Cluster != "" {
				if err := command.CheckCluster(cmd.Context(), c, f.Cluster); err != nil {
					return err
				}
			}
			list, err := c.SearchPackages(cmd.Context(), f)
			items, err := printer.Items(list, err,
				func(v model.FoundPackage) printer.Item { return kinds.ShowPackage(a, v) })
			if err != nil {
				return err
			}
			return o.Show(a, printer.Table{Plural: "packages", Columns: kinds.PackageColumns()}, items,
				false)
		},
	}
	o.Flags(c)
	fl := c.Flags()
	fl.StringSliceVar(&f.Categories, "category", nil, "only of these categories")
	fl.StringSliceVar(&f.Providers, "provider", nil, "only of these providers")
	fl.StringSliceVar(&f.Capabilities, "capability", nil, "only of these levels, such as 'Auto Pilot'")
	fl.StringSliceVar(&f.ProviderURLs, "provider-url", nil, "only of providers with these home pages")
	fl.StringSliceVar(&f.Features, "feature", nil, "only with these infrastructure features, such as disconnected")
	fl.StringSliceVar(&f.InstallModes, "install-mode", nil, "only with these install modes")
	fl.StringSliceVar(&f.Catalogs, "catalog", nil, "only of these catalogs")
	fl.StringVar(&f.Cluster, "cluster", "",
		"only packages that this cluster sees: in each of its namespaces, unless -n names one")
	fl.StringVarP(&f.Namespace, "namespace", "n", "", "only packages that this namespace sees")
	return c
}

// PackagesCommand is chandler packages.
func PackagesCommand(a *command.Env) *cobra.Command {
	c := &cobra.Command{Use: "packages", Short: "Search packages in all catalogs"}
	c.AddCommand(searchCommand(a))
	return c
}
