package prune_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/cmd/chandler/author/prune"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/fbc"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

// selections parses what a person would type.
func selections(t rapid.TB, texts ...string) []prune.Selection {
	t.Helper()
	var out []prune.Selection
	for _, s := range texts {
		one, err := prune.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if one.String() != s {
			t.Fatalf("%q is written %q", s, one)
		}
		out = append(out, one)
	}
	return out
}

// TestParse: what is a selection, and what is none.
func TestParse(t *testing.T) {
	t.Parallel()
	selections(t, "gauge", "gauge:calm", "gauge@>=1.0.0", "gauge:a@b@<2.0.0 !1.1.0", "gauge:stable-v1.2")
	for _, s := range []string{"", ":calm", "gauge:", "gauge@", "gauge@ ", "gauge:calm@x", "@1.0.0"} {
		if got, err := prune.Parse(s); err == nil {
			t.Errorf("%q is taken as %+v", s, got)
		}
	}
}

// bundleOf makes a bundle that provides the API of its package, and needs others.
func bundleOf(pkg, version string, needs ...catalog.Property) catalog.Bundle {
	property := func(typ, value string) catalog.Property {
		return catalog.Property{Type: typ, Value: []byte(value)}
	}
	return catalog.Bundle{
		Name: pkg + ".v" + version, Version: version, Image: "registry.dock.test/ops/" + pkg + ":v" + version,
		Properties: append([]catalog.Property{
			property(catalog.TypePackage, fmt.Sprintf(`{"packageName":%q,"version":%q}`, pkg, version)),
			property(catalog.TypeGVK, fmt.Sprintf(`{"group":"sea.test","version":"v1","kind":%q}`, "Kind"+pkg)),
		}, needs...),
	}
}

func needsPackage(name, in string) catalog.Property {
	return catalog.Property{
		Type:  catalog.TypePackageRequired,
		Value: fmt.Appendf(nil, `{"packageName":%q,"versionRange":%q}`, name, in),
	}
}

func needsAPI(pkg string) catalog.Property {
	return catalog.Property{
		Type:  catalog.TypeGVKRequired,
		Value: fmt.Appendf(nil, `{"group":"sea.test","version":"v1","kind":%q}`, "Kind"+pkg),
	}
}

func needsConstraint(value string) catalog.Property {
	return catalog.Property{Type: catalog.TypeConstraint, Value: []byte(value)}
}

// chain is a package with one channel in which each version replaces the one before.
func chain(name string, bundles ...catalog.Bundle) catalog.Package {
	p := catalog.Package{
		Name: name, DefaultChannel: "calm", Bundles: bundles,
		Channels: []catalog.Channel{{Name: "calm"}},
	}
	for i, b := range bundles {
		e := catalog.Entry{Name: b.Name}
		if i > 0 {
			e.Replaces = bundles[i-1].Name
		}
		p.Channels[0].Entries = append(p.Channels[0].Entries, e)
	}
	return p
}

// TestClosure: what a package needs comes along, from package to package, and what cannot be had is told
// (R-CAT-16, R-CAT-63).
func TestClosure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		needs []catalog.Property
		also  []string // selections beside a
		want  string   // packages that stay
		unmet string
	}{
		"nothing":   {nil, nil, "a", ""},
		"a package": {[]catalog.Property{needsPackage("b", ">=1.0.0")}, nil, "a b c", ""}, // b needs c
		"an API":    {[]catalog.Property{needsAPI("c")}, nil, "a c", ""},
		"itself":    {[]catalog.Property{needsAPI("a")}, nil, "a", ""},
		"a version too high": {
			[]catalog.Property{needsPackage("c", ">=3.0.0")},
			nil, "a",
			"needs package c >=3.0.0, which nothing in this catalog has",
		},
		"what is left out": {
			[]catalog.Property{needsPackage("c", ">=2.0.0")},
			[]string{"c@<2.0.0"},
			"a c",
			"which package c has in versions that the selection leaves out",
		},
		"a circle": {[]catalog.Property{needsPackage("d", ">=1.0.0")}, nil, "a d", ""}, // d needs a
		"all of": {[]catalog.Property{needsConstraint(
			`{"all":{"constraints":[{"package":{"packageName":"c","versionRange":">=1.0.0"}},{"gvk":{"group":"sea.test","version":"v1","kind":"Kindd"}}]}}`)}, nil, "a c d", ""},
		"any of, one is there": {
			[]catalog.Property{needsConstraint(
				`{"any":{"constraints":[{"package":{"packageName":"c","versionRange":">=1.0.0"}},{"package":{"packageName":"d","versionRange":">=1.0.0"}}]}}`)},
			[]string{"d"},
			"a d", "",
		},
		"any of, none is there": {
			[]catalog.Property{needsConstraint(
				`{"any":{"constraints":[{"package":{"packageName":"z","versionRange":">=1.0.0"}},{"package":{"packageName":"c","versionRange":">=1.0.0"}}]}}`)},
			nil, "a c", "",
		},
		"a rule that names nothing": {[]catalog.Property{needsConstraint(`{"cel":{"rule":"true"}}`)}, nil, "a", ""},
	} {
		packages := []catalog.Package{
			chain("a", bundleOf("a", "1.0.0", c.needs...)),
			chain("b", bundleOf("b", "1.0.0", needsAPI("c"))),
			chain("c", bundleOf("c", "1.0.0"), bundleOf("c", "2.0.0")),
			chain("d", bundleOf("d", "1.0.0", needsPackage("a", ">=1.0.0"))),
		}
		plan, err := prune.Make(packages, selections(t, append([]string{"a"}, c.also...)...))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := strings.Join(plan.Packages(), " "); got != c.want {
			t.Errorf("%s: %s stay, want %s", name, got, c.want)
		}
		if unmet := strings.Join(plan.Unmet, "; "); !strings.Contains(unmet, c.unmet) || c.unmet == "" && unmet != "" {
			t.Errorf("%s: unmet %q, want %q", name, unmet, c.unmet)
		}
	}
}

