package validate_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/validate"
)

// draft is a package that passes every rule: two bundles in one channel. change makes one thing wrong.
func draft(change func(d *validate.Drafts)) *validate.Drafts {
	p := &validate.PackageDraft{}
	p.Body.Name, p.Body.DefaultChannel = "buoy", "steady"
	c := &validate.ChannelDraft{Package: "buoy", Body: catalog.Channel{
		Name:    "steady",
		Entries: []catalog.Entry{{Name: "buoy.v1.1.0", Replaces: "buoy.v1.0.0"}, {Name: "buoy.v1.0.0"}},
	}}
	for i := range c.Body.Entries {
		c.Entries = append(c.Entries, validate.Place{File: "catalog.yaml", Line: 10 + i})
	}
	d := &validate.Drafts{
		Name: "buoy", Severity: catalog.SeverityError, Packages: []*validate.PackageDraft{p},
		Channels: []*validate.ChannelDraft{c},
		Bundles: []*validate.BundleDraft{
			bundle("buoy.v1.0.0", "1.0.0", ""), bundle("buoy.v1.1.0", "1.1.0", ""),
		},
	}
	change(d)
	return d
}

func bundle(name, version, release string) *validate.BundleDraft {
	id := map[string]string{"packageName": "buoy", "version": version}
	if release != "" {
		id["release"] = release
	}
	return &validate.BundleDraft{Package: "buoy", Bundle: catalog.Bundle{
		Name: name, Image: "registry.example.com/buoy:" + version,
		Properties: []catalog.Property{property(catalog.TypePackage, id)},
	}}
}

func property(kind string, v any) catalog.Property {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return catalog.Property{Type: kind, Value: raw}
}

// rules are "rule severity" of what is found, sorted.
func rules(d *validate.Drafts) []string {
	d.CheckPackage()
	d.CheckBundles()
	d.CheckChannels()
	d.CheckDeprecations()
	var out []string
	for _, f := range d.Findings {
		out = append(out, f.Rule+" "+string(f.Severity))
	}
	slices.Sort(out)
	return out
}

