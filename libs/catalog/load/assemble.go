package load

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/validate"
	"github.com/chandler-fleet/chandler/libs/digest"
)

// group is what the catalog says of one package, from any file (R-CAT-5).
type group struct {
	validate.Drafts
	dirs   []*validate.BundleDraft
	others []catalog.OtherBlob
	notes  *notes
}

// assemble joins all drafts by package, checks each package, and keeps those without errors.
func assemble(parts []part, o Options) *Catalog {
	c := &Catalog{digests: map[string]digest.Digest{}, lenient: o.Lenient}
	groups := map[string]*group{}
	beside := &notes{}
	of := func(name string) *group {
		g := groups[name]
		if g == nil {
			g = &group{Drafts: validate.Drafts{Name: name, Severity: catalog.SeverityError}, notes: beside}
			groups[name] = g
		}
		return g
	}
	for _, p := range parts {
		c.Findings = append(c.Findings, p.findings...)
		p.file(of)
		if p.notes != nil {
			*beside = *p.notes
		}
	}
	drafts := make([]*validate.Drafts, 0, len(groups))
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		drafts = append(drafts, &groups[name].Drafts)
	}
	validate.CheckSharedImages(drafts)
	c.Blobs = c.looseBlobs(parts, groups)
	for _, g := range buildAll(groups, o.workers()) {
		if g.built {
			c.Packages = append(c.Packages, g.document)
			c.digests[g.document.Name] = g.digest
		}
		c.Findings = append(c.Findings, g.findings...)
	}
	if o.Lenient && c.Findings.Errors() > 0 {
		c.quarantine(parts, groups)
	}
	c.Findings = c.Findings.Report()
	return c
}

// outcome is what became of a group.
type outcome struct {
	document catalog.Package
	digest   digest.Digest
	built    bool
	findings []catalog.Finding
}

// buildAll builds every group; no two have anything in common. The outcomes are in order of name.
func buildAll(groups map[string]*group, workers int) []outcome {
	names := slices.Sorted(maps.Keys(groups))
	out := make([]outcome, len(names))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, len(names)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(names); i = int(next.Add(1)) - 1 {
				g := groups[names[i]]
				out[i].document, out[i].digest, out[i].built = g.build()
				out[i].findings = g.Findings
			}
		})
	}
	wg.Wait()
	return out
}

// file puts the drafts of a part into the groups of their packages.
func (p part) file(of func(string) *group) {
	for _, d := range p.packages {
		g := of(d.Body.Name)
		g.Packages = append(g.Packages, d)
	}
	for _, d := range p.channels {
		g := of(d.Package)
		g.Channels = append(g.Channels, d)
	}
	for _, d := range p.bundles {
		g := of(d.Package)
		if d.Dir != "" {
			g.dirs = append(g.dirs, d)
		} else {
			g.Bundles = append(g.Bundles, d)
		}
	}
	for _, d := range p.deprecations {
		g := of(d.Package)
		g.Deprecations = append(g.Deprecations, d)
	}
}

// looseBlobs gives blobs of unknown schemas to their packages and returns them all; those that name
// no package of the catalog lose the name's meaning, not their content (R-CAT-8).
func (c *Catalog) looseBlobs(parts []part, groups map[string]*group) []Blob {
	var all []Blob
	for _, p := range parts {
		for _, o := range p.others {
			b := o.blob
			if strings.HasPrefix(b.Schema, "olm.") {
				c.Findings = append(c.Findings, o.In("schema").Finding(catalog.SeverityWarning, "R-CAT-7", b.Package,
					"schema %q is kept, but the prefix olm. is reserved and this one is not known; use a prefix that "+
						"you own, such as a domain", b.Schema))
			}
			g := groups[b.Package]
			if b.Package == "" || g == nil {
				b.Package = ""
			} else {
				g.others = append(g.others, catalog.OtherBlob{Schema: b.Schema, Name: b.Name, Digest: b.Digest})
			}
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(a, b Blob) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Schema, b.Schema),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Digest, b.Digest))
	})
	return slices.CompactFunc(all, func(a, b Blob) bool {
		return a.Package == b.Package && a.Schema == b.Schema && a.Name == b.Name && a.Digest == b.Digest
	})
}

// build checks the group and makes the package of it. It returns false where there is none to serve.
func (g *group) build() (catalog.Package, digest.Digest, bool) {
	fbc := len(g.Packages)+len(g.Channels)+len(g.Bundles)+len(g.Deprecations) > 0
	if fbc {
		g.CheckPackage()
		g.adopt()
	} else {
		g.synthesise()
	}
	if len(g.Packages) == 0 || g.Packages[0].Body.Name == "" {
		return catalog.Package{}, "", false
	}
	g.CheckBundles()
	g.CheckChannels()
	g.CheckDeprecations()
	if catalog.Findings(g.Findings).Errors() > 0 {
		return catalog.Package{}, "", false
	}
	p := g.document()
	d, err := p.Digest()
	if err != nil {
		g.Reportf(g.Packages[0].Place, catalog.SeverityError, "R-CAT-25",
			"package %q holds a value that has no canonical form: %v", g.Name, err)
	}
	return p, d, err == nil
}

