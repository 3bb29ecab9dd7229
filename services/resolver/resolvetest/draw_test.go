package resolvetest_test

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

const namespace = "ops"

var (
	kinds    = []string{"Buoy", "Chart", "Dock", "Echo"}
	versions = []string{"1.0.0", "1.1.0", "2.0.0", "3.0.0-rc.1"}
	ranges   = []string{">=1.0.0", "<2.0.0", ">=2.0.0", "1.0.0", ">=1.1.0 <3.0.0", ">3.0.0"}
)

func api(kind string) catalog.GVK { return catalog.GVK{Group: "sea.test", Version: "v1", Kind: kind} }

func property(typ string, v any) catalog.Property {
	return catalog.Property{Type: typ, Value: encode(v)}
}

// taste is what kind of scenario is wanted.
type taste struct {
	shared bool // joint plans
	known  bool // requirements say which packages or APIs may meet them, as none with "not" does
}

// drawScenario makes a small namespace in which about half of the subscriptions have something to quarrel about.
func drawScenario(t *rapid.T, want taste) *scenario {
	w := &scenario{packages: map[resolution.CatalogKey][]catalog.Package{}}
	names := []string{"anchor", "bell", "crane", "davit", "ensign"}
	for i, key := range []resolution.CatalogKey{{Name: "fleet"}, {Name: "spare"}, {Name: "own", Namespace: namespace}} {
		if i > 0 && rapid.Bool().Draw(t, "no such catalog") {
			continue
		}
		w.catalogs = append(w.catalogs, resolution.Catalog{
			Key: key, Priority: rapid.Int32Range(-1, 1).Draw(t, "priority"), Ready: true, Revision: "r1",
		})
		for _, name := range names {
			if rapid.IntRange(0, 2).Draw(t, "in catalog") > 0 {
				w.packages[key] = append(w.packages[key], drawPackage(t, want, name, names))
			}
		}
	}
	w.in = resolution.Input{
		Scope:          resolution.Scope{Cluster: "harbour", Namespace: namespace},
		OperatorGroups: []resolution.OperatorGroup{{Name: "og", Shared: want.shared}},
	}
	w.in.OperatorGroups[0].ExcludeGlobalCatalogs = rapid.IntRange(0, 9).Draw(t, "excludes global catalogs") == 0
	for _, name := range names {
		w.drawIntent(t, name)
		w.drawBound(t, name)
	}
	w.in.View = newShelf(w)
	return w
}

func drawPackage(t *rapid.T, want taste, name string, names []string) catalog.Package {
	p := catalog.Package{Name: name, DefaultChannel: "stable"}
	n := rapid.IntRange(1, len(versions)).Draw(t, "versions")
	for _, v := range versions[:n] {
		p.Bundles = append(p.Bundles, catalog.Bundle{
			Name: name + ".v" + v, Version: v,
			Properties: drawProperties(t, want, name, v, names),
		})
	}
	other := ""
	if rapid.IntRange(0, 5).Draw(t, "takes over") == 0 {
		other = rapid.SampledFrom(names).Draw(t, "from") + ".v1.0.0"
	}
	p.Channels = append(p.Channels, drawChannel(t, "stable", other, p.Bundles))
	if rapid.IntRange(0, 2).Draw(t, "second channel") == 0 {
		channel := rapid.SampledFrom([]string{"alpha", "zulu"}).Draw(t, "channel")
		p.Channels = append(p.Channels, drawChannel(t, channel, other, p.Bundles))
	}
	return p
}

// drawChannel makes a chain of some of the bundles, the newest one at the head. The last one replaces a CSV that may be
// that of another package.
func drawChannel(t *rapid.T, name, replaces string, bundles []catalog.Bundle) catalog.Channel {
	c := catalog.Channel{Name: name}
	last := replaces
	if slices.ContainsFunc(bundles, func(b catalog.Bundle) bool { return b.Name == last }) {
		last = ""
	}
	for i, b := range bundles {
		if i > 0 && rapid.IntRange(0, 4).Draw(t, "left out") == 0 {
			continue
		}
		e := catalog.Entry{Name: b.Name, Replaces: last}
		if i > 0 && rapid.IntRange(0, 3).Draw(t, "skips") == 0 {
			e.Skips = []string{bundles[rapid.IntRange(0, i-1).Draw(t, "skipped")].Name}
		}
		if rapid.IntRange(0, 3).Draw(t, "skips a range") == 0 {
			e.SkipRange = rapid.SampledFrom(ranges).Draw(t, "skip range")
		}
		c.Entries = append(c.Entries, e)
		last = b.Name
	}
	slices.Reverse(c.Entries)
	return c
}

