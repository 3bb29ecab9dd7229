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
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// catalogFolds folds what is known of catalogs: how they are set up, their revisions, their bundle images and which
// catalog namespaces are strict.
type catalogFolds struct {
	dirty *dirtyScopes
	apis  APIs
}

// countCatalogChange counts a change of the tenant's catalogs, before the read sets are read: a decision that is
// being written now holds this row.
func countCatalogChange(ctx context.Context, tx pgx.Tx, tenant string) error {
	return exec(ctx, tx, `insert into resolver.catalog_clock (tenant, changes) values ($1, 1)
		on conflict (tenant) do update set changes = catalog_clock.changes + 1`, tenant)
}

// inCluster is an intent without regard to one namespace. Those of its cluster who name a catalog that they do not
// see get an explanation (R-CAT-85), where they would get the hub's of that name without it.
func inCluster(i decide.CatalogIntent) decide.CatalogIntent {
	i.Visibility.Namespace = ""
	return i
}

// intent folds how a catalog is set up, and makes dirty exactly the scopes whose read set that touches
// (DESIGN D4).
func (f *catalogFolds) intent(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	if err := countCatalogChange(ctx, tx, e.Tenant); err != nil {
		return err
	}
	before, err := readIntent(ctx, tx, e)
	if err != nil {
		return err
	}
	after := decide.EvolveCatalogIntent(before, eventOf(e))
	_, added := e.Payload.(events.CatalogAdded)
	switch {
	case after == nil && before == nil:
		return nil
	case after == nil:
		return f.remove(ctx, tx, e, *before)
	case before != nil && *before == *after && !added:
		return nil
	}
	if err := putCatalog(ctx, tx, e, *after); err != nil {
		return err
	}
	if before != nil && !added {
		return f.markChanged(ctx, tx, e, *before, *after)
	}
	// Who names the catalog waits for it from now on, or does not see it.
	return f.dirty.markReaders(ctx, tx, e, touchedReads{named: true}, visibility{now: inCluster(*after)})
}

// markChanged makes dirty who sees the catalog now and did not, or the other way round, and asked for it;
// where its priority changes, those who choose among catalogs; and where it becomes templated or ceases to be, all
// who asked for it. Whether the last poll failed stays: only a poll can change that.
func (f *catalogFolds) markChanged(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, before,
	now decide.CatalogIntent,
) error {
	what := touchedReads{named: true, visible: true, healths: true}
	if err := f.dirty.markReaders(ctx, tx, e, what, visibility{
		before: &before, now: now,
		either: before.Templated != now.Templated,
	}); err != nil {
		return err
	}
	if before.Visibility.Namespace != "" || now.Visibility.Namespace != "" {
		was := inCluster(before)
		if err := f.dirty.markReaders(ctx, tx, e, touchedReads{named: true},
			visibility{before: &was, now: inCluster(now)}); err != nil {
			return err
		}
	}
	if before.Priority == now.Priority {
		return nil
	}
	return f.dirty.markReaders(ctx, tx, e, touchedReads{visible: true}, visibility{now: now})
}

// readIntent reads how the event's catalog is set up; nil where the log has none.
func readIntent(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) (*decide.CatalogIntent, error) {
	var i decide.CatalogIntent
	err := tx.QueryRow(ctx, `select priority, visibility_cluster, visibility_namespace, templated, disabled
		from resolver.catalogs where tenant = $1 and subject = $2`,
		e.Tenant, e.Subject).Scan(&i.Priority, &i.Visibility.Cluster, &i.Visibility.Namespace, &i.Templated,
		&i.Disabled)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	if err != nil {
		return nil, fmt.Errorf("read catalog %s: %w", e.Subject, pg.Err(err))
	}
	return &i, nil
}

func putCatalog(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, i decide.CatalogIntent) error {
	err := exec(ctx, tx, `insert into resolver.catalogs (tenant, subject, priority, visibility_cluster,
		visibility_namespace, templated, disabled)
		values ($1, $2, $3, $4, $5, $6, $7) on conflict (tenant, subject) do update
		set priority = excluded.priority, visibility_cluster = excluded.visibility_cluster,
		  visibility_namespace = excluded.visibility_namespace, templated = excluded.templated,
		  disabled = excluded.disabled`,
		e.Tenant, e.Subject, i.Priority, i.Visibility.Cluster, i.Visibility.Namespace, i.Templated, i.Disabled)
	if err != nil {
		return err
	}
	return dropUnused(ctx, tx, e.Tenant)
}

