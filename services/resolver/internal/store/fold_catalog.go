package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// applyCatalog folds an event of a catalog and makes dirty exactly the scopes whose read set it touches
// (DESIGN D4).
func (s *Store) applyCatalog(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	// Before the read sets are looked at: a decision that is being written now holds this row.
	err := exec(ctx, tx, `insert into resolver.catalog_clock (tenant, changes) values ($1, 1)
		on conflict (tenant) do update set changes = catalog_clock.changes + 1`, e.Tenant)
	if err != nil {
		return err
	}
	switch p := e.Payload.(type) {
	case events.CatalogAdded:
		if err := s.putCatalog(ctx, tx, e, p.Priority, p.Visibility); err != nil {
			return err
		}
		return s.markNaming(ctx, tx, e)
	case events.CatalogChanged:
		if err := s.putCatalog(ctx, tx, e, p.Priority, p.Visibility); err != nil {
			return err
		}
		return s.markSeeing(ctx, tx, e)
	case events.CatalogRemoved:
		if err := exec(ctx, tx, `delete from resolver.catalogs where tenant = $1 and subject = $2`, e.Tenant, e.Subject); err != nil {
			return err
		}
		return s.markSeeing(ctx, tx, e)
	case events.CatalogRevisionPublished:
		return s.published(ctx, tx, e, p)
	case events.CatalogLoadFailed:
		if err := exec(ctx, tx, `update resolver.catalogs set failed = true where tenant = $1 and subject = $2`, e.Tenant, e.Subject); err != nil {
			return err
		}
		return s.markNaming(ctx, tx, e)
	}
	return errs.New(errs.Internal, "%s is no event of a catalog", e.Type)
}

func (s *Store) putCatalog(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, priority int32, v events.CatalogVisibility) error {
	return exec(ctx, tx, `insert into resolver.catalogs (tenant, subject, priority, visibility_cluster, visibility_namespace)
		values ($1, $2, $3, $4, $5) on conflict (tenant, subject) do update
		set priority = excluded.priority, visibility_cluster = excluded.visibility_cluster,
		  visibility_namespace = excluded.visibility_namespace, failed = false`,
		e.Tenant, e.Subject, priority, v.Cluster, v.Namespace)
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
// have asked for the package, too.
func (s *Store) published(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.CatalogRevisionPublished) error {
	err := exec(ctx, tx, `update resolver.catalogs set revision = $3, failed = false where tenant = $1 and subject = $2`, e.Tenant, e.Subject, p.Revision)
	if err != nil {
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
	return s.markAll(ctx, tx, e, `select distinct cluster, namespace from resolver.reads
		where tenant = $1 and catalog = $2 and
		  (kind = $3 and name = any ($4) or kind = $5 and name = any ($6) or kind = $7 and $8)`,
		e.Tenant, e.Subject, string(resolve.ReadPackage), names, string(resolve.ReadAPI), apis, string(resolve.ReadNames), list)
}
