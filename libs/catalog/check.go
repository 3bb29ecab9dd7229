package catalog

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog/internal/value"
)

// checkPackage holds the rules about the package itself and its channels' names (R-CAT-20..22, 31, 33).
func (g *group) checkPackage() {
	if len(g.packages) == 0 {
		g.orphans()
		return
	}
	p := g.packages[0]
	if !value.Label(g.name) {
		g.addf(p.in("name"), SeverityError, "R-CAT-20", "package name %q must be a DNS-1123 label: at most 63 lower-case letters, digits and '-'", g.name)
	}
	for _, other := range g.packages[1:] {
		g.addf(other.place, SeverityError, "R-CAT-21", "duplicate package %q: the first olm.package stands at %s; keep one", g.name, p.text())
	}
	g.checkOwnProperties(p.place, "package "+strconv.Quote(g.name), p.body.Properties)
	if len(g.channels) == 0 {
		g.addf(p.place, SeverityError, "R-CAT-33", "package %q has no channel; add an olm.channel with package: %s", g.name, g.name)
		return
	}
	g.checkDefaultChannel(g.checkChannelNames())
}

// checkChannelNames holds R-CAT-22 and returns the channels by their names.
func (g *group) checkChannelNames() map[string]*channelDraft {
	names := map[string]*channelDraft{}
	for _, c := range g.channels {
		switch first := names[c.body.Name]; {
		case len(c.body.Name) > MaxNameBytes:
			g.addf(c.in("name"), SeverityError, "R-CAT-22", "a channel name of package %q has more than %d characters; shorten it", g.name, MaxNameBytes)
		case c.body.Name == "":
			g.addf(c.place, SeverityError, "R-CAT-22", "a channel of package %q has no name; give it one", g.name)
		case first != nil:
			g.addf(c.in("name"), SeverityError, "R-CAT-22", "duplicate channel %q: the first stands at %s; keep one", c.body.Name, first.text())
		default:
			names[c.body.Name] = c
		}
		g.checkOwnProperties(c.place, "channel "+strconv.Quote(c.body.Name), c.body.Properties)
	}
	return names
}

// checkDefaultChannel holds R-CAT-31.
func (g *group) checkDefaultChannel(names map[string]*channelDraft) {
	p := g.packages[0]
	at := p.in("defaultChannel")
	switch d := p.body.DefaultChannel; {
	case d == "":
		g.addf(at, SeverityError, "R-CAT-31", "package %q has no defaultChannel; name one of: %s", g.name, strings.Join(sortedKeys(names), ", "))
	case names[d] == nil:
		g.addf(at, SeverityError, "R-CAT-31", "default channel %q of package %q is no channel of it; name one of: %s", d, g.name, strings.Join(sortedKeys(names), ", "))
	}
}

// checkOwnProperties holds the form of the properties of a package or a channel (§1.2, R-CAT-25).
func (g *group) checkOwnProperties(at place, whose string, properties []Property) {
	for i, p := range properties {
		if p.Type == "" || len(p.Value) == 0 || string(p.Value) == "null" {
			g.addf(at.in("properties", "#"+strconv.Itoa(i)), SeverityError, "R-CAT-25", "property %d of %s needs a type that is a non-empty string, and a value that is not null", i+1, whose)
		}
	}
}

// orphans tells of blobs whose package has no olm.package.
func (g *group) orphans() {
	const mend = "add its olm.package, or correct the name"
	if g.name == "" {
		g.homeless()
		return
	}
	for _, c := range g.channels {
		g.addf(c.in("package"), SeverityError, "R-CAT-22", "channel %q names the unknown package %q; %s", c.body.Name, g.name, mend)
	}
	for _, b := range g.bundles {
		g.addf(b.in("package"), SeverityError, "R-CAT-24", "bundle %q names the unknown package %q; %s", b.bundle.Name, g.name, mend)
	}
	for _, d := range g.deprecations {
		g.addf(d.in("package"), SeverityError, "R-CAT-32", "olm.deprecations names the unknown package %q; %s", g.name, mend)
	}
}