func (f *catalogFolds) remove(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, before decide.CatalogIntent) error {
	if err := f.dirty.markReaders(ctx, tx, e, touchedReads{named: true},
		visibility{now: inCluster(before)}); err != nil {
		return err
	}
	if err := f.dirty.markReaders(ctx, tx, e, touchedReads{visible: true, health: true},
		visibility{now: before}); err != nil {
		return err
	}
	for _, table := range []string{"catalogs", "catalog_revisions", "bundle_images", "wanted_images"} {
		if err := exec(ctx, tx, `delete from resolver.`+table+` where tenant = $1 and subject = $2`, e.Tenant,
			e.Subject); err != nil {
			return err
		}
	}
	return nil
}

// published makes dirty the scopes that asked for a changed package, for an API that a changed package
// provides now, or for the list of packages if that changed; and, with a catalog's first revision, those
// that named it or asked every catalog. Scopes that asked for an API that a package provided before
// have asked for the package, too. A variant concerns the clusters of its version of Kubernetes alone.
func (f *catalogFolds) published(ctx context.Context, tx pgx.Tx, e eventlog.Recorded,
	p events.CatalogRevisionPublished,
) error {
	now, before, used, err := foldRevision(ctx, tx, e, p.Variant)
	if err != nil || !used {
		return err
	}
	what, err := f.touched(ctx, tx, e.Tenant, p)
	if err != nil {
		return err
	}
	first := before.Revision == ""
	what.named, what.visible, what.health = first, first, first || before.Failed
	// how it differs from the revision that is known here is not said
	what.anyhow = p.All || p.Previous != before.Revision
	return f.dirty.markReaders(ctx, tx, e, what, visibility{now: now, variant: &p.Variant})
}

// touched is what a revision changes. A package document that is not there any more, since the revision left service
// long ago, may have provided any API: so whoever asked for one is concerned.
func (f *catalogFolds) touched(ctx context.Context, tx pgx.Tx, tenant string, p events.CatalogRevisionPublished) (
	what touchedReads, err error,
) {
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
	what.apis, err = f.apis.Of(ctx, tx, tenant, digests)
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

// loadFailed makes dirty the scopes that wait for the first revision: it will not come by itself; and those that
// asked for the catalog's health. The revision before stays in service, so that nothing changes for anybody else.
func (f *catalogFolds) loadFailed(ctx context.Context, tx pgx.Tx, e eventlog.Recorded,
	p events.CatalogLoadFailed,
) error {
	now, before, used, err := foldRevision(ctx, tx, e, p.Variant)
	if err != nil || !used {
		return err
	}
	what := touchedReads{named: before.Revision == "" && !before.Failed, health: !before.Failed ||
		before.Reason != p.Reason}
	return f.dirty.markReaders(ctx, tx, e, what, visibility{now: now, variant: &p.Variant})
}

// foldRevision folds what came of a poll of a variant. It returns the catalog, what was known of the variant before,
// and whether the variant is used: one that no cluster has any more came late, and is dropped.
func foldRevision(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, variant string) (
	now decide.CatalogIntent, before decide.CatalogRevision, used bool, err error,
) {
	if err := countCatalogChange(ctx, tx, e.Tenant); err != nil {
		return now, before, false, err
	}
	intent, err := readIntent(ctx, tx, e)
	if err != nil || intent == nil {
		return now, before, false, err
	}
	err = tx.QueryRow(ctx, `select revision, failed, reason from resolver.catalog_revisions
		where tenant = $1 and subject = $2 and variant = $3`,
		e.Tenant, e.Subject, variant).Scan(&before.Revision, &before.Failed, &before.Reason)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return now, before, false, fmt.Errorf("read the state of catalog %s: %w", e.Subject, pg.Err(err))
	}
	after := decide.EvolveRevision(before, eventOf(e))
	tag, err := tx.Exec(ctx, `insert into resolver.catalog_revisions as r (tenant, subject, variant, revision, failed,
		reason)
		select $1, $2, $3, $4, $5, $6 where $3 = '' or exists (select from resolver.catalogs c
		join resolver.clusters k on k.tenant = c.tenant
		  and not k.removed and k.minor = $3 and c.visibility_cluster in ('', k.name)
		  where c.tenant = $1 and c.subject = $2)
		on conflict (tenant, subject, variant) do update set revision = excluded.revision, failed = excluded.failed,
		reason = excluded.reason`,
		e.Tenant, e.Subject, variant, after.Revision, after.Failed, after.Reason)
	if err != nil {
		return now, before, false, fmt.Errorf("keep the state of catalog %s: %w", e.Subject, pg.Err(err))
	}
	return *intent, before, tag.RowsAffected() > 0, nil
}

