package validate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/value"
)

// CheckPackage holds the rules about the package itself and its channels' names (R-CAT-20..22, 31, 33).
func (g *Drafts) CheckPackage() {
	if len(g.Packages) == 0 {
		g.orphans()
		return
	}
	p := g.Packages[0]
	if !value.Label(g.Name) {
		g.Reportf(p.In("name"), catalog.SeverityError, "R-CAT-20",
			"package name %q must be a DNS-1123 label: at most 63 lower-case letters, digits and '-'", g.Name)
	}
	for _, other := range g.Packages[1:] {
		g.Reportf(other.Place, catalog.SeverityError, "R-CAT-21",
			"duplicate package %q: the first olm.package stands at %s; keep one", g.Name, p.Text())
	}
	g.checkOwnProperties(p.Place, "package "+strconv.Quote(g.Name), p.Body.Properties)
	if len(g.Channels) == 0 {
		g.Reportf(p.Place, catalog.SeverityError, "R-CAT-33",
			"package %q has no channel; add an olm.channel with package: %s", g.Name, g.Name)
		return
	}
	g.checkDefaultChannel(g.checkChannelNames())
}

// checkChannelNames holds R-CAT-22 and returns the channels by their names.
func (g *Drafts) checkChannelNames() map[string]*ChannelDraft {
	names := map[string]*ChannelDraft{}
	for _, c := range g.Channels {
		switch first := names[c.Body.Name]; {
		case len(c.Body.Name) > catalog.MaxNameBytes:
			g.Reportf(c.In("name"), catalog.SeverityError, "R-CAT-22",
				"a channel name of package %q has more than %d characters; shorten it", g.Name, catalog.MaxNameBytes)
		case c.Body.Name == "":
			g.Reportf(c.Place, catalog.SeverityError, "R-CAT-22", "a channel of package %q has no name; give it one",
				g.Name)
		case first != nil:
			g.Reportf(c.In("name"), catalog.SeverityError, "R-CAT-22",
				"duplicate channel %q: the first stands at %s; keep one", c.Body.Name, first.Text())
		default:
			names[c.Body.Name] = c
		}
		g.checkOwnProperties(c.Place, "channel "+strconv.Quote(c.Body.Name), c.Body.Properties)
	}
	return names
}

// checkDefaultChannel holds R-CAT-31.
func (g *Drafts) checkDefaultChannel(names map[string]*ChannelDraft) {
	p := g.Packages[0]
	at := p.In("defaultChannel")
	switch d := p.Body.DefaultChannel; {
	case d == "":
		g.Reportf(at, catalog.SeverityError, "R-CAT-31", "package %q has no defaultChannel; name one of: %s", g.Name,
			strings.Join(slices.Sorted(maps.Keys(names)), ", "))
	case names[d] == nil:
		g.Reportf(at, catalog.SeverityError, "R-CAT-31",
			"default channel %q of package %q is no channel of it; name one of: %s", d, g.Name,
			strings.Join(slices.Sorted(maps.Keys(names)), ", "))
	}
}

// checkOwnProperties holds the form of the properties of a package or a channel (§1.2, R-CAT-25).
func (g *Drafts) checkOwnProperties(at Place, whose string, properties []catalog.Property) {
	for i, p := range properties {
		if p.Type == "" || len(p.Value) == 0 || string(p.Value) == "null" {
			g.Reportf(at.In("properties", "#"+strconv.Itoa(i)), catalog.SeverityError, "R-CAT-25",
				"property %d of %s needs a type that is a non-empty string, and a value that is not null", i+1, whose)
		}
	}
}

// orphans reports blobs whose package has no olm.package.
func (g *Drafts) orphans() {
	const fix = "add its olm.package, or correct the name"
	if g.Name == "" {
		g.homeless()
		return
	}
	for _, c := range g.Channels {
		g.Reportf(c.In("package"), catalog.SeverityError, "R-CAT-22", "channel %q names the unknown package %q; %s",
			c.Body.Name, g.Name, fix)
	}
	for _, b := range g.Bundles {
		g.Reportf(b.In("package"), catalog.SeverityError, "R-CAT-24", "bundle %q names the unknown package %q; %s",
			b.Bundle.Name, g.Name, fix)
	}
	for _, d := range g.Deprecations {
		g.Reportf(d.In("package"), catalog.SeverityError, "R-CAT-32",
			"olm.deprecations names the unknown package %q; %s",
			g.Name, fix)
	}
}

// homeless reports blobs that name no package at all.
func (g *Drafts) homeless() {
	const fix = "add the key package with the name of its olm.package"
	for _, c := range g.Channels {
		g.Reportf(c.Place, catalog.SeverityError, "R-CAT-22", "channel %q names no package; %s", c.Body.Name, fix)
	}
	for _, b := range g.Bundles {
		g.Reportf(b.Place, catalog.SeverityError, "R-CAT-24", "bundle %q names no package; %s", b.Bundle.Name, fix)
	}
	for _, d := range g.Deprecations {
		g.Reportf(d.Place, catalog.SeverityError, "R-CAT-32", "olm.deprecations names no package; %s", fix)
	}
}

