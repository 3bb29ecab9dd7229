package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// Upgrades stores what the upgrades of packages change.
type Upgrades struct{ pool *pg.Pool }

// PackageRef is a package document of some revision that is served.
type PackageRef struct {
	Tenant, Package string
	Digest          digest.Digest
}

// Uncompared returns up to limit package documents of served revisions whose upgrades are not compared
// by today's rules, in order, behind a given one.
func (s *Upgrades) Uncompared(ctx context.Context, after PackageRef, limit int) ([]PackageRef, error) {
	rows, err := s.pool.Query(ctx, `with served as (
			select tenant, revision from catalog.catalogs where not removed
			union select v.tenant, v.revision from catalog.variants v join catalog.catalogs c using (tenant, stream)
			where not c.removed)
		select distinct r.tenant, r.package, r.digest
		from served s join catalog.revision_packages r on r.tenant = s.tenant and r.revision = s.revision
		where not exists (select from catalog.compared d where d.tenant = r.tenant and d.digest = r.digest
		and d.semantics = $1)
		  and (r.tenant, r.package, r.digest) > ($3, $4, $5)
		order by r.tenant, r.package, r.digest limit $2`, compare.Semantics, limit, after.Tenant, after.Package, after.Digest)
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[PackageRef])
	return out, pg.Err(err)
}

// ContentPair is two bundles by content.
type ContentPair struct{ From, To digest.Digest }

// Compared returns which of the pairs are compared by today's rules.
func (s *Upgrades) Compared(ctx context.Context, tenant string, pairs []ContentPair) (map[ContentPair]bool, error) {
	from, to := make([]string, len(pairs)), make([]string, len(pairs))
	for i, p := range pairs {
		from[i], to[i] = string(p.From), string(p.To)
	}
	rows, err := s.pool.Query(ctx, `select from_content, to_content from catalog.upgrades
		where tenant = $1 and semantics = $2 and (from_content, to_content) in (select f, t
		from unnest($3::text[], $4::text[]) as u(f, t))`,
		tenant, compare.Semantics, from, to)
	if err != nil {
		return nil, pg.Err(err)
	}
	out := map[ContentPair]bool{}
	var p ContentPair
	_, err = pgx.ForEachRow(rows, []any{&p.From, &p.To}, func() error { out[p] = true; return nil })
	return out, pg.Err(err)
}

// Upgrade is the difference of a pair.
type Upgrade struct {
	ContentPair
	Difference compare.Difference
}

// Put stores differences. What older rules said of the same bundles stays beside it, under their name.
func (s *Upgrades) Put(ctx context.Context, tenant string, upgrades []Upgrade) error {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return errs.Wrap(errs.Internal, err, "zstd")
	}
	batch := &pgx.Batch{}
	for _, u := range upgrades {
		raw, err := json.Marshal(u.Difference)
		if err != nil {
			return errs.Wrap(errs.Internal, err, "difference of %s and %s", u.From, u.To)
		}
		batch.Queue(`insert into catalog.upgrades (tenant, from_content, to_content, semantics, breaking, gained,
			difference)
			values ($1, $2, $3, $4, $5, $6, $7) on conflict (tenant, from_content, to_content, semantics) do update
			set breaking = excluded.breaking, gained = excluded.gained, difference = excluded.difference`,
			tenant, u.From, u.To, compare.Semantics, u.Difference.Breaking(), u.Difference.Growth(),
			enc.EncodeAll(raw, nil))
	}
	if err := s.pool.Send(ctx, batch); err != nil {
		return fmt.Errorf("store the differences of %d upgrades: %w", len(upgrades), err)
	}
	return nil
}

// comparedLock is the advisory lock under which it is noted that a package is compared, and that it is to be
// compared anew: content that comes while a package is compared is not overlooked.
const comparedLock = `select pg_advisory_xact_lock(hashtext('catalog.compared'), hashtext($1))`

// PutCompared notes that every upgrade of a package document is compared, with images being the bundles
// without content of their own and contents what was at hand of them. It is false, and nothing is noted, where
// there is more by now.
func (s *Upgrades) PutCompared(ctx context.Context, r PackageRef, images []Image, contents map[string][]digest.Digest) (
	noted bool, err error,
) {
	err = s.pool.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, comparedLock, r.Tenant); err != nil {
			return err
		}
		now, err := imageContents(ctx, tx, r, images)
		if noted = err == nil && maps.EqualFunc(now, contents, slices.Equal); !noted {
			return err
		}
		_, err = tx.Exec(ctx, `insert into catalog.compared (tenant, digest, package, semantics) values ($1, $2, $3, $4)
			on conflict (tenant, digest) do update set semantics = excluded.semantics`, r.Tenant, r.Digest, r.Package, compare.Semantics)
		return err
	})
	return noted, pg.Err(err)
}

// ImageContents returns the contents of a package's bundles that were fetched by image, by bundle. What a
// digest names may have been fetched for any live catalog of the tenant; what a tag was pinned to counts for the
// catalog itself alone, so that a bundle has more than one content where two catalogs serve the document.
func (s *Upgrades) ImageContents(ctx context.Context, r PackageRef,
	images []Image,
) (map[string][]digest.Digest, error) {
	return imageContents(ctx, s.pool, r, images)
}

func imageContents(ctx context.Context, q pg.Querier, r PackageRef, images []Image) (
	map[string][]digest.Digest, error,
) {
	out := map[string][]digest.Digest{}
	if len(images) == 0 {
		return out, nil
	}
	names, _, bundles := imageKeys(images)
	rows, err := q.Query(ctx, `with serving as (
			select c.stream from catalog.catalogs c join catalog.revision_packages p on p.tenant = c.tenant
			and p.revision = c.revision
			where c.tenant = $1 and not c.removed and p.digest = $2
			union select v.stream from catalog.variants v join catalog.revision_packages p on p.tenant = v.tenant
			and p.revision = v.revision
			where v.tenant = $1 and p.digest = $2)
		select distinct b.bundle, b.content from catalog.bundle_images b
		join catalog.catalogs c on c.tenant = b.tenant and c.stream = b.catalog and not c.removed
		join catalog.contents k on k.tenant = b.tenant and k.digest = b.content
		where b.tenant = $1 and b.package = $3 and (b.image, b.bundle) in (select i, n
		from unnest($4::text[], $5::text[]) as u(i, n))
		  and (not b.mutable or b.catalog in (select stream from serving))
		order by 1, 2`, r.Tenant, r.Digest, storableKey(r.Package), names, bundles)
	if err != nil {
		return nil, pg.Err(err)
	}
	stored := map[string][]digest.Digest{}
	var bundle string
	var d digest.Digest
	if _, err = pgx.ForEachRow(rows, []any{&bundle, &d},
		func() error { stored[bundle] = append(stored[bundle], d); return nil }); err != nil {
		return nil, pg.Err(err)
	}
	for i, name := range bundles {
		if list := stored[name]; len(list) > 0 {
			out[images[i].Bundle] = list
		}
	}
	return out, nil
}

// ForgetCompared has the upgrades of packages compared again: bundles of them were fetched, whose content
// was not at hand before.
func ForgetCompared(ctx context.Context, tx pgx.Tx, tenant string, packages []string) error {
	if len(packages) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, comparedLock, tenant); err != nil {
		return pg.Err(err)
	}
	_, err := tx.Exec(ctx, `delete from catalog.compared where tenant = $1 and package = any ($2)`, tenant, packages)
	return pg.Err(err)
}
