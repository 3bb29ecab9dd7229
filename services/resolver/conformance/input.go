package conformance

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Load gives the content of a catalog of a case: made of its documents, or of those of its file.
type Load func(Catalog) (*Content, error)

// Input is the case as a resolution takes it. Catalogs of foreign namespaces are not loaded.
func (c Case) Input(load Load) (resolution.Input, error) {
	v := &view{contents: map[resolution.CatalogKey]*Content{}}
	for _, k := range c.Catalogs {
		if k.Namespace != c.Namespace && k.Namespace != c.GlobalNamespace {
			continue
		}
		key := resolution.CatalogKey{Name: k.Name, Namespace: k.Namespace}
		v.catalogs = append(v.catalogs, resolution.Catalog{Key: key, Priority: k.Priority, Ready: !k.Unavailable})
		if k.Unavailable {
			continue
		}
		content, err := load(k)
		if err != nil {
			return resolution.Input{}, err
		}
		v.contents[key] = content
	}
	in := resolution.Input{Scope: resolution.Scope{Namespace: c.Namespace}, View: v, Installed: c.installed()}
	for _, g := range c.OperatorGroups {
		in.OperatorGroups = append(in.OperatorGroups, resolution.OperatorGroup{
			Name: g.Name, ExcludeGlobalCatalogs: g.ExcludeGlobalCatalogs, FailForward: g.UpgradeStrategy == failForward,
		})
	}
	for _, s := range c.Subscriptions {
		in.Subscriptions = append(in.Subscriptions, resolution.Subscription{
			Name: s.Name, Package: s.Package, Channel: s.Channel, Catalog: s.Catalog,
			CatalogNamespace: s.CatalogNamespace, StartingCSV: s.StartingCSV, Approval: resolution.Automatic,
		})
	}
	return in, nil
}

// installed are the CSVs of the namespace that are no copies.
func (c Case) installed() []resolution.Installed {
	var out []resolution.Installed
	for _, i := range c.Installed {
		if i.Copied || cmp.Or(i.Namespace, c.Namespace) != c.Namespace {
			continue
		}
		properties := i.Properties
		if i.NoProperties {
			properties = append(i.spec(), c.inferred(i)...)
		}
		out = append(out, resolution.Installed{
			CSV: i.Name, Package: packageOf(properties), Version: cmp.Or(tolerant(i.Version), unversioned),
			Phase: cmp.Or(i.Phase, "Succeeded"), Properties: properties, Subscription: c.follower(i),
			Replaces: i.Replaces,
		})
	}
	return out
}

// unversioned is what a CSV without version counts as (RESOLVER-NOTES 2.4).
const unversioned = "0.0.0"

// follower is the subscription that a CSV belongs to: status.installedCSV alone says so (RESOLVER-NOTES 7.3). Where
// several record it, OLM takes one of them.
func (c Case) follower(i CSV) string {
	name := ""
	for _, s := range c.Subscriptions {
		if s.InstalledCSV != i.Name {
			continue
		}
		if s.Name == i.Subscription {
			return s.Name
		}
		name = s.Name
	}
	return name
}

// spec are the properties that the spec of a CSV implies, where no annotation overrides it (RESOLVER-NOTES 7.2).
func (i CSV) spec() []catalog.Property {
	var out []catalog.Property
	for _, part := range []struct {
		typ  string
		apis []API
	}{{catalog.TypeGVK, i.Provides}, {catalog.TypeGVKRequired, i.Requires}} {
		seen := map[catalog.GVK]bool{}
		for _, api := range part.apis {
			if !seen[api.GVK] {
				seen[api.GVK] = true
				out = append(out, property(part.typ, api.GVK))
			}
		}
	}
	return out
}

// inferred is the package of a CSV without annotation, where the subscriptions that record it agree on one.
func (c Case) inferred(i CSV) []catalog.Property {
	var packages []string
	for _, s := range c.Subscriptions {
		if s.InstalledCSV == i.Name {
			packages = append(packages, s.Package)
		}
	}
	slices.Sort(packages)
	if packages = slices.Compact(packages); len(packages) != 1 || packages[0] == "" {
		return nil
	}
	return []catalog.Property{property(catalog.TypePackage,
		catalog.PackageProperty{PackageName: packages[0], Version: i.Version})}
}

func property(typ string, v any) catalog.Property {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings only
	}
	return catalog.Property{Type: typ, Value: raw}
}

// packageOf is the package that the properties of a CSV name last, "" where none does.
func packageOf(properties []catalog.Property) string {
	name := ""
	for _, p := range properties {
		var v catalog.PackageProperty
		if p.Type == catalog.TypePackage && json.Unmarshal(p.Value, &v) == nil {
			name = v.PackageName
		}
	}
	return name
}