// TestRules: R-CAT-20 … R-CAT-42: each fault of a package is found under its rule, and nothing else is: one fault does
// not bring findings about what follows from it.
func TestRules(t *testing.T) {
	t.Parallel()
	entries := func(d *validate.Drafts) []catalog.Entry { return d.Channels[0].Body.Entries }
	for _, c := range []struct {
		name   string
		change func(d *validate.Drafts)
		want   []string
	}{
		{"nothing is wrong", func(*validate.Drafts) {}, nil},
		{
			"a package name that is no label", func(d *validate.Drafts) {
				d.Name = "Buoy"
				for _, b := range d.Bundles {
					b.Bundle.Properties[0] = property(catalog.TypePackage, map[string]string{
						"packageName": "Buoy", "version": b.Bundle.Name[len("buoy.v"):],
					})
				}
			}, []string{"R-CAT-20 error"},
		},
		{
			"two olm.package", func(d *validate.Drafts) { d.Packages = append(d.Packages, d.Packages[0]) },
			[]string{"R-CAT-21 error"},
		},
		{
			"two channels of one name", func(d *validate.Drafts) { d.Channels = append(d.Channels, d.Channels[0]) },
			[]string{"R-CAT-22 error"},
		},
		{
			"no default channel", func(d *validate.Drafts) { d.Packages[0].Body.DefaultChannel = "" },
			[]string{"R-CAT-31 error"},
		},
		{
			"a default channel that is none", func(d *validate.Drafts) { d.Packages[0].Body.DefaultChannel = "fast" },
			[]string{"R-CAT-31 error"},
		},
		{
			"an entry twice", func(d *validate.Drafts) { entries(d)[0] = catalog.Entry{Name: "buoy.v1.0.0"} },
			[]string{"R-CAT-23 error", "R-CAT-29 error"},
		},
		{
			"an entry without a bundle", func(d *validate.Drafts) { d.Bundles = d.Bundles[:1] },
			[]string{"R-CAT-30 error"},
		},
		{
			"a bundle without an entry", func(d *validate.Drafts) {
				d.Bundles = append(d.Bundles, bundle("buoy.v2.0.0", "2.0.0", ""))
			}, []string{"R-CAT-29 error"},
		},
		{
			"a bundle twice", func(d *validate.Drafts) { d.Bundles = append(d.Bundles, d.Bundles[0]) },
			[]string{"R-CAT-24 error"},
		},
		{
			"two heads", func(d *validate.Drafts) { entries(d)[0].Replaces = "" }, []string{"R-CAT-35 error"},
		},
		{
			"no head", func(d *validate.Drafts) { entries(d)[1].Replaces = "buoy.v1.1.0" }, []string{"R-CAT-35 error"},
		},
		{
			"a cycle below the head", func(d *validate.Drafts) {
				d.Bundles = append(d.Bundles, bundle("buoy.v1.2.0", "1.2.0", ""))
				d.Channels[0].Body.Entries = append(entries(d), catalog.Entry{
					Name: "buoy.v1.2.0", Replaces: "buoy.v1.1.0",
				})
				d.Channels[0].Entries = append(d.Channels[0].Entries, validate.Place{Line: 12})
				entries(d)[1].Replaces = "buoy.v1.1.0"
			}, []string{"R-CAT-37 error"},
		},
		{
			"a range that is none", func(d *validate.Drafts) { entries(d)[0].SkipRange = ">=x" },
			[]string{"R-CAT-38 error"},
		},
		{
			"the package of another in olm.package", func(d *validate.Drafts) {
				d.Bundles[0].Bundle.Properties[0] = property(catalog.TypePackage, map[string]string{
					"packageName": "tide", "version": "1.0.0",
				})
			}, []string{"R-CAT-26 error"},
		},
		{
			"no semantic version", func(d *validate.Drafts) {
				d.Bundles[0].Bundle.Properties[0] = property(catalog.TypePackage, map[string]string{
					"packageName": "buoy", "version": "v1.0",
				})
			}, []string{"R-CAT-26 error"},
		},
		{
			"two bundles of one version", func(d *validate.Drafts) {
				d.Bundles[1].Bundle.Properties = d.Bundles[0].Bundle.Properties
			}, []string{"R-CAT-34 error"},
		},
		{
			"no image", func(d *validate.Drafts) { d.Bundles[0].Bundle.Image = "" }, []string{"R-CAT-39 error"},
		},
		{
			"an image that is no reference", func(d *validate.Drafts) { d.Bundles[0].Bundle.Image = "https://x y" },
			[]string{"R-CAT-28 error"},
		},
		{
			"a name of another form", func(d *validate.Drafts) {
				d.Bundles[1].Bundle.Name, entries(d)[0].Name = "buoy-new", "buoy-new"
			}, []string{"R-CAT-42 warning"},
		},
		{
			"a deprecation of a channel that is none", func(d *validate.Drafts) {
				d.Deprecations = []*validate.DeprecationsDraft{{
					Entries:   []catalog.Deprecation{{Schema: catalog.SchemaChannel, Name: "fast", Message: "m"}},
					EntriesAt: []validate.Place{{}},
				}}
			}, []string{"R-CAT-32 error"},
		},
		{
			"blobs of a package that is not there", func(d *validate.Drafts) { d.Packages = nil },
			[]string{"R-CAT-22 error", "R-CAT-24 error", "R-CAT-24 error"},
		},
	} {
		if got := rules(draft(c.change)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestSeverity: what is wrong with a graph is as severe as the caller says: a server serves a package with a warning
// where an author gets an error; what nothing can be served without stays an error (R-CAT-35, R-CAT-31).
func TestSeverity(t *testing.T) {
	t.Parallel()
	got := rules(draft(func(d *validate.Drafts) {
		d.Severity = catalog.SeverityWarning
		d.Channels[0].Body.Entries[0].Replaces = "" // two heads
		d.Packages[0].Body.DefaultChannel = ""
	}))
	if want := []string{"R-CAT-31 error", "R-CAT-35 warning"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRelease: R-CAT-27, R-CAT-40: a release is part of the bundle's name and excludes build metadata; two bundles of
// one version with different releases are two versions.
func TestRelease(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, version, release string
		want                   []string
	}{
		{"buoy-v1.0.0-2", "1.0.0", "2", nil},
		{"buoy.v9.0.0", "9.0.0", "2", []string{"R-CAT-40 error"}},
		{"buoy-v1.0.0+b-2", "1.0.0+b", "2", []string{"R-CAT-40 error"}},
		{"buoy-v1.0.0-0_2", "1.0.0", "0_2", []string{"R-CAT-27 error"}},
	} {
		got := rules(draft(func(d *validate.Drafts) {
			d.Bundles = append(d.Bundles, bundle(c.name, c.version, c.release))
			d.Bundles[2].Bundle.Image = "registry.example.com/buoy:3"
			d.Channels[0].Body.Entries = append(d.Channels[0].Body.Entries, catalog.Entry{
				Name: c.name, Replaces: "buoy.v1.1.0",
			})
			d.Channels[0].Entries = append(d.Channels[0].Entries, validate.Place{})
		}))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s with release %s: %q, want %q", c.name, c.release, got, c.want)
		}
	}
}

// TestSharedImages: R-CAT-50: two bundles with one image are a warning that names both, also across packages; a bundle
// without an image shares none.
func TestSharedImages(t *testing.T) {
	t.Parallel()
	a, b := draft(func(*validate.Drafts) {}), draft(func(d *validate.Drafts) {
		d.Name = "tide"
		for _, x := range d.Bundles {
			x.Package = "tide"
		}
		d.Bundles[1].Bundle.Image = ""
	})
	validate.CheckSharedImages([]*validate.Drafts{a, b})
	if len(a.Findings) != 0 || len(b.Findings) != 1 || b.Findings[0].Rule != "R-CAT-50" ||
		!strings.Contains(b.Findings[0].Message, `of package "buoy"`) {
		t.Errorf("findings %v and %v", a.Findings, b.Findings)
	}
}

// TestBundleByItself: R-CAT-52: of a bundle without a catalog is found what the catalog would refuse; that it joins no
// channel is a warning.
func TestBundleByItself(t *testing.T) {
	t.Parallel()
	good := func() *validate.BundleDraft {
		d := bundle("buoy.v1.0.0", "1.0.0", "")
		d.Bundle.Version, d.Joins = "1.0.0", []string{"steady"}
		return d
	}
	for name, c := range map[string]struct {
		change func(d *validate.BundleDraft)
		want   string
	}{
		"nothing":           {func(*validate.BundleDraft) {}, ""},
		"no channel":        {func(d *validate.BundleDraft) { d.Joins = nil }, "R-CAT-52 warning"},
		"no version":        {func(d *validate.BundleDraft) { d.Bundle.Version = "1" }, "R-CAT-26 error"},
		"no package's name": {func(d *validate.BundleDraft) { d.Package = "Buoy" }, "R-CAT-20 error"},
		"a property's form": {func(d *validate.BundleDraft) {
			d.Bundle.Properties = append(d.Bundle.Properties, property(catalog.TypeGVK, "x"))
		}, "R-CAT-25 error"},
	} {
		d := good()
		c.change(d)
		var got []string
		for _, f := range validate.CheckBundle(d) {
			got = append(got, f.Rule+" "+string(f.Severity))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