// dropUnused drops variants of Kubernetes versions that no cluster has. It runs with each event, as the indexer
// drops what it has of them with each event: a version that goes and comes back begins anew with both.
func dropUnused(ctx context.Context, tx pgx.Tx, tenant string) error {
	return exec(ctx, tx, `delete from resolver.catalog_revisions v using resolver.catalogs c
		where v.tenant = $1 and v.variant <> '' and c.tenant = v.tenant and c.subject = v.subject and (not c.templated
		or not exists (
		  select from resolver.clusters k where k.tenant = c.tenant and not k.removed and k.minor = v.variant
		  and c.visibility_cluster in ('', k.name)))`, tenant)
}

// bundlesFetched makes dirty exactly the scopes whose last resolution asked for one of the images. A request is met by
// the content alone: who waits for an image that could not be had waits for the next try.
func (f *catalogFolds) bundlesFetched(ctx context.Context, tx pgx.Tx, e eventlog.Recorded,
	p events.CatalogBundlesFetched,
) error {
	if err := countCatalogChange(ctx, tx, e.Tenant); err != nil {
		return err
	}
	var images, packages, bundles, contents, reasons, names []string
	for _, b := range p.Bundles {
		image := resolution.BundleImage{
			Image: storable(b.Image), Package: storable(b.Package),
			Bundle: storable(b.Bundle),
		}
		images, packages, bundles = append(images, image.Image), append(packages, image.Package),
			append(bundles, image.Bundle)
		contents, reasons, names = append(contents, b.Content), append(reasons, b.Reason),
			append(names, image.ReadName())
	}
	err := exec(ctx, tx, `insert into resolver.bundle_images (tenant, subject, image, package, bundle, content, reason)
		select $1, $2, i, p, b, c, r from unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[]) as u(i, p,
		b, c, r)
		on conflict (tenant, subject, image, package, bundle) do update set content = excluded.content,
		reason = excluded.reason`,
		e.Tenant, e.Subject, images, packages, bundles, contents, reasons)
	if err != nil {
		return err
	}
	err = exec(ctx, tx, `delete from resolver.wanted_images w using unnest($3::text[], $4::text[], $5::text[],
		$6::text[]) as u(i, p, b, c)
		where w.tenant = $1 and w.subject = $2 and w.image = u.i and w.package = u.p and w.bundle = u.b and u.c <> ''`,
		e.Tenant, e.Subject, images, packages, bundles, contents)
	if err != nil {
		return err
	}
	return f.dirty.markFound(ctx, tx, e, `select distinct cluster, namespace from resolver.reads where tenant = $1 and kind = $2
		and catalog = $3 and name = any ($4)`,
		e.Tenant, string(resolution.ReadImage), e.Subject, names)
}

// healthSet keeps what a catalog namespace is strict about (R-CAT-99), and makes dirty the scopes that asked for the
// health of any catalog: what is held up may go on, or another catalog holds it up, too. A scope that asked for none
// has planned what there is to plan, and plans are not taken back.
func (f *catalogFolds) healthSet(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.CatalogHealthSet) error {
	if err := countCatalogChange(ctx, tx, e.Tenant); err != nil {
		return err
	}
	err := exec(ctx, tx, `insert into resolver.catalog_health (tenant, cluster, namespace, strict)
		values ($1, $2, $3, $4)
		on conflict (tenant, cluster, namespace) do update set strict = excluded.strict`, e.Tenant, p.Cluster, p.Namespace, p.Mode == healthStrict)
	if err != nil {
		return err
	}
	return f.dirty.markFound(ctx, tx, e, `select distinct cluster, namespace from resolver.reads where tenant = $1 and kind = $2
		and $3 in ('', cluster)`,
		e.Tenant, string(resolution.ReadHealth), p.Cluster)
}

// healthStrict is the mode of events.CatalogHealthSet in which an unhealthy catalog blocks all who see it.
const healthStrict = "Strict"

// strictly is true of a catalog c whose own namespace, in its subject, is strict.
const strictly = `exists (select from resolver.catalog_health h where h.tenant = c.tenant and h.strict
	and (h.cluster, h.namespace) = (case when c.subject like '%/%/%' then split_part(c.subject, '/', 1) else '' end,
	  case when c.subject like '%/%/%' then split_part(c.subject, '/', 2) else '' end))`