// operatorVersion is the form of bundle names (R-CAT-42).
var operatorVersion = regexp.MustCompile(`^.+\.v\d`)

// CheckBundles holds the rules about single bundles and their names and versions (R-CAT-24..29, 34, 39, 40, 42).
func (g *Drafts) CheckBundles() {
	names := map[string]*BundleDraft{}
	versions := map[string]*BundleDraft{}
	entries := g.entryNames()
	for _, b := range g.Bundles {
		name := b.Bundle.Name
		at := b.PlaceOf("name", "name")
		if name == "" {
			g.Reportf(b.Place, catalog.SeverityError, "R-CAT-24",
				"a bundle of package %q has no name; give it one, such as %s.v1.0.0", g.Name, g.Name)
			continue
		}
		if len(name) > catalog.MaxNameBytes {
			g.Reportf(at, catalog.SeverityError, "R-CAT-24",
				"a bundle name of package %q has more than %d characters; shorten it", g.Name, catalog.MaxNameBytes)
		}
		if first := names[name]; first != nil {
			g.Reportf(at, catalog.SeverityError, "R-CAT-24", "duplicate bundle %q: the first stands at %s; keep one",
				name,
				first.Text())
			continue
		}
		names[name] = b
		if !entries[name] {
			g.Reportf(at, catalog.SeverityError, "R-CAT-29",
				"bundle %q not found in any channel entries; add it to a channel or remove it", name)
		}
		g.checkProperties(b)
		g.checkIdentity(b, versions)
		g.checkImages(b)
		if b.Bundle.Release == "" && !operatorVersion.MatchString(name) { // a release has a form of its own: R-CAT-40
			g.Reportf(at, catalog.SeverityWarning, "R-CAT-42",
				"bundle name %q should have the form <operator>.v<version>; name the next version so", name)
		}
	}
}

func (g *Drafts) entryNames() map[string]bool {
	out := map[string]bool{}
	for _, c := range g.Channels {
		for _, e := range c.Body.Entries {
			out[e.Name] = true
		}
	}
	return out
}

// checkProperties holds R-CAT-25: known property types have their form.
func (g *Drafts) checkProperties(b *BundleDraft) {
	nth := map[string]int{}
	for _, p := range b.Bundle.Properties {
		at := b.PlaceOf(p.Type, "properties", p.Type+"#"+strconv.Itoa(nth[p.Type]), "value")
		nth[p.Type]++
		if why := value.Name(p.Type, catalog.MaxBlobNameBytes); why != "" {
			g.Reportf(b.PlaceOf("name", "name"), catalog.SeverityError, "R-CAT-25",
				"the type %.40q of a property of bundle %q %s", p.Type, b.Bundle.Name, why)
		}
		for _, issue := range g.Properties.Check(p.Type, p.Value) {
			s := catalog.SeverityError
			if issue.Warning {
				s = catalog.SeverityWarning
			}
			g.Reportf(at, s, "R-CAT-25", "property %s of bundle %q: %s", p.Type, b.Bundle.Name, issue.Text)
		}
	}
}

// checkIdentity holds R-CAT-26, 27, 34 and 40, and takes version and release from olm.package.
func (g *Drafts) checkIdentity(b *BundleDraft, versions map[string]*BundleDraft) {
	name := b.Bundle.Name
	ids, err := b.Bundle.Identities()
	if err != nil {
		return // R-CAT-25 has reported it
	}
	if len(ids) != 1 {
		g.Reportf(b.PlaceOf("name", "properties", fmt.Sprintf("%s#%d", catalog.TypePackage, min(len(ids), 1))),
			catalog.SeverityError, "R-CAT-26",
			"bundle %q must have exactly one olm.package property, it has %d; give it one with its package and version",
			name, len(ids))
		return
	}
	id := ids[0]
	if id.PackageName != g.Name {
		g.Reportf(b.IdentityAt("packageName"), catalog.SeverityError, "R-CAT-26",
			"olm.package of bundle %q names package %q, but the bundle belongs to %q; let both name the same", name,
			id.PackageName, g.Name)
	}
	v, err := semver.Parse(id.Version)
	if err != nil {
		g.Reportf(b.IdentityAt("version"), catalog.SeverityError, "R-CAT-26",
			"version %q of bundle %q is no semantic version (three numbers, no leading v or zeros): %v", id.Version,
			name, err)
		return
	}
	b.Bundle.Version, b.Bundle.Release = id.Version, id.Release
	g.checkRelease(b, v)
	key := id.Version + " " + id.Release
	if first := versions[key]; first != nil {
		g.Reportf(b.IdentityAt("version"), g.Severity, "R-CAT-34",
			"duplicate versions found in bundles: %q and %q both have version %s; give one another version",
			first.Bundle.Name, name, strings.TrimSpace(key))
		return
	}
	versions[key] = b
}

