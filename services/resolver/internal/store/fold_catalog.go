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
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// applyCatalog folds an event of a catalog and makes dirty exactly the scopes whose read set it touches
// (DESIGN D4).
func (s *Store) applyCatalog(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	if err := tick(ctx, tx, e.Tenant); err != nil {
		return err
	}
	switch p := e.Payload.(type) {
	case events.CatalogAdded:
		if err := s.putCatalog(ctx, tx, e, p.Priority, p.Visibility, p.Templated, p.Disabled); err != nil {
			return err
		}
		return s.markNaming(ctx, tx, e)
	case events.CatalogChanged:
		if err := s.putCatalog(ctx, tx, e, p.Priority, p.Visibility, p.Templated, p.Disabled); err != nil {
			return err
		}
		return errors.Join(s.markSeeing(ctx, tx, e), s.markStrict(ctx, tx, e))
	case events.CatalogRemoved:
		return s.removeCatalog(ctx, tx, e)
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

func (s *Store) putCatalog(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, priority int32, v events.CatalogVisibility, templated, disabled bool) error {
	err := exec(ctx, tx, `insert into resolver.catalogs (tenant, subject, priority, visibility_cluster, visibility_namespace, templated, disabled)
		values ($1, $2, $3, $4, $5, $6, $7) on conflict (tenant, subject) do update
		set priority = excluded.priority, visibility_cluster = excluded.visibility_cluster,
		  visibility_namespace = excluded.visibility_namespace, templated = excluded.templated, disabled = excluded.disabled`,
		e.Tenant, e.Subject, priority, v.Cluster, v.Namespace, templated, disabled)
	if err != nil {
		return err
	}
	// What failed may be mended by the change; the next look tells.
	if err := exec(ctx, tx, `update resolver.catalog_revisions set failed = false, reason = '' where tenant = $1 and subject = $2`, e.Tenant, e.Subject); err != nil {
		return err
	}
	return dropUnused(ctx, tx, e.Tenant)
}

func (s *Store) removeCatalog(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	if err := errors.Join(s.markSeeing(ctx, tx, e), s.markStrict(ctx, tx, e)); err != nil {
		return err
	}
	for _, table := range []string{"catalogs", "catalog_revisions", "bundle_images", "wanted_images"} {
		if err := exec(ctx, tx, `delete from resolver.`+table+` where tenant = $1 and subject = $2`, e.Tenant, e.Subject); err != nil {
			return err
		}
	}
	return nil
}

// markNaming makes dirty the scopes in which a subscription names a catalog of this name.
func (s *Store) markNaming(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	return s.markAll(ctx, tx, e, `select distinct cluster, namespace from resolver.reads
		where tenant = $1 and kind = $2 and catalog = '' and name = $3`,
		e.Tenant, string(resolve.ReadCatalog), catalogKey(e.Subject).Name)
}

// markSeeing makes dirty, too, the scopes that asked every catalog that they see for something.
func (s *Store) markSeeing(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	return s.markAll(ctx, tx, e, `select distinct cluster, namespace from resolver.reads
		where tenant = $1 and catalog = '' and (kind = $2 and name = $3 or kind = $4)`,
		e.Tenant, string(resolve.ReadCatalog), catalogKey(e.Subject).Name, string(resolve.ReadVisible))
}

// published makes dirty the scopes that asked for a changed package, for an API that a changed package
// provides now, or for the list of packages if that changed; and, with a catalog's first revision, those
// that named it or asked every catalog. Scopes that asked for an API that a package provided before
// have asked for the package, too. A variant concerns the clusters of its version of Kubernetes alone.
func (s *Store) published(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.CatalogRevisionPublished) error {
	healthy, used, err := s.putRevision(ctx, tx, e, revisionRow{variant: p.Variant, revision: p.Revision})
	if err != nil || !used {
		return err
	}
	var names, digests []string
	list := false
	for _, c := range p.Changes {
		names = append(names, c.Package)
		if c.Digest != "" {
			digests = append(digests, c.Digest)
		}
		list = list || c.Change != "changed"
	}
	apis, err := s.apis.Of(ctx, tx, e.Tenant, digests)
	if err != nil {
		return err
	}
	if p.Previous == "" {
		if err := s.markSeeing(ctx, tx, e); err != nil {
			return err
		}
	}
	if !healthy {
		if err := s.markStrict(ctx, tx, e); err != nil {
			return err
		}
	}
	return s.markAll(ctx, tx, e, `select distinct r.cluster, r.namespace from resolver.reads r
		where r.tenant = $1 and r.catalog = $2 and
		  (r.kind = $3 and r.name = any ($4) or r.kind = $5 and r.name = any ($6) or r.kind = $7 and $8)
		  and ($9 = '' or exists (select from resolver.clusters k where k.tenant = r.tenant and k.name = r.cluster and k.minor = $9))`,
		e.Tenant, e.Subject, string(resolve.ReadPackage), names, string(resolve.ReadAPI), apis, string(resolve.ReadNames), list, p.Variant)
}

func (s *Store) loadFailed(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.CatalogLoadFailed) error {
	_, used, err := s.putRevision(ctx, tx, e, revisionRow{variant: p.Variant, failed: true, reason: p.Reason})
	if err != nil || !used {
		return err
	}
	return errors.Join(s.markNaming(ctx, tx, e), s.markStrict(ctx, tx, e))
}

// revisionRow is the outcome of a look at a variant; a failure leaves the revision as it is.
type revisionRow struct {
	variant, revision string
	failed            bool
	reason            string
}

// putRevision keeps the outcome of a look. It returns whether the variant was in good order before, and whether
// it is used: one that no cluster has any more came late, and is dropped.
func (s *Store) putRevision(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, row revisionRow) (healthy, used bool, err error) {
	err = tx.QueryRow(ctx, `select revision <> '' and not failed from resolver.catalog_revisions where tenant = $1 and subject = $2 and variant = $3`,
		e.Tenant, e.Subject, row.variant).Scan(&healthy)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return false, false, fmt.Errorf("read the state of catalog %s: %w", e.Subject, pg.Err(err))
	}
	tag, err := tx.Exec(ctx, `insert into resolver.catalog_revisions as r (tenant, subject, variant, revision, failed, reason)
		select $1, $2, $3, $4, $5, $6 where $3 = '' or exists (select from resolver.catalogs c join resolver.clusters k on k.tenant = c.tenant
		  and not k.removed and k.minor = $3 and c.visibility_cluster in ('', k.name) where c.tenant = $1 and c.subject = $2)
		on conflict (tenant, subject, variant) do update
		set revision = case when excluded.failed then r.revision else excluded.revision end, failed = excluded.failed, reason = excluded.reason`,
		e.Tenant, e.Subject, row.variant, row.revision, row.failed, row.reason)
	if err != nil {
		return false, false, fmt.Errorf("keep the state of catalog %s: %w", e.Subject, pg.Err(err))
	}
	return healthy, tag.RowsAffected() > 0, nil
}

// bundlesFetched makes dirty exactly the scopes whose last resolution asked for one of the images.
func (s *Store) bundlesFetched(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.CatalogBundlesFetched) error {
	var images, contents, reasons []string
	for _, b := range p.Bundles {
		images, contents, reasons = append(images, storable(b.Image)), append(contents, b.Content), append(reasons, b.Reason)
	}
	err := exec(ctx, tx, `insert into resolver.bundle_images (tenant, subject, image, content, reason)
		select $1, $2, i, c, r from unnest($3::text[], $4::text[], $5::text[]) as u(i, c, r)
		on conflict (tenant, subject, image) do update set content = excluded.content, reason = excluded.reason`, e.Tenant, e.Subject, images, contents, reasons)
	if err != nil {
		return err
	}
	if err := exec(ctx, tx, `delete from resolver.wanted_images where tenant = $1 and subject = $2 and image = any ($3)`, e.Tenant, e.Subject, images); err != nil {
		return err
	}
	return s.markAll(ctx, tx, e, `select distinct cluster, namespace from resolver.reads where tenant = $1 and kind = $2 and catalog = $3 and name = any ($4)`,
		e.Tenant, string(resolve.ReadImage), e.Subject, images)
}
