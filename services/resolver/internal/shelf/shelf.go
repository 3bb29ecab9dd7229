// Package shelf is catalogs, subscriptions and installed operators of a few words, for tests of who resolves. It is used
// by tests only.
package shelf

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// Shelf is a View in memory.
type Shelf struct {
	Listed    []resolve.Catalog
	Documents map[resolve.CatalogKey]map[string]*offer.Package
	Images    map[string]resolve.Fetched
	Healths   map[resolve.CatalogKey]resolve.Health
}

// New is a shelf without catalogs.
func New() *Shelf {
	return &Shelf{Documents: map[resolve.CatalogKey]map[string]*offer.Package{}}
}

// Add puts packages into a catalog of a priority; a catalog without packages is there but not ready.
func (s *Shelf) Add(name string, priority int32, packages ...catalog.Package) *Shelf {
	k := resolve.CatalogKey{Name: name}
	s.Listed = append(s.Listed, resolve.Catalog{Key: k, Priority: priority, Ready: len(packages) > 0, Revision: "r1"})
	s.Documents[k] = map[string]*offer.Package{}
	for _, p := range packages {
		d, err := p.Digest()
		if err != nil {
			panic(err)
		}
		s.Documents[k][p.Name] = offer.Index(p, d)
	}
	return s
}

// Catalogs implements resolve.View.
func (s *Shelf) Catalogs() []resolve.Catalog { return s.Listed }

// Package implements resolve.View.
func (s *Shelf) Package(c resolve.CatalogKey, name string) *offer.Package {
	return s.Documents[c][name]
}

// Providers implements resolve.View.
func (s *Shelf) Providers(c resolve.CatalogKey, api catalog.GVK) []string {
	var out []string
	for _, name := range s.Packages(c) {
		if s.Documents[c][name].Provides(api) {
			out = append(out, name)
		}
	}
	return out
}

// Packages implements resolve.View.
func (s *Shelf) Packages(c resolve.CatalogKey) []string {
	var out []string
	for name := range s.Documents[c] {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Image implements resolve.View.
func (s *Shelf) Image(_ resolve.CatalogKey, b resolve.BundleImage) resolve.Fetched {
	return s.Images[b.Image]
}

// Health implements resolve.View.
func (s *Shelf) Health(c resolve.CatalogKey) resolve.Health { return s.Healths[c] }

// API is a GVK by its kind.
func API(kind string) catalog.GVK { return catalog.GVK{Group: "sea.test", Version: "v1", Kind: kind} }

// Property makes a property; values are encoded as JSON.
func Property(typ string, v any) catalog.Property {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return catalog.Property{Type: typ, Value: raw}
}

// Properties are those of bundles and installed operators, in short: "gives:Kind", "api:Kind", "pkg:name range",
// "deprecated", "constraint:{json}".
func Properties(pkg, version string, words ...string) []catalog.Property {
	out := []catalog.Property{Property(catalog.TypePackage, catalog.PackageProperty{PackageName: pkg, Version: version})}
	for _, w := range words {
		kind, rest, _ := strings.Cut(w, ":")
		switch kind {
		case "gives":
			out = append(out, Property(catalog.TypeGVK, API(rest)))
		case "api":
			out = append(out, Property(catalog.TypeGVKRequired, API(rest)))
		case "pkg":
			name, versions, _ := strings.Cut(rest, " ")
			out = append(out, Property(catalog.TypePackageRequired, catalog.PackageRequired{PackageName: name, VersionRange: versions}))
		case "deprecated":
			out = append(out, Property(catalog.TypeDeprecated, map[string]any{}))
		case "constraint":
			out = append(out, Property(catalog.TypeConstraint, json.RawMessage(rest)))
		default:
			panic("unknown word " + w)
		}
	}
	return out
}

// Pkg starts a package with a default channel.
func Pkg(name, defaultChannel string) *Builder {
	return &Builder{catalog.Package{Name: name, DefaultChannel: defaultChannel}}
}

// Builder makes a package.
type Builder struct{ P catalog.Package }

// Bundle adds a version; its name is <package>.v<version>.
func (b *Builder) Bundle(version string, words ...string) *Builder {
	b.P.Bundles = append(b.P.Bundles, catalog.Bundle{
		Name: b.P.Name + ".v" + version, Version: version, Properties: Properties(b.P.Name, version, words...),
	})
	return b
}

// Channel adds a channel. An entry is "version", "version<replaced", and further "skips=a,b" or "range=…" behind
// blanks; ranges use "_" for blanks.
func (b *Builder) Channel(name string, entries ...string) *Builder {
	c := catalog.Channel{Name: name}
	csv := func(v string) string { return b.P.Name + ".v" + v }
	for _, text := range entries {
		words := strings.Fields(text)
		version, replaced, _ := strings.Cut(words[0], "<")
		e := catalog.Entry{Name: csv(version)}
		if replaced != "" {
			e.Replaces = csv(replaced)
		}
		for _, w := range words[1:] {
			key, value, _ := strings.Cut(w, "=")
			switch key {
			case "skips":
				for v := range strings.SplitSeq(value, ",") {
					e.Skips = append(e.Skips, csv(v))
				}
			case "range":
				e.SkipRange = strings.ReplaceAll(value, "_", " ")
			}
		}
		c.Entries = append(c.Entries, e)
	}
	b.P.Channels = append(b.P.Channels, c)
	return b
}

// Chain makes a package with one channel "stable" of versions, head first, each replacing the next.
func Chain(name string, versions ...string) *Builder {
	b := Pkg(name, "stable")
	var entries []string
	for i, v := range versions {
		if i+1 < len(versions) {
			v += "<" + versions[i+1]
		}
		entries = append(entries, v)
	}
	return b.Channel("stable", entries...)
}

// Sub is an automatic subscription in catalog fleet.
func Sub(name, pkg, channel string) resolve.Subscription {
	return resolve.Subscription{Name: name, Package: pkg, Channel: channel, Catalog: "fleet", Approval: resolve.Automatic}
}

// Installed is an operator that a subscription follows; "" for none.
func Installed(pkg, version, follower string, words ...string) resolve.Installed {
	return resolve.Installed{
		CSV: pkg + ".v" + version, Package: pkg, Version: version, Phase: "Succeeded", Subscription: follower,
		Properties: Properties(pkg, version, words...),
	}
}

// Input is a namespace with one operator group.
func Input(view resolve.View, subs []resolve.Subscription, have ...resolve.Installed) resolve.Input {
	return resolve.Input{
		Scope: resolve.Scope{Cluster: "harbour", Namespace: "ops"}, View: view, Subscriptions: subs, Installed: have,
		OperatorGroups: []resolve.OperatorGroup{{Name: "og"}},
	}
}