// random draws a valid package: versions in one order, a channel where each is reached from the head.
func random(t *rapid.T) catalog.Package {
	n := rapid.IntRange(1, 8).Draw(t, "versions")
	p := catalog.Package{Name: "gauge", DefaultChannel: "calm"}
	c := catalog.Channel{Name: "calm"}
	next := "" // the version that the next entry on the chain replaces
	var skippable []string
	for i := range n {
		b := bundleOf("gauge", fmt.Sprintf("1.%d.0", i))
		p.Bundles = append(p.Bundles, b)
		e := catalog.Entry{Name: b.Name, Replaces: next}
		if i < n-1 && rapid.Bool().Draw(t, "off the chain") {
			skippable = append(skippable, b.Name) // somebody above must skip it
		} else {
			e.Skips, skippable, next = skippable, nil, b.Name
		}
		c.Entries = append(c.Entries, e)
	}
	p.Channels = []catalog.Channel{c}
	return p
}

// TestCutStaysValid: whichever versions of a valid channel go, what is left is a valid catalog, holds
// exactly what was asked for, and whoever has a version from the middle that went still has a way on to
// the head that is left (R-GRA-7, R-CAT-35, R-CAT-36).
func TestCutStaysValid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := random(rt)
		var keep []string
		kept := map[string]bool{}
		for _, b := range p.Bundles {
			if rapid.Bool().Draw(rt, "keep "+b.Version) {
				keep, kept[b.Name] = append(keep, "gauge:calm@"+b.Version), true
			}
		}
		if len(keep) == 0 {
			rt.Skip("nothing is kept")
		}
		before := reload(rt, p, nil)
		plan, err := prune.Make(before.Packages, selections(rt, keep...))
		if err != nil {
			rt.Fatal(err)
		}
		after := reload(rt, p, plan)
		if err := after.Err(); err != nil || len(after.Packages) != 1 {
			rt.Fatalf("what is left is not valid: %v", after.Findings)
		}
		left := after.Packages[0]
		for _, b := range p.Bundles {
			if _, there := left.Bundle(b.Name); there != kept[b.Name] {
				rt.Fatalf("%s: kept %v", b.Name, there)
			}
		}
		ways(rt, p, left, kept)
	})
}

// ways looks whether each version between the lowest and the highest on the chain that is kept leads on.
func ways(rt *rapid.T, p, left catalog.Package, kept map[string]bool) {
	old, err := catalog.NewGraph(p.Channels[0])
	if err != nil {
		rt.Fatal(err)
	}
	g, err := catalog.NewGraph(left.Channels[0])
	if err != nil {
		rt.Fatal(err)
	}
	order := old.Ordered() // head first
	first := slices.IndexFunc(order, func(e catalog.Entry) bool { return kept[e.Name] })
	last := len(order) - 1
	for last >= 0 && !kept[order[last].Name] {
		last--
	}
	for i := first + 1; first >= 0 && i <= last; i++ {
		b, _ := p.Bundle(order[i].Name)
		if order[i].Name != g.Head().Name && len(g.Successors(b.Name, b.Version)) == 0 {
			rt.Fatalf("from %s nothing leads on: %+v", b.Name, left.Channels[0].Entries)
		}
	}
}

// reload writes a package, cut by a plan if there is one, and loads it.
func reload(rt *rapid.T, p catalog.Package, plan *prune.Plan) *load.Catalog {
	blobs, err := fbc.FromPackage(p, nil)
	if err != nil {
		rt.Fatal(err)
	}
	var out []fbc.Blob
	for _, b := range blobs {
		stays := true
		if plan != nil {
			if b, stays, err = plan.Apply(b); err != nil {
				rt.Fatal(err)
			}
		}
		if stays {
			out = append(out, b)
		}
	}
	var text []byte
	for _, b := range out {
		text = append(append(text, b.Raw...), '\n')
	}
	c, err := load.Load(fstest.MapFS{"catalog.json": {Data: text}}, load.Options{})
	if err != nil {
		rt.Fatal(err)
	}
	if plan == nil && c.Err() != nil {
		rt.Fatalf("the package that was drawn is not valid: %v", c.Findings)
	}
	return c
}
