package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/oci"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// Bounds of fetching bundle images.
const (
	// fetchers is how many catalogs fetch side by side.
	fetchers = 2
	// fetchParallel is how many images of one catalog are fetched side by side: mostly waiting for the network, and
	// a registry sees no more than a cluster's nodes would ask of it.
	fetchParallel = 4
	// fetchBatch is how many images one event has: few, so that who waits for one hears of it soon.
	fetchBatch = 16
	// retryFirst and retryMax bound the pause before an image is asked for again; it doubles.
	retryFirst = 2 * time.Second
	retryMax   = 10 * time.Minute
)

// Reasons of catalog.bundles-fetched.v1.
const (
	fetchUnreachable  = "Unreachable"
	fetchUnauthorized = "Unauthorized"
	fetchNotFound     = "NotFound"
	fetchMismatch     = "DigestMismatch"
	fetchUnsigned     = "Unsigned"
	fetchInvalid      = store.FetchInvalid
	fetchTooLarge     = store.FetchTooLarge
)

// fetcher fetches bundle images.
type fetcher struct {
	store *store.Store
	open  func(tenant string) sources
	// fetched is called after content was stored.
	fetched func()
	count   *metrics
	log     *slog.Logger
	now     func() time.Time
}

// fetch fetches the bundle images of one catalog that are due, those that somebody waits for first.
func (f *fetcher) fetch(ctx context.Context, s bus.Scope) (err error) {
	c, err := f.store.Catalogs.Get(ctx, keyOf(s))
	if errs.Is(err, errs.NotFound) || err == nil && (c.Removed || c.Disabled) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, end := telemetry.Span(ctx, "fetch bundle images")
	defer func() { end(err) }()
	settings, err := f.store.Catalogs.Settings(ctx, c)
	if err != nil {
		return err
	}
	began, err := f.store.Images.Now(ctx)
	if err != nil {
		return err
	}
	for {
		// none where the catalog was removed or disabled meanwhile
		list, err := f.store.Images.Unfetched(ctx, c, began, fetchBatch)
		if err != nil || len(list) == 0 {
			return err
		}
		if err := f.fetchBatch(ctx, c, settings, list); err != nil {
			return err
		}
	}
}

// fetchBatch fetches images side by side, stores their content, and then records all at once. An end in
// between costs another fetch.
func (f *fetcher) fetchBatch(ctx context.Context, c store.Catalog, settings source.Settings, list []store.Image) error {
	contents, err := f.store.Contents.Writer(ctx, c.Tenant)
	if err != nil {
		return err
	}
	out := make([]store.Fetched, len(list))
	failures := make([]error, len(list))
	slots := make(chan struct{}, fetchParallel)
	var wg sync.WaitGroup
	for i, image := range list {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			out[i], failures[i] = f.fetchOne(ctx, c, settings, image, contents)
		})
	}
	wg.Wait()
	if err := contents.Flush(); err != nil {
		return err
	}
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	f.count.stored(ctx, contents.Stored)
	return f.record(ctx, c, out)
}

func (f *fetcher) record(ctx context.Context, c store.Catalog, list []store.Fetched) error {
	for _, one := range list {
		if one.Content == "" && one.Reason != one.Image.Reason {
			f.log.WarnContext(ctx, "a bundle image cannot be had; trying again", "catalog", c.Subject,
				"image", one.Image.Image, "reason", one.Reason, "error", one.Message)
		}
	}
	m := events.Meta{Tenant: c.Tenant, Source: events.Indexer, TraceParent: telemetry.TraceParent(ctx), Time: f.now()}
	for try := 1; ; try++ {
		err := f.store.Images.PutFetched(ctx, c, m, list)
		if !errs.Is(err, errs.Conflict) || try == finishTries {
			if err == nil {
				f.fetched()
			}
			return err
		}
	}
}

// fetchOne fetches one image. An error is the indexer's own trouble; what is wrong with the image is an outcome.
func (f *fetcher) fetchOne(ctx context.Context, c store.Catalog, settings source.Settings, image store.Image,
	keep *store.ContentWriter,
) (store.Fetched, error) {
	out := store.Fetched{Image: image, Mutable: !strings.Contains(image.Image, "@")}
	// What another catalog has fetched says nothing about whose signature it bears.
	if !out.Mutable && settings.Signatures == nil {
		content, resolved, err := f.store.Images.Known(ctx, c.Tenant, image)
		if err != nil || content != "" {
			out.Content, out.Resolved = content, resolved
			return out, err
		}
	}
	began := f.now()
	err := f.readImage(ctx, c, settings, &out, keep)
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	f.count.fetched(ctx, err == nil, f.now().Sub(began))
	if err == nil {
		return out, nil
	}
	if own, is := err.(ownError); is { //nolint:errorlint // made below, never wrapped
		return out, own.error
	}
	out.Content, out.Reason, out.Message = "", fetchReason(err), err.Error()
	out.Pause = pause(out, image.Attempts)
	return out, nil
}

// ownError is trouble with the indexer's own parts.
type ownError struct{ error }

func (f *fetcher) readImage(ctx context.Context, c store.Catalog, settings source.Settings, out *store.Fetched,
	keep *store.ContentWriter,
) (err error) {
	tree, err := f.open(c.Tenant).Bundle(ctx, out.Image.Image, settings)
	if err != nil {
		return err
	}
	defer func() { err = closed(err, tree) }()
	b, findings := load.ReadBundle(tree.FS, tree.Labels, out.Image.Image)
	if err := findings.Err(); err != nil {
		return errs.Wrap(errs.Invalid, err, "bundle image %s", out.Image.Image)
	}
	if b.Package != out.Image.Package || b.Bundle.Name != out.Image.Bundle {
		return errs.New(errs.Invalid,
			"bundle image %s holds %s of package %s; the catalog names it for %s of package %s",
			out.Image.Image, b.Bundle.Name, b.Package, out.Image.Bundle, out.Image.Package)
	}
	if err := keep.Keep(b.Content); err != nil {
		return ownError{err}
	}
	out.Content, out.Resolved = b.Content.Digest, tree.Resolved
	out.Digest, out.Evidence = tree.Fingerprint, tree.Evidence
	return nil
}

func fetchReason(err error) string {
	if errors.Is(err, oci.ErrMismatch) {
		return fetchMismatch
	}
	if errors.Is(err, oci.ErrUnsigned) {
		return fetchUnsigned
	}
	switch errs.KindOf(err) {
	case errs.Forbidden, errs.Unauthenticated:
		return fetchUnauthorized
	case errs.NotFound:
		return fetchNotFound
	case errs.TooLarge:
		return fetchTooLarge
	case errs.Invalid, errs.Unprocessable:
		return fetchInvalid
	default:
		return fetchUnreachable
	}
}

// pause is how long to leave an image alone that could not be had: for ever (0) what a digest makes final.
func pause(f store.Fetched, attempts int) time.Duration {
	switch {
	case f.Final():
		return 0
	case attempts >= 16: // doubling more often would overflow
		return retryMax
	default:
		return min(retryMax, retryFirst<<attempts)
	}
}
