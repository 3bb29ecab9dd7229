package app

import (
	"context"
	"fmt"
	"time"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/index"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/source"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// Reasons of catalog.load-failed.v1.
const (
	reasonUnreadable = "SourceUnreadable"
	reasonInvalid    = "InvalidCatalog"
)

// finishTries is how often an outcome is recorded again when intents of the same catalog come in
// between; past it the lane's back-off takes over.
const finishTries = 5

// restlessAttempts is after how many looks in vain, a minute in sum, a directory that is written to all
// the time is taken as it is.
const restlessAttempts = 7

// look looks at one catalog's source and records the outcome. It may be run again at any time.
func (a *App) look(ctx context.Context, s bus.Scope) (err error) {
	c, err := a.store.Get(ctx, s.Tenant, s.Cluster)
	if errs.Is(err, errs.NotFound) || err == nil && c.Removed {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, end := telemetry.Span(telemetry.WithTraceParent(ctx, s.TraceParent), "index catalog")
	defer func() { end(err) }()
	began := a.now()
	out := store.Look{Catalog: c, Wanted: c.Wanted, Meta: events.Meta{
		Tenant: c.Tenant, Source: events.Indexer, Correlation: s.Cause, Causation: s.Cause,
		TraceParent: telemetry.TraceParent(ctx), Time: began,
	}}
	src, fingerprint, err := a.open(ctx, c)
	if err != nil {
		return a.refuse(ctx, out, err)
	}
	defer func() { err = closed(err, src) }()
	if fingerprint == c.Fingerprint && c.Looked >= c.Wanted {
		return nil
	}
	out.Fingerprint = fingerprint
	if err := a.load(ctx, src, &out); err != nil {
		return err
	}
	if err := a.settled(ctx, src, out, s.Attempts); err != nil {
		return err
	}
	if err := a.finish(ctx, out); err != nil {
		return err
	}
	a.tell(ctx, out, a.now().Sub(began))
	return nil
}

// settled refuses what was read while somebody wrote to the directory: half of a new revision is
// neither the old nor the new one. A directory that never rests is taken as it is after a few attempts.
func (a *App) settled(ctx context.Context, src *source.Source, out store.Look, attempts int) error {
	if attempts >= restlessAttempts {
		return nil
	}
	now, err := src.Fingerprint(ctx)
	if err != nil {
		return err
	}
	if now != out.Fingerprint {
		return errs.New(errs.Unavailable, "the files of catalog %s changed while they were read; looking again", out.Catalog.Subject)
	}
	return nil
}

func closed(err error, src *source.Source) error {
	if cerr := src.Close(); err == nil {
		return cerr
	}
	return err
}

// open opens the source. Errors of kind Unavailable and Internal are the indexer's own; any other is
// something about the source that its owner has to mend.
func (a *App) open(ctx context.Context, c store.Catalog) (*source.Source, string, error) {
	settings, err := a.store.Settings(ctx, c)
	if err != nil {
		return nil, "", err
	}
	src, err := a.opener.Open(c.SourceType, settings)
	if err != nil {
		return nil, "", err
	}
	fingerprint, err := src.Fingerprint(ctx)
	if err != nil {
		return nil, "", closed(err, src)
	}
	return src, fingerprint, nil
}

// fingerprint is what open says of the source now: of its files, or of why it cannot be read.
func (a *App) fingerprint(ctx context.Context, c store.Catalog) (string, error) {
	src, fingerprint, err := a.open(ctx, c)
	switch {
	case err == nil:
		return fingerprint, src.Close()
	case own(err):
		return "", err
	default:
		return unreadable(err), nil
	}
}

func own(err error) bool { return errs.Is(err, errs.Unavailable) || errs.Is(err, errs.Internal) }

func unreadable(err error) string { return string(digest.Bytes([]byte("unreadable: " + err.Error()))) }

// refuse records that the source cannot be read at all.
func (a *App) refuse(ctx context.Context, out store.Look, cause error) error {
	if own(cause) {
		return cause
	}
	out.Fingerprint = unreadable(cause)
	if out.Fingerprint == out.Catalog.Fingerprint && out.Catalog.Looked >= out.Catalog.Wanted {
		return nil
	}
	f := catalog.Findings{{Rule: "R-CAT-43", Severity: catalog.SeverityError, Message: cause.Error()}}
	if err := a.fail(ctx, &out, reasonUnreadable, f); err != nil {
		return err
	}
	if err := a.finish(ctx, out); err != nil {
		return err
	}
	a.tell(ctx, out, 0)
	return nil
}

// load reads the source and stores everything but the outcome.
func (a *App) load(ctx context.Context, src *source.Source, out *store.Look) error {
	contents, err := a.store.Contents(ctx, out.Catalog.Tenant)
	if err != nil {
		return err
	}
	c, err := catalog.Load(src.FS(), catalog.Options{Workers: a.cfg.Workers, Keep: contents.Keep, Memory: contents, Stop: ctx.Done()})
	if ferr := contents.Flush(); err == nil {
		err = ferr
	}
	if err != nil {
		return fmt.Errorf("load catalog %s: %w", out.Catalog.Subject, err)
	}
	a.count.stored(ctx, contents.Stored)
	if c.Findings.Errors() > 0 {
		return a.fail(ctx, out, reasonInvalid, c.Findings)
	}
	return a.publish(ctx, out, c)
}

// fail makes the outcome a failure; the revision before stays.
func (a *App) fail(ctx context.Context, out *store.Look, reason string, f catalog.Findings) error {
	document, err := a.store.PutFindings(ctx, out.Catalog, f)
	if err != nil {
		return err
	}
	// What was looked at is told by the source's settings and all that was found in it.
	input, err := digest.JSON("chandler.catalog-input.v1", []string{out.Catalog.Spec, string(document)})
	if err != nil {
		return err
	}
	out.Document, out.Message = document, f.Err().Error()
	out.Failed = &events.CatalogLoadFailed{Reason: reason, Rule: f[0].Rule, Findings: f.Errors(), Document: string(document), Input: string(input)}
	return nil
}

// publish stores documents and makes the outcome a revision.
func (a *App) publish(ctx context.Context, out *store.Look, c *catalog.Catalog) error {
	tenant := out.Catalog.Tenant
	digests := c.Digests()
	revision, err := c.Revision(digests)
	if err != nil {
		return err
	}
	if out.Document, err = a.store.PutFindings(ctx, out.Catalog, c.Findings); err != nil {
		return err
	}
	out.Message = summary(c)
	out.Published = &store.Published{Revision: revision, Packages: digests, Bundles: bundles(c)}
	if revision == out.Catalog.Revision {
		return nil
	}
	if err := a.store.PutPackages(ctx, tenant, c.Packages, digests); err != nil {
		return err
	}
	if err := a.store.PutBlobs(ctx, tenant, c.Blobs); err != nil {
		return err
	}
	for _, b := range c.Blobs {
		out.Published.Blobs = append(out.Published.Blobs, store.BlobRef{Package: b.Package, Schema: b.Schema, Name: b.Name, Digest: b.Digest})
	}
	changes, err := a.changes(ctx, out.Catalog, c, digests)
	if err != nil {
		return err
	}
	out.Published.Event = events.CatalogRevisionPublished{
		Revision: string(revision), Previous: string(out.Catalog.Revision),
		Packages: len(digests), Bundles: out.Published.Bundles, Changes: changes,
	}
	return nil
}

// changes compares with the revision that is served.
func (a *App) changes(ctx context.Context, was store.Catalog, c *catalog.Catalog, digests map[string]digest.Digest) ([]events.PackageChange, error) {
	before, err := a.store.Revision(ctx, was.Tenant, was.Revision)
	if err != nil {
		return nil, err
	}
	in := index.Input{Before: before, After: digests, Old: map[string]catalog.Package{}, New: map[string]catalog.Package{}}
	for _, p := range c.Packages {
		in.New[p.Name] = p
	}
	for _, name := range index.Touched(before, digests) {
		d, had := before[name]
		if !had {
			continue
		}
		if in.Old[name], err = a.store.Package(ctx, was.Tenant, d); err != nil {
			return nil, err
		}
	}
	return index.Changes(in)
}

// finish records the outcome, trying again where an intent of the same catalog came first.
func (a *App) finish(ctx context.Context, out store.Look) error {
	for try := 1; ; try++ {
		written, err := a.store.Finish(ctx, out)
		switch {
		case err == nil && written:
			return nil
		case err == nil:
			return errs.New(errs.Conflict, "catalog %s changed while it was looked at; looking again", out.Catalog.Subject)
		case !errs.Is(err, errs.Conflict) || try == finishTries:
			return err
		}
	}
}

func (a *App) tell(ctx context.Context, out store.Look, took time.Duration) {
	log := a.tel.Log.With("catalog", out.Catalog.Subject, "took", took.Round(time.Millisecond).String())
	switch {
	case out.Failed != nil:
		a.count.looked(ctx, "failed", took)
		log.WarnContext(ctx, "catalog cannot be served; the revision before stays", "reason", out.Failed.Reason, "errors", out.Failed.Findings, "first", out.Message)
	case out.Published.Revision != out.Catalog.Revision:
		a.count.looked(ctx, "published", took)
		log.InfoContext(ctx, "new catalog revision", "revision", out.Published.Revision.Short(), "packages", len(out.Published.Packages),
			"bundles", out.Published.Bundles, "changed", len(out.Published.Event.Changes))
	default:
		a.count.looked(ctx, "unchanged", took)
		log.DebugContext(ctx, "catalog is as it was", "revision", out.Published.Revision.Short())
	}
}

func bundles(c *catalog.Catalog) int {
	n := 0
	for _, p := range c.Packages {
		n += len(p.Bundles)
	}
	return n
}

func summary(c *catalog.Catalog) string {
	s := fmt.Sprintf("%d packages, %d bundles", len(c.Packages), bundles(c))
	warnings := 0
	for _, f := range c.Findings {
		if f.Severity == catalog.SeverityWarning {
			warnings++
		}
	}
	if warnings > 0 {
		s += fmt.Sprintf(", %d warnings", warnings)
	}
	return s
}
