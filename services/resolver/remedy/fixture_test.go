package remedy_test

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// shelf is a View in memory.
type shelf struct {
	catalogs []resolve.Catalog
	packages map[resolve.CatalogKey]map[string]*offer.Package
	images   map[string]resolve.Fetched
	health   map[resolve.CatalogKey]resolve.Health
}

func newShelf() *shelf {
	return &shelf{packages: map[resolve.CatalogKey]map[string]*offer.Package{}}
}

// add puts packages into a catalog of a priority; a catalog without packages is there but not ready.
func (s *shelf) add(name string, priority int32, packages ...catalog.Package) *shelf {
	k := resolve.CatalogKey{Name: name}
	s.catalogs = append(s.catalogs, resolve.Catalog{Key: k, Priority: priority, Ready: len(packages) > 0, Revision: "r1"})
	s.packages[k] = map[string]*offer.Package{}
	for _, p := range packages {
		d, err := p.Digest()
		if err != nil {
			panic(err)
		}
		s.packages[k][p.Name] = offer.Index(p, d)
	}
	return s
}

func (s *shelf) Catalogs() []resolve.Catalog { return s.catalogs }

func (s *shelf) Package(c resolve.CatalogKey, name string) *offer.Package {
	return s.packages[c][name]
}

func (s *shelf) Providers(c resolve.CatalogKey, api catalog.GVK) []string {
	var out []string
	for _, name := range s.Packages(c) {
		if s.packages[c][name].Provides(api) {
			out = append(out, name)
		}
	}
	return out
}

func (s *shelf) Packages(c resolve.CatalogKey) []string {
	var out []string
	for name := range s.packages[c] {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func (s *shelf) Image(_ resolve.CatalogKey, b resolve.BundleImage) resolve.Fetched {
	return s.images[b.Image]
}

func (s *shelf) Health(c resolve.CatalogKey) resolve.Health { return s.health[c] }

func api(kind string) catalog.GVK { return catalog.GVK{Group: "sea.test", Version: "v1", Kind: kind} }

// property makes a property; values are encoded as JSON.
func property(typ string, v any) catalog.Property {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return catalog.Property{Type: typ, Value: raw}
}

// offers and wants are short for the properties of bundles and installed operators: "gives:Kind",
// "api:Kind", "pkg:name range", "deprecated", "constraint:{json}".
func properties(pkg, version string, words ...string) []catalog.Property {
	out := []catalog.Property{property(catalog.TypePackage, catalog.PackageProperty{PackageName: pkg, Version: version})}
	for _, w := range words {
		kind, rest, _ := strings.Cut(w, ":")
		switch kind {
		case "gives":
			out = append(out, property(catalog.TypeGVK, api(rest)))
		case "api":
			out = append(out, property(catalog.TypeGVKRequired, api(rest)))
		case "pkg":
			name, versions, _ := strings.Cut(rest, " ")
			out = append(out, property(catalog.TypePackageRequired, catalog.PackageRequired{PackageName: name, VersionRange: versions}))
		case "deprecated":
			out = append(out, property(catalog.TypeDeprecated, map[string]any{}))
		case "constraint":
			out = append(out, property(catalog.TypeConstraint, json.RawMessage(rest)))
		default:
			panic("unknown word " + w)
		}
	}
	return out
}

// pkg starts a package with a default channel.
func pkg(name, defaultChannel string) *builder {
	return &builder{catalog.Package{Name: name, DefaultChannel: defaultChannel}}
}

type builder struct{ p catalog.Package }

// bundle adds a version; its name is <package>.v<version>.
func (b *builder) bundle(version string, words ...string) *builder {
	b.p.Bundles = append(b.p.Bundles, catalog.Bundle{
		Name: b.p.Name + ".v" + version, Version: version, Properties: properties(b.p.Name, version, words...),
	})
	return b
}

// channel adds a channel. An entry is "version", "version<replaced", and further "skips=a,b" or "range=…"
// behind blanks; ranges use "_" for blanks.
func (b *builder) channel(name string, entries ...string) *builder {
	c := catalog.Channel{Name: name}
	csv := func(v string) string { return b.p.Name + ".v" + v }
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
	b.p.Channels = append(b.p.Channels, c)
	return b
}

// chain makes a package with one channel "stable" of versions, head first, each replacing the next.
func chain(name string, versions ...string) *builder {
	b := pkg(name, "stable")
	var entries []string
	for i, v := range versions {
		if i+1 < len(versions) {
			v += "<" + versions[i+1]
		}
		entries = append(entries, v)
	}
	return b.channel("stable", entries...)
}

func sub(name, pkg, channel string) resolve.Subscription {
	return resolve.Subscription{Name: name, Package: pkg, Channel: channel, Catalog: "fleet", Approval: resolve.Automatic}
}

// installed is an operator that a subscription follows; "" for none.
func installed(pkg, version, follower string, words ...string) resolve.Installed {
	return resolve.Installed{
		CSV: pkg + ".v" + version, Package: pkg, Version: version, Phase: "Succeeded", Subscription: follower,
		Properties: properties(pkg, version, words...),
	}
}

func input(view resolve.View, subs []resolve.Subscription, have ...resolve.Installed) resolve.Input {
	return resolve.Input{
		Scope: resolve.Scope{Cluster: "harbour", Namespace: "ops"}, View: view, Subscriptions: subs, Installed: have,
		OperatorGroups: []resolve.OperatorGroup{{Name: "og"}},
	}
}
