package app

import (
	"context"
	"errors"
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
	// fetchBatch is how many images one event tells of: few, so that who waits for one hears of it soon.
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
	fetchInvalid      = store.FetchInvalid
	fetchTooLarge     = store.FetchTooLarge
)

// fetch fetches the bundle images of one catalog that are due, those that somebody waits for first.
func (a *App) fetch(ctx context.Context, s bus.Scope) (err error) {
	c, err := a.store.Get(ctx, keyOf(s))
	if errs.Is(err, errs.NotFound) || err == nil && (c.Removed || c.Disabled) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, end := telemetry.Span(ctx, "fetch bundle images")
	defer func() { end(err) }()
	settings, err := a.store.Settings(ctx, c)
	if err != nil {
		return err
	}
	began, err := a.store.Now(ctx)
	if err != nil {
		return err
	}
	for {
		// none where the catalog was removed or disabled meanwhile
		list, err := a.store.Unfetched(ctx, c, began, fetchBatch)
		if err != nil || len(list) == 0 {
			return err
		}
		if err := a.fetchBatch(ctx, c, settings, list); err != nil {
			return err
		}
	}
}

// fetchBatch fetches images side by side, stores their content, and then tells of all at once. An end in
// between costs another fetch.
func (a *App) fetchBatch(ctx context.Context, c store.Catalog, settings source.Settings, list []store.Image) error {
	contents, err := a.store.Contents(ctx, c.Tenant)
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
			out[i], failures[i] = a.fetchOne(ctx, c, settings, image, contents)
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
	a.count.stored(ctx, contents.Stored)
	return a.putFetched(ctx, c, out)
}

func (a *App) putFetched(ctx context.Context, c store.Catalog, list []store.Fetched) error {
	for _, f := range list {
		if f.Content == "" && f.Reason != f.Image.Reason {
			a.Telemetry.Log.WarnContext(ctx, "a bundle image cannot be had; trying again", "catalog", c.Subject,
				"image", f.Image.Image, "reason", f.Reason, "error", f.Message)
		}
	}
	m := events.Meta{Tenant: c.Tenant, Source: events.Indexer, TraceParent: telemetry.TraceParent(ctx), Time: a.now()}
	for try := 1; ; try++ {
		err := a.store.PutFetched(ctx, c, m, list)
		if !errs.Is(err, errs.Conflict) || try == finishTries {
			if err == nil {
				a.wakeUpgrades()
			}
			return err
		}
	}
}

// fetchOne fetches one image. An error is the indexer's own trouble; what is wrong with the image is an outcome.
func (a *App) fetchOne(ctx context.Context, c store.Catalog, settings source.Settings, image store.Image,
	keep *store.ContentWriter,
) (store.Fetched, error) {
	f := store.Fetched{Image: image, Mutable: !strings.Contains(image.Image, "@")}
	if !f.Mutable {
		content, resolved, err := a.store.Known(ctx, c.Tenant, image)
		if err != nil || content != "" {
			f.Content, f.Resolved = content, resolved
			return f, err
		}
	}
	began := a.now()
	err := a.readImage(ctx, c, settings, &f, keep)
	if ctx.Err() != nil {
		return f, context.Cause(ctx)
	}
	a.count.fetched(ctx, err == nil, a.now().Sub(began))
	if err == nil {
		return f, nil
	}
	if own, is := err.(ownError); is { //nolint:errorlint // made below, never wrapped
		return f, own.error
	}
	f.Content, f.Reason, f.Message = "", fetchReason(err), err.Error()
	f.Pause = pause(f, image.Attempts)
	return f, nil
}

// ownError is trouble with the indexer's own parts.
type ownError struct{ error }

func (a *App) readImage(ctx context.Context, c store.Catalog, settings source.Settings, f *store.Fetched,
	keep *store.ContentWriter,
) (err error) {
	tree, err := a.open(c.Tenant).Bundle(ctx, f.Image.Image, settings)
	if err != nil {
		return err
	}
	defer func() { err = closed(err, tree) }()
	b, findings := load.ReadBundle(tree.FS, tree.Labels, f.Image.Image)
	if err := findings.Err(); err != nil {
		return errs.Wrap(errs.Invalid, err, "bundle image %s", f.Image.Image)
	}
	if b.Package != f.Image.Package || b.Bundle.Name != f.Image.Bundle {
		return errs.New(errs.Invalid,
			"bundle image %s holds %s of package %s; the catalog names it for %s of package %s",
			f.Image.Image, b.Bundle.Name, b.Package, f.Image.Bundle, f.Image.Package)
	}
	if err := keep.Keep(b.Content); err != nil {
		return ownError{err}
	}
	f.Content, f.Resolved = b.Content.Digest, tree.Resolved
	return nil
}

func fetchReason(err error) string {
	if errors.Is(err, oci.ErrMismatch) {
		return fetchMismatch
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
