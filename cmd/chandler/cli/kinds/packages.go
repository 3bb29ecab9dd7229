package kinds

import (
	"context"
	"fmt"
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// packages are found over all catalogs (R-CAT-105); a name alone may be in several of them.
func packages(a *command.Env) Kind {
	return Kind{
		Document: "Package",
		Names:    []string{"package", "packages", "packagemanifest", "packagemanifests"},
		filters:  []string{FlagCluster, FlagNamespace, FlagCatalog},
		columns:  PackageColumns(),
		List: func(ctx context.Context, c *client.Client, s client.Selection) ([]printer.Item, error) {
			f := model.PackageFilter{Cluster: s.Cluster, Namespace: s.Namespace}
			if s.Cluster != "" { // catalogs of the hub would be listed for any name
				if err := command.CheckCluster(ctx, c, s.Cluster); err != nil {
					return nil, err
				}
			}
			if s.Catalog != "" {
				f.Catalogs = []string{s.Catalog}
			}
			list, err := c.SearchPackages(ctx, f)
			return printer.Items(list, err, func(v model.FoundPackage) printer.Item { return ShowPackage(a, v) })
		},
		Get: func(ctx context.Context, c *client.Client, r client.Ref) (printer.Item, error) {
			list, err := c.SearchPackages(ctx, model.PackageFilter{Search: r.Name})
			if err != nil {
				return printer.Item{}, err
			}
			for _, p := range list {
				if p.Name == r.Name {
					return describedPackage(ctx, a, c, p)
				}
			}
			return printer.Item{}, notFound("package", r)
		},
	}
}

// PackageColumns are the columns of a list of packages.
func PackageColumns() []printer.Column {
	return []printer.Column{
		{Name: "Name"},
		{Name: "Catalog"},
		{Name: "Age", Cut: 9},
		{Name: "Version", Wide: true},
		{Name: "Default Channel", Wide: true},
		{Name: "Provider", Wide: true},
		{Name: "Capability", Wide: true},
		{Name: "Display", Wide: true},
	}
}

func foundCatalog(c model.CatalogName) client.Ref {
	return client.Ref{Cluster: c.Cluster, Namespace: c.Namespace, Name: c.Name}
}

// ShowPackage is a package as lists show it.
func ShowPackage(a *command.Env, p model.FoundPackage) printer.Item {
	return printer.Item{Name: "package/" + p.Name, Value: p, Cells: []any{
		p.Name, foundCatalog(p.Catalog).String(), printer.Age(a.Now(), p.Catalog.AddedAt),
		printer.Or(p.Version, printer.None), printer.Or(p.DefaultChannel, printer.None),
		printer.Or(p.Provider, printer.None), printer.Or(p.Capability, printer.None),
		printer.Or(p.DisplayName, printer.None),
	}}
}

// describedPackage reads all that a catalog tells of a package.
func describedPackage(ctx context.Context, a *command.Env, c *client.Client, found model.FoundPackage) (
	printer.Item, error,
) {
	d, err := c.Package(ctx, foundCatalog(found.Catalog), found.Name)
	if err != nil {
		return printer.Item{}, err
	}
	it := ShowPackage(a, found)
	it.Value, it.Describe = d, func(p *printer.Page) { describePackage(p, d) }
	return it, nil
}

func describePackage(p *printer.Page, d model.PackageDetail) {
	p.Line("Name", d.Name)
	p.Line("Display name", d.DisplayName)
	p.Line("Catalog", d.Catalog)
	p.Line("Provider", d.Provider)
	p.Line("Capability", d.Capability)
	p.Line("Categories", strings.Join(d.Categories, ", "))
	p.Line("Features", strings.Join(d.Features, ", "))
	p.Line("Install modes", strings.Join(d.InstallModes, ", "))
	p.Line("Needs Kubernetes", d.MinKubeVersion)
	p.Line("Deprecated", d.Deprecated)
	p.Line("Description", d.Description)
	p.Section("Channels")
	p.Row("NAME", "HEAD", "VERSIONS", "DEPRECATED")
	for _, ch := range d.ChannelList {
		name := ch.Name
		if name == d.DefaultChannel {
			name += " (default)"
		}
		p.Row(name, ch.CurrentCSV, fmt.Sprint(ch.Entries), printer.Or(ch.Deprecated, printer.None))
	}
}
