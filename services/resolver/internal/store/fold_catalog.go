package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// applyCatalog folds an event of a catalog and makes dirty exactly the scopes whose read set it touches
// (DESIGN D4).
func (s *Store) applyCatalog(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	if err := tick(ctx, tx, e.Tenant); err != nil {
		return err
	}
	switch p := e.Payload.(type) {
	case events.CatalogAdded:
		return s.catalogAdded(ctx, tx, e, intent{p.Priority, p.Visibility, p.Templated, p.Disabled})
	case events.CatalogChanged:
		return s.catalogChanged(ctx, tx, e, intent{p.Priority, p.Visibility, p.Templated, p.Disabled})
	case events.CatalogRemoved:
		return s.catalogRemoved(ctx, tx, e)
	case events.CatalogRevisionPublished:
		return s.published(ctx, tx, e, p)
	case events.CatalogLoadFailed:
		return s.loadFailed(ctx, tx, e, p)
	case events.CatalogBundlesFetched:
		return s.bundlesFetched(ctx, tx, e, p)
	}
	return errs.New(errs.Internal, "%s is no event of a catalog", e.Type)
}

// tick counts a change of the tenant's catalogs, before the read sets are looked at: a decision that is being
// written now holds this row.
func tick(ctx context.Context, tx pgx.Tx, tenant string) error {
	return exec(ctx, tx, `insert into resolver.catalog_clock (tenant, changes) values ($1, 1)
		on conflict (tenant) do update set changes = catalog_clock.changes + 1`, tenant)
}

// intent is what a resolution sees of how a catalog is set up. The rest of its settings is for who reads the
// source: what comes of them is told.
type intent struct {
	priority   int32
	visibility events.CatalogVisibility
	templated  bool
	disabled   bool
}

// inCluster is the intent without regard to one namespace. Those of its cluster who name a catalog that they do not see are
// told so (R-CAT-85), where they would get the hub's of that name without it.
func (i intent) inCluster() intent {
	i.visibility.Namespace = ""
	return i
}

// catalogAdded makes dirty who names the catalog: it is waited for from now on, or not seen.
func (s *Store) catalogAdded(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, now intent) error {
	if err := putCatalog(ctx, tx, e, now); err != nil {
		return err
	}
	return s.mark(ctx, tx, e, touchedReads{named: true}, visibility{now: now.inCluster()})
}

// catalogChanged makes dirty who sees the catalog now and did not, or the other way round, and asked for it; where its
// priority changes, those who choose among catalogs; and where it becomes templated or ceases to be, all
// who asked for it. Whether the last look failed stays: only a look tells of a better one.
func (s *Store) catalogChanged(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, now intent) error {
	before, known, err := readIntent(ctx, tx, e)
	switch {
	case err != nil:
		return err
	case !known:
		return s.catalogAdded(ctx, tx, e, now)
	case before == now:
		return nil
	}
	if err := putCatalog(ctx, tx, e, now); err != nil {
		return err
	}
	if err := s.mark(ctx, tx, e, touchedReads{named: true, visible: true, healths: true}, visibility{before: &before, now: now, either: before.templated != now.templated}); err != nil {
		return err
	}
	if before.visibility.Namespace != "" || now.visibility.Namespace != "" {
		was := before.inCluster()
		if err := s.mark(ctx, tx, e, touchedReads{named: true}, visibility{before: &was, now: now.inCluster()}); err != nil {
			return err
		}
	}
	if before.priority == now.priority {
		return nil
	}
	return s.mark(ctx, tx, e, touchedReads{visible: true}, visibility{now: now})
}

// readIntent reads how the event's catalog is set up; known is false where the log told of none.
func readIntent(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) (i intent, known bool, err error) {
	err = tx.QueryRow(ctx, `select priority, visibility_cluster, visibility_namespace, templated, disabled from resolver.catalogs where tenant = $1 and subject = $2`,
		e.Tenant, e.Subject).Scan(&i.priority, &i.visibility.Cluster, &i.visibility.Namespace, &i.templated, &i.disabled)
	if errors.Is(err, pgx.ErrNoRows) {
		return i, false, nil
	}
	if err != nil {
		return i, false, fmt.Errorf("read catalog %s: %w", e.Subject, pg.Err(err))
	}
	return i, true, nil
}