// homeless tells of blobs that name no package at all.
func (g *group) homeless() {
	const mend = "add the key package with the name of its olm.package"
	for _, c := range g.channels {
		g.addf(c.place, SeverityError, "R-CAT-22", "channel %q names no package; %s", c.body.Name, mend)
	}
	for _, b := range g.bundles {
		g.addf(b.place, SeverityError, "R-CAT-24", "bundle %q names no package; %s", b.bundle.Name, mend)
	}
	for _, d := range g.deprecations {
		g.addf(d.place, SeverityError, "R-CAT-32", "olm.deprecations names no package; %s", mend)
	}
}

func (p place) text() string {
	return Finding{File: p.file, Line: p.line}.Place()
}

// operatorVersion is the form of bundle names (R-CAT-42).
var operatorVersion = regexp.MustCompile(`^.+\.v\d`)

// checkBundles holds the rules about single bundles and their names and versions (R-CAT-24..29, 34, 39, 40, 42).
func (g *group) checkBundles() {
	names := map[string]*bundleDraft{}
	versions := map[string]*bundleDraft{}
	entries := g.entryNames()
	for _, b := range g.bundles {
		name := b.bundle.Name
		at := b.of("name", "name")
		if name == "" {
			g.addf(b.place, SeverityError, "R-CAT-24", "a bundle of package %q has no name; give it one, such as %s.v1.0.0", g.name, g.name)
			continue
		}
		if len(name) > MaxNameBytes {
			g.addf(at, SeverityError, "R-CAT-24", "a bundle name of package %q has more than %d characters; shorten it", g.name, MaxNameBytes)
		}
		if first := names[name]; first != nil {
			g.addf(at, SeverityError, "R-CAT-24", "duplicate bundle %q: the first stands at %s; keep one", name, first.text())
			continue
		}
		names[name] = b
		if !entries[name] {
			g.addf(at, SeverityError, "R-CAT-29", "bundle %q not found in any channel entries; add it to a channel or remove it", name)
		}
		g.checkProperties(b)
		g.checkIdentity(b, versions)
		g.checkImages(b)
		if b.bundle.Release == "" && !operatorVersion.MatchString(name) { // a release has a form of its own: R-CAT-40
			g.addf(at, SeverityWarning, "R-CAT-42", "bundle name %q should have the form <operator>.v<version>; name the next version so", name)
		}
	}
}

// of is the place of a value of the bundle: a path in its document, or a key of the CSV in its directory.
func (d *bundleDraft) of(key string, path ...string) place {
	if d.dir != "" {
		return d.in(key)
	}
	return d.in(path...)
}

func (g *group) entryNames() map[string]bool {
	out := map[string]bool{}
	for _, c := range g.channels {
		for _, e := range c.body.Entries {
			out[e.Name] = true
		}
	}
	return out
}

// checkProperties holds R-CAT-25: known property types have their form.
func (g *group) checkProperties(b *bundleDraft) {
	nth := map[string]int{}
	for _, p := range b.bundle.Properties {
		at := b.of(p.Type, "properties", p.Type+"#"+strconv.Itoa(nth[p.Type]), "value")
		nth[p.Type]++
		if why := value.Name(p.Type, MaxBlobNameBytes); why != "" {
			g.addf(b.of("name", "name"), SeverityError, "R-CAT-25", "the type %.40q of a property of bundle %q %s", p.Type, b.bundle.Name, why)
		}
		for _, issue := range g.properties.Check(p.Type, p.Value) {
			s := SeverityError
			if issue.Warning {
				s = SeverityWarning
			}
			g.addf(at, s, "R-CAT-25", "property %s of bundle %q: %s", p.Type, b.bundle.Name, issue.Text)
		}
	}
}