func drawProperties(t *rapid.T, want taste, name, version string, names []string) []catalog.Property {
	out := []catalog.Property{property(catalog.TypePackage,
		catalog.PackageProperty{PackageName: name, Version: version})}
	for range 2 {
		switch rapid.IntRange(0, 11).Draw(t, "property") {
		case 0, 1, 2:
			out = append(out, property(catalog.TypeGVK, api(rapid.SampledFrom(kinds).Draw(t, "gives"))))
		case 3:
			out = append(out, property(catalog.TypeGVKRequired, api(rapid.SampledFrom(kinds).Draw(t, "needs"))))
		case 4, 5:
			out = append(out, property(catalog.TypePackageRequired, catalog.PackageRequired{
				PackageName:  rapid.SampledFrom(names).Draw(t, "needs"),
				VersionRange: rapid.SampledFrom(ranges).Draw(t, "range"),
			}))
		case 6:
			out = append(out, property(catalog.TypeConstraint, drawConstraint(t, want, names, 2)))
		case 7:
			if rapid.IntRange(0, 2).Draw(t, "deprecated") == 0 {
				out = append(out, property(catalog.TypeDeprecated, map[string]any{}))
			}
		}
	}
	return out
}

func drawConstraint(t *rapid.T, want taste, names []string, depth int) map[string]any {
	last := 4
	if want.known {
		last = 3
	}
	kind := rapid.IntRange(0, last).Draw(t, "constraint")
	if depth == 0 {
		kind %= 2
	}
	switch kind {
	case 0:
		return map[string]any{"gvk": api(rapid.SampledFrom(kinds).Draw(t, "kind"))}
	case 1:
		return map[string]any{"package": map[string]string{
			"packageName":  rapid.SampledFrom(names).Draw(t, "package"),
			"versionRange": rapid.SampledFrom(ranges).Draw(t, "range"),
		}}
	}
	var parts []map[string]any
	for range rapid.IntRange(1, 2).Draw(t, "parts") {
		parts = append(parts, drawConstraint(t, want, names, depth-1))
	}
	return map[string]any{[]string{"all", "any", "not"}[kind-2]: map[string]any{"constraints": parts}}
}

// drawIntent subscribes to a package, has it installed, both, or neither. Most subscriptions ask for what is there.
func (w *scenario) drawIntent(t *rapid.T, name string) {
	var offering []resolution.CatalogKey
	for _, c := range w.catalogs {
		if rapid.IntRange(0, 9).Draw(t, "wherever") == 0 || w.find(c.Key, name) != nil {
			offering = append(offering, c.Key)
		}
	}
	if len(offering) == 0 {
		return
	}
	key := rapid.SampledFrom(offering).Draw(t, "catalog")
	p := w.find(key, name)
	follower := ""
	if rapid.Bool().Draw(t, "subscribed") {
		w.in.Subscriptions = append(w.in.Subscriptions, drawSubscription(t, name, key, p))
		if len(offering) == 1 && rapid.IntRange(0, 3).Draw(t, "any catalog") == 0 {
			s := &w.in.Subscriptions[len(w.in.Subscriptions)-1]
			s.Catalog, s.CatalogNamespace = "", ""
		}
		follower = w.in.Subscriptions[len(w.in.Subscriptions)-1].Name
	}
	if p == nil || rapid.IntRange(0, 2).Draw(t, "installed") > 0 {
		return
	}
	if rapid.IntRange(0, 4).Draw(t, "unfollowed") == 0 {
		follower = ""
	}
	b := rapid.SampledFrom(p.Bundles).Draw(t, "installed version")
	i := resolution.Installed{
		CSV: b.Name, Package: name, Version: b.Version, Phase: "Succeeded",
		Properties: b.Properties, Subscription: follower,
	}
	// two such cannot be told apart (RESOLVER-NOTES 3.4)
	nameless := func(i resolution.Installed) bool { return i.Package == "" }
	if rapid.IntRange(0, 5).Draw(t, "of no package") == 0 && len(offering) == 1 &&
		!slices.ContainsFunc(w.in.Installed, nameless) {
		i.Package = ""
		i.Properties = slices.DeleteFunc(slices.Clone(i.Properties),
			func(p catalog.Property) bool { return p.Type == catalog.TypePackage })
	}
	w.in.Installed = append(w.in.Installed, i)
	w.drawFollower(t, name, i)
}