// checkRelease holds R-CAT-27 and R-CAT-40.
func (g *Drafts) checkRelease(b *BundleDraft, v semver.Version) {
	r := b.Bundle.Release
	if r == "" {
		return
	}
	if why := value.Release(r); why != "" {
		g.Reportf(b.IdentityAt("release"), g.Severity, "R-CAT-27", "release %q of bundle %q %s", r, b.Bundle.Name, why)
	}
	if want := fmt.Sprintf("%s-v%s-%s", g.Name, b.Bundle.Version, r); b.Bundle.Name != want {
		g.Reportf(b.PlaceOf("name", "name"), g.Severity, "R-CAT-40", "bundle %q has a release and must be named %q",
			b.Bundle.Name, want)
	}
	if len(v.Build) > 0 {
		g.Reportf(b.IdentityAt("version"), g.Severity, "R-CAT-40",
			"bundle %q has a release, so its version %s must have no build metadata; drop what follows the +",
			b.Bundle.Name, b.Bundle.Version)
	}
}

// checkImages holds R-CAT-28 and R-CAT-39.
func (g *Drafts) checkImages(b *BundleDraft) {
	if b.Bundle.Image == "" && !b.Embedded {
		g.Reportf(b.Place, catalog.SeverityError, "R-CAT-39",
			"bundle %q has neither an image nor manifests; give the image, olm.bundle.object properties or a bundle "+
				"directory", b.Bundle.Name)
	}
	if why := CheckImage(b.Bundle.Image); why != "" {
		g.Reportf(b.In("image"), catalog.SeverityError, "R-CAT-28", "image %q of bundle %q %s", b.Bundle.Image,
			b.Bundle.Name, why)
	}
	for i, r := range b.Bundle.RelatedImages {
		if why := CheckImage(r.Image); why != "" {
			at := b.PlaceOf("relatedImages", "relatedImages", "#"+strconv.Itoa(i), "image")
			g.Reportf(at, g.Severity, "R-CAT-28", "related image %q of bundle %q %s", r.Image, b.Bundle.Name, why)
		}
	}
}

// CheckImage returns why a catalog would refuse an image as no pull specification, "" where it would not
// (R-CAT-28). None is none.
func CheckImage(image string) string {
	if image == "" {
		return ""
	}
	return value.Reference(image)
}

// CheckSharedImages warns of bundles of the catalog that name the same image. An image holds one bundle, so that
// all but one of them would install something else than they say (R-CAT-50).
func CheckSharedImages(packages []*Drafts) {
	first := map[string]*BundleDraft{}
	for _, g := range packages {
		for _, b := range g.Bundles {
			image := b.Bundle.Image
			other := first[image]
			switch {
			case image == "":
			case other == nil:
				first[image] = b
			case other.Package != b.Package || other.Bundle.Name != b.Bundle.Name:
				// else it is there twice, which is reported
				g.Reportf(b.In("image"), catalog.SeverityWarning, "R-CAT-50",
					"bundle %q names the same image as bundle %q of package %q at %s, but an image holds one bundle; "+
						"give each its own: %s",
					b.Bundle.Name, other.Bundle.Name, other.Package, other.Text(), image)
			}
		}
	}
}

// CheckBundle returns what a catalog would refuse of a bundle that is read by itself.
func CheckBundle(d *BundleDraft) []catalog.Finding {
	var out []catalog.Finding
	add := func(s catalog.Severity, rule, format string, args ...any) {
		out = append(out, d.Finding(s, rule, d.Package, format, args...))
	}
	if !value.Label(d.Package) {
		add(catalog.SeverityError, "R-CAT-20",
			"package name %q must be a DNS-1123 label: at most 63 lower-case letters, digits and '-'", d.Package)
	}
	if _, err := semver.Parse(d.Bundle.Version); err != nil {
		add(catalog.SeverityError, "R-CAT-26",
			"version %q of the CSV is no semantic version (three numbers, no leading v or zeros): %v", d.Bundle.Version,
			err)
	}
	var properties value.Properties
	for _, p := range d.Bundle.Properties {
		for _, issue := range properties.Check(p.Type, p.Value) {
			severity := catalog.SeverityError
			if issue.Warning {
				severity = catalog.SeverityWarning
			}
			add(severity, "R-CAT-25", "property %s: %s", p.Type, issue.Text)
		}
	}
	for _, i := range d.Bundle.RelatedImages {
		if why := CheckImage(i.Image); why != "" {
			add(catalog.SeverityWarning, "R-CAT-28", "image %q %s", i.Image, why)
		}
	}
	if len(d.Joins) == 0 {
		add(catalog.SeverityWarning, "R-CAT-52", "the bundle names no channel; set the annotation %s",
			catalog.AnnotationChannels)
	}
	return out
}