// document is the package as it is stored and served: everything sorted, so that the order of files
// and documents leaves no trace (R-CAT-5).
func (g *group) document() catalog.Package {
	body := g.Packages[0].Body
	p := catalog.Package{
		Name: body.Name, DefaultChannel: body.DefaultChannel, Description: body.Description,
		Properties: body.Properties, Other: g.others,
	}
	p.Icon = icon(body.Icon)
	for _, c := range g.Channels {
		ch := c.Body
		ch.Entries = slices.Clone(ch.Entries)
		slices.SortFunc(ch.Entries, func(a, b catalog.Entry) int { return cmp.Compare(a.Name, b.Name) })
		p.Channels = append(p.Channels, ch)
	}
	for _, b := range g.Bundles {
		if b.Bundle.Properties == nil {
			b.Bundle.Properties = []catalog.Property{}
		}
		p.Bundles = append(p.Bundles, b.Bundle)
	}
	for _, d := range g.Deprecations {
		p.Deprecations = append(p.Deprecations, d.Entries...)
	}
	slices.SortFunc(p.Channels, func(a, b catalog.Channel) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(p.Bundles, func(a, b catalog.Bundle) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(p.Deprecations, func(a, b catalog.Deprecation) int {
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(p.Other, func(a, b catalog.OtherBlob) int {
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Digest, b.Digest))
	})
	p.Other = slices.Compact(p.Other)
	return p
}

// adopt gives the file-based package what bundle directories of it hold: content for blobs that have
// none, and whole bundles for channel entries that no blob describes.
func (g *group) adopt() {
	dirs := map[string]*validate.BundleDraft{}
	for _, d := range g.dirs {
		if first, twice := dirs[d.Bundle.Name]; twice {
			g.sameBundle(first, d)
			continue
		}
		dirs[d.Bundle.Name] = d
	}
	have := map[string]bool{}
	for _, b := range g.Bundles {
		have[b.Bundle.Name] = true
		if d := dirs[b.Bundle.Name]; d != nil && !b.Embedded {
			b.Bundle.Content, b.Embedded = d.Bundle.Content, true
			if b.Bundle.Metadata == nil {
				b.Bundle.Metadata = d.Bundle.Metadata
			}
		}
	}
	wanted := map[string]bool{}
	for _, c := range g.Channels {
		for _, e := range c.Body.Entries {
			wanted[e.Name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		switch {
		case have[name]:
		case wanted[name]:
			g.Bundles = append(g.Bundles, dirs[name])
		default:
			g.Reportf(dirs[name].Place, catalog.SeverityWarning, "R-CAT-29",
				"bundle directory of %q is left out: it is not found in any channel entries; add it to a channel", name)
		}
	}
}

// sameBundle reports two directories with one CSV name; the one whose path comes first is kept.
func (g *group) sameBundle(first, second *validate.BundleDraft) {
	if first.Bundle.Content == second.Bundle.Content {
		return
	}
	g.Reportf(second.In("name"), catalog.SeverityWarning, "R-CAT-24",
		"bundle %q is left out: %s holds another one of the same name; remove one, or name it anew", second.Bundle.Name,
		first.File)
}

func icon(b *validate.IconDraft) *catalog.Icon {
	if b == nil || b.Data == "" {
		return nil
	}
	data, err := decodeBase64(b.Data)
	if err != nil {
		return nil // R-CAT-41: odd icons are accepted and not shown
	}
	return &catalog.Icon{Data: data, MediaType: b.MediaType}
}

// Digests returns the content address of every package by its name.
func (c *Catalog) Digests() map[string]digest.Digest { return maps.Clone(c.digests) }

// Revision is the identity of what the catalog serves: the digest of its sorted (package, digest)
// pairs. Blobs that belong to no package count as a package without a name.
func (c *Catalog) Revision(packages map[string]digest.Digest) (digest.Digest, error) {
	type pair struct {
		Package string        `json:"package"`
		Digest  digest.Digest `json:"digest"`
	}
	var pairs []pair
	for name, d := range packages {
		pairs = append(pairs, pair{name, d})
	}
	var loose []digest.Digest
	for _, b := range c.Blobs {
		if b.Package == "" {
			loose = append(loose, b.Digest)
		}
	}
	if len(loose) > 0 {
		d, err := digest.JSON("chandler.catalog-blobs.v1", loose)
		if err != nil {
			return "", err
		}
		pairs = append(pairs, pair{"", d})
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Compare(a.Package, b.Package) })
	return digest.JSON("chandler.catalog-revision.v1", pairs)
}
