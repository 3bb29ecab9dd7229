package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/sources"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// secretCommand keeps credentials of catalog sources. Values come from files and standard input.
func (a *app) secretCommand() *cobra.Command {
	c := &cobra.Command{Use: "secret", Short: "Keep credentials that sources of catalogs need"}
	c.AddCommand(a.secretSetCommand(), a.secretListCommand(), a.secretDeleteCommand())
	return c
}

func (a *app) secretSetCommand() *cobra.Command {
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
		Args: needs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := flags.Value(a.In)
			if err != nil {
				return badFlags(err)
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			if _, err := c.SetCatalogSecret(cmd.Context(), args[0], in); err != nil {
				return err
			}
			return a.say("catalogsecret/%s set", args[0])
		},
	}
	flags.Register(c)
	return c
}

func (a *app) secretListCommand() *cobra.Command {
	var o output
	c := &cobra.Command{
		Use: "list", Short: "Show the names and kinds of credentials, and who uses them", Args: cobra.NoArgs,
		Long:    "Lists credentials of catalog sources by name. Their values are never shown.",
		Example: "  chandler catalog secret list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			list, err := c.CatalogSecrets(cmd.Context())
			items, err := all(list, err, func(s model.CatalogSecret) item {
				return item{name: "catalogsecret/" + s.Name, value: s, cells: []any{s.Name, string(s.Kind), or(strings.Join(s.UsedBy, ","), none), a.age(s.UpdatedAt)}}
			})
			if err != nil {
				return err
			}
			columns := []column{{name: "Name"}, {name: "Kind"}, {name: "Used By"}, {name: "Age"}}
			return a.show(o, resource{names: []string{"catalog secret", "catalog secrets"}, columns: columns}, items, false)
		},
	}
	o.flags(c)
	return c
}

func (a *app) secretDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "Erase a credential; catalogs that name it stay, and say that it is missing", Args: needs(1),
		Long:    "Erases a credential for good. Catalogs that name it serve what they have, and say that it is missing.",
		Example: "  chandler catalog secret delete dock-pull",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			if _, err := c.DeleteCatalogSecret(cmd.Context(), args[0]); err != nil {
				return err
			}
			return a.say("catalogsecret/%s deleted", args[0])
		},
	}
}

// hookCommand makes and ends hooks. The secret is shown once, on standard output, as nothing else is.
func (a *app) hookCommand() *cobra.Command {
	c := &cobra.Command{Use: "hook", Short: "Let a registry or repository tell when something was pushed"}
	c.AddCommand(
		a.onCatalog(cobra.Command{
			Use: "make", Short: "Give a catalog a hook, or its hook another secret, which is shown once",
			Long: `Makes an address that a registry or repository can call when something was pushed: the indexer then looks at once. The
secret is shown this one time; a second call replaces it.`,
			Example: "  chandler catalog hook make fleet",
		}, func(ctx context.Context, c *client.Client, r client.Ref) error {
			h, err := c.MakeHook(ctx, r)
			if err != nil {
				return err
			}
			s, err := a.settings()
			if err != nil {
				return err
			}
			return a.say("url: %s%s\nsecret: %s", strings.TrimSuffix(s.URL, "/"), h.Path, h.Secret)
		}),
		a.onCatalog(cobra.Command{
			Use: "end", Short: "End the hook of a catalog",
			Long:    "Ends the hook of a catalog: calls of its address are refused from now on. The catalog is polled as before.",
			Example: "  chandler catalog hook end fleet",
		}, func(ctx context.Context, c *client.Client, r client.Ref) error {
			if err := c.EndHook(ctx, r); err != nil {
				return err
			}
			return a.say("the hook of catalog/%s has ended", r)
		}),
	)
	return c
}

// healthCommand shows or chooses what an unhealthy catalog does to those who do not need it (R-CAT-99).
func (a *app) healthCommand() *cobra.Command {
	var where scope
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
			c, err := a.client()
			if err != nil {
				return err
			}
			h, err := c.CatalogHealth(cmd.Context(), where.cluster, where.namespace)
			if mode != "" {
				h, err = c.SetCatalogHealth(cmd.Context(), where.cluster, where.namespace, mode)
			}
			if err != nil {
				return err
			}
			return a.say("%s", h.Mode)
		},
	}
	where.flags(c)
	c.Flags().StringVar(&mode, "set", "", "Independent or Strict")
	return c
}

// packages are found over all catalogs (R-CAT-105); a name alone may be in several of them.
func (a *app) packages() resource {
	return resource{
		kind:    "Package",
		names:   []string{"package", "packages", "packagemanifest", "packagemanifests"},
		filters: []string{flagCluster, flagNamespace, flagCatalog},
		columns: packageColumns(),
		list: func(ctx context.Context, c *client.Client, s client.Selection) ([]item, error) {
			f := model.PackageFilter{Cluster: s.Cluster, Namespace: s.Namespace}
			if s.Cluster != "" { // catalogs of the hub would be listed for any name
				if err := isCluster(ctx, c, s.Cluster); err != nil {
					return nil, err
				}
			}
			if s.Catalog != "" {
				f.Catalogs = []string{s.Catalog}
			}
			list, err := c.SearchPackages(ctx, f)
			return all(list, err, a.showPackage)
		},
		get: func(ctx context.Context, c *client.Client, r client.Ref) (item, error) {
			list, err := c.SearchPackages(ctx, model.PackageFilter{Search: r.Name})
			if err != nil {
				return item{}, err
			}
			for _, p := range list {
				if p.Name == r.Name {
					return a.describedPackage(ctx, c, p)
				}
			}
			return item{}, notFound("package", r)
		},
	}
}