// checkIdentity holds R-CAT-26, 27, 34 and 40, and takes version and release from olm.package.
func (g *group) checkIdentity(b *bundleDraft, versions map[string]*bundleDraft) {
	name := b.bundle.Name
	ids, err := propertyValues[PackageProperty](b.bundle, TypePackage)
	if err != nil {
		return // R-CAT-25 has told
	}
	if len(ids) != 1 {
		g.addf(b.of("name", "properties", fmt.Sprintf("%s#%d", TypePackage, min(len(ids), 1))), SeverityError, "R-CAT-26", "bundle %q must have exactly one olm.package property, it has %d; give it one with its package and version", name, len(ids))
		return
	}
	id := ids[0]
	if id.PackageName != g.name {
		g.addf(b.identity("packageName"), SeverityError, "R-CAT-26", "olm.package of bundle %q names package %q, but the bundle belongs to %q; let both name the same", name, id.PackageName, g.name)
	}
	v, err := semver.Parse(id.Version)
	if err != nil {
		g.addf(b.identity("version"), SeverityError, "R-CAT-26", "version %q of bundle %q is no semantic version (three numbers, no leading v or zeros): %v", id.Version, name, err)
		return
	}
	b.bundle.Version, b.bundle.Release = id.Version, id.Release
	g.checkRelease(b, v)
	key := id.Version + " " + id.Release
	if first := versions[key]; first != nil {
		g.addf(b.identity("version"), g.severity, "R-CAT-34", "duplicate versions found in bundles: %q and %q both have version %s; give one another version", first.bundle.Name, name, strings.TrimSpace(key))
		return
	}
	versions[key] = b
}

// identity is the place of a field of the bundle's olm.package.
func (d *bundleDraft) identity(field string) place {
	return d.of(field, "properties", TypePackage+"#0", "value", field)
}

// checkRelease holds R-CAT-27 and R-CAT-40.
func (g *group) checkRelease(b *bundleDraft, v semver.Version) {
	r := b.bundle.Release
	if r == "" {
		return
	}
	if why := value.Release(r); why != "" {
		g.addf(b.identity("release"), g.severity, "R-CAT-27", "release %q of bundle %q %s", r, b.bundle.Name, why)
	}
	if want := fmt.Sprintf("%s-v%s-%s", g.name, b.bundle.Version, r); b.bundle.Name != want {
		g.addf(b.of("name", "name"), g.severity, "R-CAT-40", "bundle %q has a release and must be named %q", b.bundle.Name, want)
	}
	if len(v.Build) > 0 {
		g.addf(b.identity("version"), g.severity, "R-CAT-40", "bundle %q has a release, so its version %s must have no build metadata; drop what follows the +", b.bundle.Name, b.bundle.Version)
	}
}

// checkImages holds R-CAT-28 and R-CAT-39.
func (g *group) checkImages(b *bundleDraft) {
	if b.bundle.Image == "" && !b.embedded {
		g.addf(b.place, SeverityError, "R-CAT-39", "bundle %q has neither an image nor manifests; give the image, olm.bundle.object properties or a bundle directory", b.bundle.Name)
	}
	if why := pullSpec(b.bundle.Image); why != "" {
		g.addf(b.in("image"), SeverityError, "R-CAT-28", "image %q of bundle %q %s", b.bundle.Image, b.bundle.Name, why)
	}
	for i, r := range b.bundle.RelatedImages {
		if why := pullSpec(r.Image); why != "" {
			at := b.of("relatedImages", "relatedImages", "#"+strconv.Itoa(i), "image")
			g.addf(at, g.severity, "R-CAT-28", "related image %q of bundle %q %s", r.Image, b.bundle.Name, why)
		}
	}
}

// CheckImage returns why a catalog would refuse an image as no pull specification, "" where it would not
// (R-CAT-28). None is none.
func CheckImage(image string) string { return pullSpec(image) }

// pullSpec returns why an image is no pull specification; none is none.
func pullSpec(image string) string {
	if image == "" {
		return ""
	}
	return value.Reference(image)
}

// sharedImages tells of bundles of the catalog that name the same image. An image holds one bundle, so that
// all but one of them would install something else than they say (R-CAT-50).
func sharedImages(groups map[string]*group) {
	first := map[string]*bundleDraft{}
	for _, name := range sortedKeys(groups) {
		g := groups[name]
		for _, b := range g.bundles {
			image := b.bundle.Image
			other := first[image]
			switch {
			case image == "":
			case other == nil:
				first[image] = b
			case other.pkg != b.pkg || other.bundle.Name != b.bundle.Name: // else it is there twice, which is told
				g.addf(b.in("image"), SeverityWarning, "R-CAT-50", "bundle %q names the same image as bundle %q of package %q at %s, but an image holds one bundle; give each its own: %s",
					b.bundle.Name, other.bundle.Name, other.pkg, other.text(), image)
			}
		}
	}
}
