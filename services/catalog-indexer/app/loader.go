package app

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/index"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// loader reads a catalog from its source, and stores everything but the outcome.
type loader struct {
	store   *store.Store
	workers int // documents decoded in parallel
	count   *metrics
}

// load reads the source and stores everything but the outcome.
func (l *loader) load(ctx context.Context, p *polling, fsys fs.FS) error {
	contents, err := l.store.Contents.Writer(ctx, p.catalog.Tenant)
	if err != nil {
		return err
	}
	c, err := load.Load(fsys, load.Options{
		Workers: l.workers, Keep: contents.Keep, Memory: contents, Stop: ctx.Done(),
		Lenient: p.settings.Mode == source.Lenient,
	})
	if ferr := contents.Flush(); err == nil {
		err = ferr
	}
	if err != nil {
		return fmt.Errorf("load catalog %s: %w", p.catalog.Subject, err)
	}
	l.count.stored(ctx, contents.Stored)
	p.out.Report.Severities = severities(c.Findings)
	if err := c.Err(); err != nil {
		return l.fail(ctx, p, reasonInvalid, "", c.Findings)
	}
	return l.publish(ctx, p, c)
}

func severities(f catalog.Findings) map[catalog.Severity]int {
	n := map[catalog.Severity]int{}
	for _, one := range f {
		n[one.Severity]++
	}
	return n
}

// fail makes the outcome a failure; the revision before stays. Which input failed follows from the source's settings
// and by said, or all that was found where said is "".
func (l *loader) fail(ctx context.Context, p *polling, reason, said string, f catalog.Findings) error {
	out := &p.out
	document, err := l.store.Documents.PutFindings(ctx, out.Catalog, f)
	if err != nil {
		return err
	}
	if said == "" {
		said = string(document)
	}
	of := []string{out.Catalog.Spec, said}
	if out.Catalog.Variant != "" {
		of = append(of, out.Catalog.Variant)
	}
	input, err := digest.JSON("chandler.catalog-input.v1", of)
	if err != nil {
		return err
	}
	out.Document, out.Message = document, f.Err().Error()
	out.Failed = &events.CatalogLoadFailed{
		Reason: reason, Rule: f[0].Rule, Findings: f.Errors(), Document: string(document), Input: string(input),
		Variant: out.Catalog.Variant,
	}
	return nil
}

// publish stores documents and makes the outcome a revision.
func (l *loader) publish(ctx context.Context, p *polling, c *load.Catalog) error {
	out := &p.out
	before, err := l.store.Documents.Revision(ctx, out.Catalog.Tenant, out.Catalog.Revision)
	if err != nil {
		return err
	}
	digests := c.Digests()
	if err := l.hold(ctx, out, c, before, digests); err != nil {
		return err
	}
	revision, err := c.Revision(digests)
	if err != nil {
		return err
	}
	if out.Document, err = l.store.Documents.PutFindings(ctx, out.Catalog, c.Findings); err != nil {
		return err
	}
	out.Message = summary(c)
	out.Published = &store.Published{
		Revision: revision, Packages: digests, Bundles: bundles(c),
		Event: events.CatalogRevisionPublished{
			Revision: string(revision), Previous: string(out.Catalog.Revision), Packages: len(digests),
			Bundles: bundles(c), Variant: out.Catalog.Variant, Resolved: out.Report.Resolved,
			Quarantined: out.Report.Quarantined,
		},
	}
	out.Published.Images = unfetched(c)
	if p.settings.Prefetch {
		if err := l.store.Images.Prefetch(ctx, out.Catalog, out.Published.Images); err != nil {
			return err
		}
	}
	if revision == out.Catalog.Revision {
		return nil
	}
	return l.put(ctx, out, c, before, digests)
}

// hold names the quarantined packages, and keeps those that the revision before had as they were there: as a
// faulty catalog does as a whole, a faulty package stays at its last good state (DESIGN D3). One that never was
// good is left out.
func (l *loader) hold(ctx context.Context, out *store.Outcome, c *load.Catalog, before,
	digests map[string]digest.Digest,
) error {
	for _, q := range c.Quarantined {
		out.Report.Quarantined = append(out.Report.Quarantined, store.Storable(q.Package))
		d, had := before[q.Package]
		if !had {
			continue
		}
		p, err := l.store.Documents.Package(ctx, out.Catalog.Tenant, d)
		if err != nil {
			return err
		}
		c.Packages, digests[q.Package] = append(c.Packages, p), d
	}
	slices.SortFunc(c.Packages, func(a, b catalog.Package) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// put stores what a revision is made of, and what differs from the one that is served.
func (l *loader) put(ctx context.Context, out *store.Outcome, c *load.Catalog, before,
	digests map[string]digest.Digest,
) error {
	if err := l.store.Documents.PutPackages(ctx, out.Catalog.Tenant, c.Packages, digests); err != nil {
		return err
	}
	if err := l.store.Documents.PutBlobs(ctx, out.Catalog.Tenant, c.Blobs); err != nil {
		return err
	}
	for _, b := range c.Blobs {
		out.Published.Blobs = append(out.Published.Blobs,
			store.BlobRef{Package: b.Package, Schema: b.Schema, Name: b.Name, Digest: b.Digest})
	}
	for _, p := range c.Packages {
		if before[p.Name] != digests[p.Name] {
			out.Published.Changed = append(out.Published.Changed, p)
		}
	}
	var err error
	out.Published.Event.Changes, out.Published.Event.All, err = l.changes(
		ctx, out.Catalog.Tenant, before, out.Published.Changed, digests)
	return err
}

// changes compares with the revision that is served.
func (l *loader) changes(ctx context.Context, tenant string, before map[string]digest.Digest, changed []catalog.Package,
	digests map[string]digest.Digest,
) ([]events.PackageChange, bool, error) {
	in := index.Input{
		Before: before, After: digests, Old: map[string]catalog.Package{},
		New: map[string]catalog.Package{},
	}
	for _, p := range changed {
		in.New[p.Name] = p
	}
	for _, name := range index.Touched(before, digests) {
		d, had := before[name]
		if !had {
			continue
		}
		var err error
		if in.Old[name], err = l.store.Documents.Package(ctx, tenant, d); err != nil {
			return nil, false, err
		}
	}
	return index.Changes(in)
}

// unfetched are the bundle images that are the only place of their bundle's manifests.
func unfetched(c *load.Catalog) []store.Image {
	var out []store.Image
	for _, p := range c.Packages {
		out = append(out, imagesOf(p)...)
	}
	return out
}

func bundles(c *load.Catalog) int {
	n := 0
	for _, p := range c.Packages {
		n += len(p.Bundles)
	}
	return n
}

func summary(c *load.Catalog) string {
	s := fmt.Sprintf("%d packages, %d bundles", len(c.Packages), bundles(c))
	if n := severities(c.Findings)[catalog.SeverityWarning]; n > 0 {
		s += fmt.Sprintf(", %d warnings", n)
	}
	if n := len(c.Quarantined); n > 0 {
		s += fmt.Sprintf(", %d packages quarantined because of errors", n)
	}
	return s
}