func packageColumns() []column {
	return []column{
		{name: "Name"},
		{name: "Catalog"},
		{name: "Age"},
		{name: "Version", wide: true},
		{name: "Default Channel", wide: true},
		{name: "Provider", wide: true},
		{name: "Capability", wide: true},
		{name: "Display", wide: true},
	}
}

func foundCatalog(c model.CatalogName) client.Ref {
	return client.Ref{Cluster: c.Cluster, Namespace: c.Namespace, Name: c.Name}
}

func (a *app) showPackage(p model.FoundPackage) item {
	return item{name: "package/" + p.Name, value: p, cells: []any{
		p.Name, foundCatalog(p.Catalog).String(), a.age(p.Catalog.AddedAt), or(p.Version, none), or(p.DefaultChannel, none), or(p.Provider, none),
		or(p.Capability, none), or(p.DisplayName, none),
	}}
}

// describedPackage reads all that a catalog tells of a package.
func (a *app) describedPackage(ctx context.Context, c *client.Client, found model.FoundPackage) (item, error) {
	d, err := c.Package(ctx, foundCatalog(found.Catalog), found.Name)
	if err != nil {
		return item{}, err
	}
	it := a.showPackage(found)
	it.value, it.describe = d, func(p *page) { p.packageDetail(d) }
	return it, nil
}

func (p *page) packageDetail(d model.PackageDetail) {
	p.line("Name", d.Name)
	p.line("Display name", d.DisplayName)
	p.line("Catalog", d.Catalog)
	p.line("Provider", d.Provider)
	p.line("Capability", d.Capability)
	p.line("Categories", strings.Join(d.Categories, ", "))
	p.line("Features", strings.Join(d.Features, ", "))
	p.line("Install modes", strings.Join(d.InstallModes, ", "))
	p.line("Needs Kubernetes", d.MinKubeVersion)
	p.line("Deprecated", d.Deprecated)
	p.line("Description", d.Description)
	p.section("Channels")
	p.row("NAME", "HEAD", "VERSIONS", "DEPRECATED")
	for _, ch := range d.ChannelList {
		name := ch.Name
		if name == d.DefaultChannel {
			name += " (default)"
		}
		p.row(name, ch.CurrentCSV, fmt.Sprint(ch.Entries), or(ch.Deprecated, none))
	}
}

func (a *app) searchCommand() *cobra.Command {
	var o output
	var f model.PackageFilter
	c := &cobra.Command{
		Use:   "search [WORD...]",
		Short: "Find packages in all catalogs, best first",
		Long: `Finds packages by words of their names, display names, keywords and descriptions, and narrows them by what their newest
versions say. Words may be left out. With --cluster it looks at what every namespace of that cluster sees, with -n at
what one sees.`,
		Example: `  chandler packages search database
  chandler packages search --feature disconnected --category Database -o wide`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			f.Search = strings.Join(args, " ")
			if f.Cluster != "" {
				if err := isCluster(cmd.Context(), c, f.Cluster); err != nil {
					return err
				}
			}
			list, err := c.SearchPackages(cmd.Context(), f)
			items, err := all(list, err, a.showPackage)
			if err != nil {
				return err
			}
			return a.show(o, resource{names: []string{"package", "packages"}, columns: packageColumns()}, items, false)
		},
	}
	o.flags(c)
	fl := c.Flags()
	fl.StringSliceVar(&f.Categories, "category", nil, "only of these categories")
	fl.StringSliceVar(&f.Providers, "provider", nil, "only of these providers")
	fl.StringSliceVar(&f.Capabilities, "capability", nil, "only of these levels, such as 'Auto Pilot'")
	fl.StringSliceVar(&f.ProviderURLs, "provider-url", nil, "only of providers with these home pages")
	fl.StringSliceVar(&f.Features, "feature", nil, "only with these infrastructure features, such as disconnected")
	fl.StringSliceVar(&f.InstallModes, "install-mode", nil, "only with these install modes")
	fl.StringSliceVar(&f.Catalogs, "catalog", nil, "only of these catalogs")
	fl.StringVar(&f.Cluster, "cluster", "", "only what this cluster sees: in each of its namespaces, unless -n names one")
	fl.StringVarP(&f.Namespace, "namespace", "n", "", "only what this namespace sees")
	return c
}

func (a *app) packagesRootCommand() *cobra.Command {
	c := &cobra.Command{Use: "packages", Short: "Look for packages in all catalogs"}
	c.AddCommand(a.searchCommand())
	return c
}
