package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// checkPackage holds the rules about the package itself and its channels' names (R-CAT-20..22, 31, 33).
func (g *group) checkPackage() {
	if len(g.packages) == 0 {
		g.orphans()
		return
	}
	p := g.packages[0]
	if g.name == "" || !dnsLabel.MatchString(g.name) {
		g.addf(p.place, SeverityError, "R-CAT-20", "package name %q must be a DNS-1123 label: at most 63 lower-case letters, digits and '-'", g.name)
	}
	for _, other := range g.packages[1:] {
		g.addf(other.place, SeverityError, "R-CAT-21", "duplicate package %q: the first olm.package stands at %s; keep one", g.name, p.text())
	}
	if len(g.channels) == 0 {
		g.addf(p.place, SeverityError, "R-CAT-33", "package %q has no channel; add an olm.channel with package: %s", g.name, g.name)
		return
	}
	names := map[string]*channelDraft{}
	for _, c := range g.channels {
		switch first := names[c.body.Name]; {
		case len(c.body.Name) > maxDNSName:
			g.addf(c.place, SeverityError, "R-CAT-22", "a channel name of package %q has more than %d characters", g.name, maxDNSName)
		case c.body.Name == "":
			g.addf(c.place, SeverityError, "R-CAT-22", "a channel of package %q has no name", g.name)
		case first != nil:
			g.addf(c.place, SeverityError, "R-CAT-22", "duplicate channel %q: the first stands at %s; keep one", c.body.Name, first.text())
		default:
			names[c.body.Name] = c
		}
	}
	switch d := p.body.DefaultChannel; {
	case d == "":
		g.addf(p.place, SeverityError, "R-CAT-31", "package %q has no defaultChannel; name one of: %s", g.name, strings.Join(sortedKeys(names), ", "))
	case names[d] == nil:
		g.addf(p.place, SeverityError, "R-CAT-31", "default channel %q of package %q is no channel of it; there are: %s", d, g.name, strings.Join(sortedKeys(names), ", "))
	}
}

// orphans tells of blobs whose package has no olm.package.
func (g *group) orphans() {
	const mend = "add its olm.package, or correct the name"
	for _, c := range g.channels {
		g.addf(c.place, SeverityError, "R-CAT-22", "channel %q names the unknown package %q; %s", c.body.Name, g.name, mend)
	}
	for _, b := range g.bundles {
		g.addf(b.place, SeverityError, "R-CAT-24", "bundle %q names the unknown package %q; %s", b.bundle.Name, g.name, mend)
	}
	for _, d := range g.deprecations {
		g.addf(d.place, SeverityError, "R-CAT-32", "olm.deprecations names the unknown package %q; %s", g.name, mend)
	}
}

func (p place) text() string {
	return Finding{File: p.file, Line: p.line}.Place()
}

