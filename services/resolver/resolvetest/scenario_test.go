package resolvetest_test

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// scenario is a namespace and what it sees.
type scenario struct {
	in       resolution.Input
	catalogs []resolution.Catalog
	packages map[resolution.CatalogKey][]catalog.Package // by name
}

// scenarioView is the view of a scenario.
type scenarioView struct {
	w       *scenario
	indexed map[resolution.CatalogKey]map[string]*offer.Package
}

func newShelf(w *scenario) *scenarioView {
	s := &scenarioView{w: w, indexed: map[resolution.CatalogKey]map[string]*offer.Package{}}
	for key, packages := range w.packages {
		s.indexed[key] = map[string]*offer.Package{}
		for _, p := range packages {
			d, err := p.Digest()
			if err != nil {
				panic(err)
			}
			s.indexed[key][p.Name] = offer.Index(p, d)
		}
	}
	return s
}

func (s *scenarioView) Catalogs() []resolution.Catalog { return s.w.catalogs }

func (s *scenarioView) Package(c resolution.CatalogKey, name string) *offer.Package {
	return s.indexed[c][name]
}

func (s *scenarioView) Providers(c resolution.CatalogKey, api catalog.GVK) []string {
	var out []string
	for _, p := range s.w.packages[c] {
		if s.indexed[c][p.Name].Provides(api) {
			out = append(out, p.Name)
		}
	}
	return out
}

func (s *scenarioView) Packages(c resolution.CatalogKey) []string {
	var out []string
	for _, p := range s.w.packages[c] {
		out = append(out, p.Name)
	}
	return out
}

func (s *scenarioView) Image(resolution.CatalogKey, resolution.BundleImage) resolution.Fetched {
	return resolution.Fetched{}
}

func (s *scenarioView) Health(resolution.CatalogKey) resolution.Health {
	return resolution.HealthIgnored
}

// operator is a bundle as an entry of a channel, or an installed CSV.
type operator struct {
	name, pkg string
	version   semver.Version
	properties
	catalog   resolution.CatalogKey
	channel   string
	installed bool
	followed  bool   // by a subscription
	replaces  string // what the entry of the channel names
	forbidden bool   // by a policy
}

// properties are what an operator offers and asks for.
type properties struct {
	apis       []catalog.GVK
	asks       []constraint
	deprecated bool
}

// constraint is what a requirement says, in the form of olm.constraint.
type constraint struct {
	GVK     *catalog.GVK `json:"gvk,omitempty"`
	Package *struct {
		Name  string `json:"packageName"`
		Range string `json:"versionRange"`
	} `json:"package,omitempty"`
	All *several `json:"all,omitempty"`
	Any *several `json:"any,omitempty"`
	Not *several `json:"not,omitempty"`
}

type several struct {
	Constraints []constraint `json:"constraints"`
}

// met says whether one operator meets all that a constraint says (RESOLVER-NOTES 5.2).
func (c constraint) met(o *operator) bool {
	by := func(part constraint) bool { return part.met(o) }
	switch {
	case c.GVK != nil:
		return slices.Contains(o.apis, *c.GVK)
	case c.Package != nil:
		in, err := semver.ParseRange(c.Package.Range)
		return err == nil && o.pkg == c.Package.Name && in(o.version)
	case c.All != nil:
		return !slices.ContainsFunc(c.All.Constraints, func(part constraint) bool { return !part.met(o) })
	case c.Any != nil:
		return slices.ContainsFunc(c.Any.Constraints, by)
	default:
		return !slices.ContainsFunc(c.Not.Constraints, by)
	}
}

func parse(list []catalog.Property) properties {
	var out properties
	for _, p := range list {
		switch p.Type {
		case catalog.TypeGVK:
			out.apis = append(out.apis, decode[catalog.GVK](p))
		case catalog.TypeGVKRequired:
			api := decode[catalog.GVK](p)
			out.asks = append(out.asks, constraint{GVK: &api})
		case catalog.TypePackageRequired:
			need := decode[catalog.PackageRequired](p)
			c := constraint{}
			raw := encode(map[string]any{"package": map[string]string{
				"packageName": need.PackageName, "versionRange": need.VersionRange,
			}})
			if err := json.Unmarshal(raw, &c); err != nil {
				panic(err)
			}
			out.asks = append(out.asks, c)
		case catalog.TypeConstraint:
			out.asks = append(out.asks, decode[constraint](p))
		case catalog.TypeDeprecated:
			out.deprecated = true
		}
	}
	return out
}

func decode[T any](p catalog.Property) T {
	var v T
	if err := json.Unmarshal(p.Value, &v); err != nil {
		panic(err)
	}
	return v
}

func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// ordered are the entries of a channel that may be chosen, from the head down the chain (RESOLVER-NOTES 2.5, 2.6, 3.1).
func ordered(c catalog.Channel) []catalog.Entry {
	byName := map[string]catalog.Entry{}
	passed, skipped := map[string]bool{}, map[string]bool{}
	for _, e := range c.Entries {
		byName[e.Name] = e
		passed[e.Replaces] = true
		for _, s := range e.Skips {
			passed[s], skipped[s] = true, true
		}
	}
	var out []catalog.Entry
	at := c.Entries[slices.IndexFunc(c.Entries, func(e catalog.Entry) bool { return !passed[e.Name] })]
	for found := true; found; at, found = byName[at.Replaces], byName[at.Replaces].Name != "" {
		if !skipped[at.Name] {
			out = append(out, at)
		}
	}
	return out
}

// channels are those of a package, the default one first, then by name.
func channels(p catalog.Package) []catalog.Channel {
	return slices.SortedFunc(slices.Values(p.Channels), func(a, b catalog.Channel) int {
		return cmp.Or(first(a.Name == p.DefaultChannel, b.Name == p.DefaultChannel), cmp.Compare(a.Name, b.Name))
	})
}

// first sorts what is true before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// bundle is an entry of a channel as an operator.
func (w *scenario) bundle(key resolution.CatalogKey, p catalog.Package, channel, name string) *operator {
	b := p.Bundles[slices.IndexFunc(p.Bundles, func(b catalog.Bundle) bool { return b.Name == name })]
	o := &operator{
		name: name, pkg: p.Name, version: semver.MustParse(b.Version), properties: parse(b.Properties), catalog: key,
		channel: channel,
	}
	c := p.Channels[slices.IndexFunc(p.Channels, func(c catalog.Channel) bool { return c.Name == channel })]
	if at := slices.IndexFunc(c.Entries, func(e catalog.Entry) bool { return e.Name == name }); at >= 0 {
		o.replaces = c.Entries[at].Replaces
	}
	o.forbidden = slices.ContainsFunc(w.in.Policy.Bounds,
		func(b resolution.Bound) bool { return b.Packages[0] == o.pkg && !allows(b, o) })
	return o
}

// allows says whether a bound of a policy lets an operator be chosen.
func allows(b resolution.Bound, o *operator) bool {
	in, err := semver.ParseRange(cmp.Or(b.Range, ">=0.0.0-0"))
	return err == nil && in(o.version) && (b.Ceiling == "" || o.version.LE(semver.MustParse(b.Ceiling))) &&
		(b.Pin == "" || b.Pin == o.name)
}

// visible are the catalogs that the namespace sees (RESOLVER-NOTES 1.2).
func (w *scenario) visible() []resolution.Catalog {
	return slices.DeleteFunc(slices.Clone(w.catalogs), func(c resolution.Catalog) bool {
		return w.in.OperatorGroups[0].ExcludeGlobalCatalogs && c.Key.Namespace != w.in.Scope.Namespace
	})
}