func putCatalog(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, i intent) error {
	err := exec(ctx, tx, `insert into resolver.catalogs (tenant, subject, priority, visibility_cluster, visibility_namespace, templated, disabled)
		values ($1, $2, $3, $4, $5, $6, $7) on conflict (tenant, subject) do update
		set priority = excluded.priority, visibility_cluster = excluded.visibility_cluster,
		  visibility_namespace = excluded.visibility_namespace, templated = excluded.templated, disabled = excluded.disabled`,
		e.Tenant, e.Subject, i.priority, i.visibility.Cluster, i.visibility.Namespace, i.templated, i.disabled)
	if err != nil {
		return err
	}
	return dropUnused(ctx, tx, e.Tenant)
}

func (s *Store) catalogRemoved(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	before, known, err := readIntent(ctx, tx, e)
	if err != nil || !known {
		return err
	}
	if err := s.mark(ctx, tx, e, touchedReads{named: true}, visibility{now: before.inCluster()}); err != nil {
		return err
	}
	if err := s.mark(ctx, tx, e, touchedReads{visible: true, health: true}, visibility{now: before}); err != nil {
		return err
	}
	for _, table := range []string{"catalogs", "catalog_revisions", "bundle_images", "wanted_images"} {
		if err := exec(ctx, tx, `delete from resolver.`+table+` where tenant = $1 and subject = $2`, e.Tenant, e.Subject); err != nil {
			return err
		}
	}
	return nil
}

// revisionRow is the outcome of a look at a variant; a failure leaves the revision as it is.
type revisionRow struct {
	variant, revision string
	failed            bool
	reason            string
}

// published makes dirty the scopes that asked for a changed package, for an API that a changed package
// provides now, or for the list of packages if that changed; and, with a catalog's first revision, those
// that named it or asked every catalog. Scopes that asked for an API that a package provided before
// have asked for the package, too. A variant concerns the clusters of its version of Kubernetes alone.
func (s *Store) published(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.CatalogRevisionPublished) error {
	now, before, used, err := putRevision(ctx, tx, e, revisionRow{variant: p.Variant, revision: p.Revision})
	if err != nil || !used {
		return err
	}
	what, err := s.touched(ctx, tx, e.Tenant, p)
	if err != nil {
		return err
	}
	first := before.revision == ""
	what.named, what.visible, what.health = first, first, first || before.failed
	what.anyhow = p.All || p.Previous != before.revision // what differs from the revision that is known here is not told
	return s.mark(ctx, tx, e, what, visibility{now: now, variant: &p.Variant})
}

// touched is what a revision changes. A package document that is not there any more, since the revision left service
// long ago, may have provided any API: so whoever asked for one is concerned.
func (s *Store) touched(ctx context.Context, tx pgx.Tx, tenant string, p events.CatalogRevisionPublished) (what touchedReads, err error) {
	var digests []string
	for _, c := range p.Changes {
		what.packages = append(what.packages, storable(c.Package))
		what.names = what.names || c.Change != changed
		switch {
		case c.Digest != "":
			digests = append(digests, c.Digest)
		case c.Change != removed:
			what.anyAPI = true
		}
	}
	what.apis, err = s.apis.Of(ctx, tx, tenant, digests)
	if errs.Is(err, errs.NotFound) {
		what.anyAPI, err = true, nil
	}
	return what, err
}

// Kinds of events.PackageChange; a package that is neither was added.
const (
	changed = "changed"
	removed = "removed"
)