// drawFollower sometimes lets a further subscription follow a CSV, in whatever channel, or one to another package.
func (w *scenario) drawFollower(t *rapid.T, name string, i resolution.Installed) {
	at := slices.IndexFunc(w.in.Subscriptions, func(s resolution.Subscription) bool { return s.Name == i.Subscription })
	if at < 0 || rapid.IntRange(0, 3).Draw(t, "second follower") > 0 {
		return
	}
	s := w.in.Subscriptions[at]
	s.Name = rapid.SampledFrom([]string{"a-", "z-"}).Draw(t, "prefix") + name
	s.InstalledCSV, s.StartingCSV = i.CSV, ""
	s.Channel = rapid.SampledFrom([]string{"", "stable", "alpha", "zulu"}).Draw(t, "channel")
	if rapid.IntRange(0, 3).Draw(t, "of another package") == 0 {
		s.Package = rapid.SampledFrom([]string{"anchor", "bell", "crane"}).Draw(t, "package")
		s.Catalog, s.CatalogNamespace = w.catalogs[0].Key.Name, w.catalogs[0].Key.Namespace
	}
	w.in.Subscriptions = append(w.in.Subscriptions, s)
}

func drawSubscription(t *rapid.T, name string, key resolution.CatalogKey, p *catalog.Package) resolution.Subscription {
	s := resolution.Subscription{
		Name: rapid.SampledFrom([]string{"r-", "s-"}).Draw(t, "prefix") + name, Package: name, Catalog: key.Name,
		CatalogNamespace: key.Namespace, Approval: rapid.SampledFrom(
			[]string{resolution.Automatic, resolution.Manual}).Draw(t, "approval"),
	}
	switch rapid.IntRange(0, 9).Draw(t, "channel") {
	case 0:
		s.Channel = "alpha"
	case 1, 2, 3: // any
	default:
		s.Channel = "stable"
		if p != nil {
			s.Channel = rapid.SampledFrom(p.Channels).Draw(t, "channel").Name
		}
	}
	if p != nil && rapid.IntRange(0, 7).Draw(t, "starts") == 0 {
		s.StartingCSV = rapid.SampledFrom(p.Bundles).Draw(t, "starting CSV").Name
	}
	return s
}

// drawBound sometimes makes a policy for a package.
func (w *scenario) drawBound(t *rapid.T, name string) {
	b := resolution.Bound{Policy: "policy-" + name, Packages: []string{name}}
	switch rapid.IntRange(0, 19).Draw(t, "bound") {
	case 0:
		b.Range = rapid.SampledFrom(ranges).Draw(t, "bound to")
	case 1:
		b.Ceiling = rapid.SampledFrom(versions).Draw(t, "bound to")
	case 2:
		b.Pin = name + ".v" + rapid.SampledFrom(versions).Draw(t, "bound to")
	default:
		return
	}
	w.in.Policy.Bounds = append(w.in.Policy.Bounds, b)
}

// find is a package of a catalog, nil where it has none.
func (w *scenario) find(key resolution.CatalogKey, name string) *catalog.Package {
	list := w.packages[key]
	if i := slices.IndexFunc(list, func(p catalog.Package) bool { return p.Name == name }); i >= 0 {
		return &list[i]
	}
	return nil
}