// checkBundles holds the rules about single bundles and their names and versions (R-CAT-24..29, 34, 39, 40, 42).
func (g *group) checkBundles() {
	names := map[string]*bundleDraft{}
	versions := map[string]*bundleDraft{}
	entries := g.entryNames()
	for _, b := range g.bundles {
		name := b.bundle.Name
		if name == "" {
			g.addf(b.place, SeverityError, "R-CAT-24", "a bundle of package %q has no name", g.name)
			continue
		}
		if len(name) > maxDNSName {
			g.addf(b.place, SeverityError, "R-CAT-24", "a bundle name of package %q has more than %d characters", g.name, maxDNSName)
		}
		if first := names[name]; first != nil {
			g.addf(b.place, SeverityError, "R-CAT-24", "duplicate bundle %q: the first stands at %s; keep one", name, first.text())
			continue
		}
		names[name] = b
		if !entries[name] {
			g.addf(b.place, SeverityError, "R-CAT-29", "bundle %q not found in any channel entries; add it to a channel or remove it", name)
		}
		if !strings.Contains(name, ".v") {
			g.addf(b.place, SeverityWarning, "R-CAT-42", "bundle name %q should have the form <operator>.v<version>", name)
		}
		g.checkProperties(b)
		g.checkIdentity(b, versions)
		g.checkImages(b)
	}
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
	for _, p := range b.bundle.Properties {
		if why := checkProperty(p); why != "" {
			g.addf(b.place, SeverityError, "R-CAT-25", "property %s of bundle %q: %s", p.Type, b.bundle.Name, why)
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
		g.addf(b.place, SeverityError, "R-CAT-26", "bundle %q must have exactly one olm.package property, it has %d", name, len(ids))
		return
	}
	id := ids[0]
	if id.PackageName != g.name {
		g.addf(b.place, SeverityError, "R-CAT-26", "olm.package of bundle %q names package %q, but the bundle belongs to %q", name, id.PackageName, g.name)
	}
	v, err := semver.Parse(id.Version)
	if err != nil {
		g.addf(b.place, SeverityError, "R-CAT-26", "version %q of bundle %q is no semantic version (three numbers, no leading v or zeros): %v", id.Version, name, err)
		return
	}
	b.bundle.Version, b.bundle.Release = id.Version, id.Release
	g.checkRelease(b, v)
	key := id.Version + " " + id.Release
	if first := versions[key]; first != nil {
		g.addf(b.place, g.severity, "R-CAT-34", "duplicate versions found in bundles: %q and %q both have version %s", first.bundle.Name, name, strings.TrimSpace(key))
		return
	}
	versions[key] = b
}

func (g *group) checkRelease(b *bundleDraft, v semver.Version) {
	r := b.bundle.Release
	if r == "" {
		return
	}
	if why := checkRelease(r); why != "" {
		g.addf(b.place, g.severity, "R-CAT-27", "release %q of bundle %q %s", r, b.bundle.Name, why)
	}
	if want := fmt.Sprintf("%s-v%s-%s", g.name, b.bundle.Version, r); b.bundle.Name != want {
		g.addf(b.place, g.severity, "R-CAT-40", "bundle %q has a release and must be named %q", b.bundle.Name, want)
	}
	if len(v.Build) > 0 {
		g.addf(b.place, g.severity, "R-CAT-40", "bundle %q has a release, so its version %s must have no build metadata", b.bundle.Name, b.bundle.Version)
	}
}

// checkImages holds R-CAT-28 and R-CAT-39.
func (g *group) checkImages(b *bundleDraft) {
	if b.bundle.Image == "" && !b.embedded {
		g.addf(b.place, SeverityError, "R-CAT-39", "bundle %q has neither an image nor manifests; give the image, olm.bundle.object properties or a bundle directory", b.bundle.Name)
	}
	if b.bundle.Image != "" && !reference.MatchString(b.bundle.Image) {
		g.addf(b.place, SeverityError, "R-CAT-28", "image %q of bundle %q is no pull specification", b.bundle.Image, b.bundle.Name)
	}
	for _, r := range b.bundle.RelatedImages {
		if r.Image != "" && !reference.MatchString(r.Image) {
			g.addf(b.place, g.severity, "R-CAT-28", "related image %q of bundle %q is no pull specification", r.Image, b.bundle.Name)
		}
	}
}

// checkChannels holds the rules about entries and the graph (R-CAT-23, 30, 33, 35..38).
func (g *group) checkChannels() {
	have := map[string]bool{}
	for _, b := range g.bundles {
		have[b.bundle.Name] = true
	}
	for _, c := range g.channels {
		if len(c.body.Entries) == 0 {
			g.addf(c.place, SeverityError, "R-CAT-33", "channel %q has no entries; add a bundle or remove the channel", c.body.Name)
			continue
		}
		var absent []string
		seen := map[string]bool{}
		whole := true
		for i, e := range c.body.Entries {
			switch {
			case e.Name == "":
				whole = false
				g.addf(c.entries[i], SeverityError, "R-CAT-23", "an entry of channel %q has no name", c.body.Name)
			case seen[e.Name]:
				whole = false
				g.addf(c.entries[i], SeverityError, "R-CAT-23", "entry %q occurs twice in channel %q; keep one", e.Name, c.body.Name)
			case !have[e.Name]:
				absent = append(absent, e.Name)
			}
			seen[e.Name] = true
			g.checkEdges(c, i)
		}
		if len(absent) > 0 {
			g.addf(c.place, SeverityError, "R-CAT-30", "no olm.bundle blobs found in package %q for olm.channel entries of %q: %s; add the bundles, or name them in replaces and skips only", g.name, c.body.Name, quoted(absent))
		}
		if whole {
			g.checkGraph(c)
		}
	}
}

// checkEdges holds R-CAT-38.
func (g *group) checkEdges(c *channelDraft, i int) {
	e := c.body.Entries[i]
	if slices.Contains(e.Skips, "") {
		g.addf(c.entries[i], g.severity, "R-CAT-38", "entry %q of channel %q skips an empty name", e.Name, c.body.Name)
	}
	if e.SkipRange == "" {
		return
	}
	if _, err := ParseRange(e.SkipRange); err != nil {
		g.addf(c.entries[i], g.severity, "R-CAT-38", "skipRange of entry %q in channel %q: %v", e.Name, c.body.Name, err)
	}
}

// checkGraph holds R-CAT-35..37: one head from which "replaces" reaches all that is not skipped.
func (g *group) checkGraph(c *channelDraft) {
	heads := Heads(c.body)
	switch {
	case len(heads) == 0:
		g.addf(c.place, g.severity, "R-CAT-35", "no channel head found in graph of channel %q: every entry is replaced or skipped by another", c.body.Name)
		return
	case len(heads) > 1:
		g.addf(c.place, g.severity, "R-CAT-35", "multiple channel heads found in graph of channel %q: %s; let the newest replace or skip the others", c.body.Name, strings.Join(heads, ", "))
		return
	}
	entries, skips := map[string]Entry{}, map[string]bool{}
	for _, e := range c.body.Entries {
		entries[e.Name] = e
		for _, s := range e.Skips {
			skips[s] = true
		}
	}
	reached := map[string]bool{}
	for name := heads[0]; ; {
		e, ok := entries[name]
		if !ok {
			break
		}
		if reached[name] {
			g.addf(c.place, g.severity, "R-CAT-37", "detected cycle in replaces chain of channel %q at entry %q", c.body.Name, name)
			return
		}
		reached[name] = true
		name = e.Replaces
	}
	var stranded []string
	for name := range entries {
		if !reached[name] && !skips[name] {
			stranded = append(stranded, name)
		}
	}
	if len(stranded) > 0 {
		g.addf(c.place, g.severity, "R-CAT-36", "channel %q contains one or more stranded bundles: %s; no replaces chain from its head %q leads to them", c.body.Name, quoted(stranded), heads[0])
	}
}

// checkDeprecations holds R-CAT-32 and R-CAT-13.
func (g *group) checkDeprecations() {
	channels, bundles := map[string]bool{}, map[string]bool{}
	for _, c := range g.channels {
		channels[c.body.Name] = true
	}
	for _, b := range g.bundles {
		bundles[b.bundle.Name] = true
	}
	for n, d := range g.deprecations {
		if n > 0 {
			g.addf(d.place, SeverityError, "R-CAT-32", "package %q has more than one olm.deprecations; the first stands at %s; join them", g.name, g.deprecations[0].text())
			continue
		}
		seen := map[string]bool{}
		for i, e := range d.entries {
			if why := e.check(channels, bundles); why != "" {
				g.addf(d.at[i], SeverityError, "R-CAT-32", "deprecation of %s %q: %s", e.Schema, e.Name, why)
			}
			key := e.Schema + " " + e.Name
			if seen[key] {
				g.addf(d.at[i], SeverityError, "R-CAT-32", "deprecation of %s %q occurs twice; join the messages", e.Schema, e.Name)
			}
			seen[key] = true
		}
	}
}

// check returns why a deprecation breaks R-CAT-32, "" where it does not.
func (d Deprecation) check(channels, bundles map[string]bool) string {
	switch d.Schema {
	case SchemaPackage:
		if d.Name != "" {
			return "a reference to olm.package must have no name: it means its own package"
		}
	case SchemaChannel:
		if !channels[d.Name] {
			return "no such channel"
		}
	case SchemaBundle:
		if !bundles[d.Name] {
			return "no such bundle"
		}
	default:
		return "the reference's schema must be olm.package, olm.channel or olm.bundle"
	}
	if d.Message == "" {
		return "the message is empty"
	}
	return ""
}