// loadFailed makes dirty who waits for the first revision: it will not come by itself; and who minds the catalog's
// health. The revision before stays in service, so that nothing changes for anybody else.
func (s *Store) loadFailed(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.CatalogLoadFailed) error {
	now, before, used, err := putRevision(ctx, tx, e, revisionRow{variant: p.Variant, failed: true, reason: p.Reason})
	if err != nil || !used {
		return err
	}
	what := touchedReads{named: before.revision == "" && !before.failed, health: !before.failed || before.reason != p.Reason}
	return s.mark(ctx, tx, e, what, visibility{now: now, variant: &p.Variant})
}

// putRevision keeps the outcome of a look. It returns the catalog, what was known of the variant before, and whether
// the variant is used: one that no cluster has any more came late, and is dropped.
func putRevision(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, row revisionRow) (now intent, before revisionRow, used bool, err error) {
	now, known, err := readIntent(ctx, tx, e)
	if err != nil || !known {
		return now, before, false, err
	}
	err = tx.QueryRow(ctx, `select revision, failed, reason from resolver.catalog_revisions where tenant = $1 and subject = $2 and variant = $3`,
		e.Tenant, e.Subject, row.variant).Scan(&before.revision, &before.failed, &before.reason)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return now, before, false, fmt.Errorf("read the state of catalog %s: %w", e.Subject, pg.Err(err))
	}
	tag, err := tx.Exec(ctx, `insert into resolver.catalog_revisions as r (tenant, subject, variant, revision, failed, reason)
		select $1, $2, $3, $4, $5, $6 where $3 = '' or exists (select from resolver.catalogs c join resolver.clusters k on k.tenant = c.tenant
		  and not k.removed and k.minor = $3 and c.visibility_cluster in ('', k.name) where c.tenant = $1 and c.subject = $2)
		on conflict (tenant, subject, variant) do update
		set revision = case when excluded.failed then r.revision else excluded.revision end, failed = excluded.failed, reason = excluded.reason`,
		e.Tenant, e.Subject, row.variant, row.revision, row.failed, row.reason)
	if err != nil {
		return now, before, false, fmt.Errorf("keep the state of catalog %s: %w", e.Subject, pg.Err(err))
	}
	return now, before, tag.RowsAffected() > 0, nil
}

// bundlesFetched makes dirty exactly the scopes whose last resolution asked for one of the images. A wish is met with
// the content alone: who waits for an image that could not be had waits for the next try.
func (s *Store) bundlesFetched(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.CatalogBundlesFetched) error {
	var images, packages, bundles, contents, reasons, names []string
	for _, b := range p.Bundles {
		image := resolution.BundleImage{Image: storable(b.Image), Package: storable(b.Package), Bundle: storable(b.Bundle)}
		images, packages, bundles = append(images, image.Image), append(packages, image.Package), append(bundles, image.Bundle)
		contents, reasons, names = append(contents, b.Content), append(reasons, b.Reason), append(names, image.ReadName())
	}
	err := exec(ctx, tx, `insert into resolver.bundle_images (tenant, subject, image, package, bundle, content, reason)
		select $1, $2, i, p, b, c, r from unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[]) as u(i, p, b, c, r)
		on conflict (tenant, subject, image, package, bundle) do update set content = excluded.content, reason = excluded.reason`,
		e.Tenant, e.Subject, images, packages, bundles, contents, reasons)
	if err != nil {
		return err
	}
	err = exec(ctx, tx, `delete from resolver.wanted_images w using unnest($3::text[], $4::text[], $5::text[], $6::text[]) as u(i, p, b, c)
		where w.tenant = $1 and w.subject = $2 and w.image = u.i and w.package = u.p and w.bundle = u.b and u.c <> ''`,
		e.Tenant, e.Subject, images, packages, bundles, contents)
	if err != nil {
		return err
	}
	return s.markAll(ctx, tx, e, `select distinct cluster, namespace from resolver.reads where tenant = $1 and kind = $2 and catalog = $3 and name = any ($4)`,
		e.Tenant, string(resolution.ReadImage), e.Subject, names)
}
