package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// PackageRef is a package document of some revision that is served.
type PackageRef struct {
	Tenant, Package string
	Digest          digest.Digest
}

// Uncompared returns up to limit package documents of served revisions whose upgrades are not compared
// by today's rules, in order.
func (s *Store) Uncompared(ctx context.Context, limit int) ([]PackageRef, error) {
	rows, err := s.pool.Query(ctx, `with served as (
			select tenant, revision from catalog.catalogs where not removed
			union select v.tenant, v.revision from catalog.variants v join catalog.catalogs c using (tenant, stream) where not c.removed)
		select distinct r.tenant, r.package, r.digest
		from served s join catalog.revision_packages r on r.tenant = s.tenant and r.revision = s.revision
		where not exists (select from catalog.compared d where d.tenant = r.tenant and d.digest = r.digest and d.semantics = $1)
		order by r.tenant, r.package, r.digest limit $2`, compare.Semantics, limit)
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[PackageRef])
	return out, pg.Err(err)
}

// ContentPair is two bundles by content.
type ContentPair struct{ From, To digest.Digest }

// Compared returns which of the pairs are compared by today's rules.
func (s *Store) Compared(ctx context.Context, tenant string, pairs []ContentPair) (map[ContentPair]bool, error) {
	from, to := make([]string, len(pairs)), make([]string, len(pairs))
	for i, p := range pairs {
		from[i], to[i] = string(p.From), string(p.To)
	}
	rows, err := s.pool.Query(ctx, `select from_content, to_content from catalog.upgrades
		where tenant = $1 and semantics = $2 and (from_content, to_content) in (select f, t from unnest($3::text[], $4::text[]) as u(f, t))`,
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

// PutUpgrades stores differences; one of older rules is replaced.
func (s *Store) PutUpgrades(ctx context.Context, tenant string, upgrades []Upgrade) error {
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
		batch.Queue(`insert into catalog.upgrades (tenant, from_content, to_content, semantics, breaking, gained, difference)
			values ($1, $2, $3, $4, $5, $6, $7) on conflict (tenant, from_content, to_content) do update
			set semantics = excluded.semantics, breaking = excluded.breaking, gained = excluded.gained, difference = excluded.difference`,
			tenant, u.From, u.To, compare.Semantics, u.Difference.Breaking(), len(u.Difference.Gained), enc.EncodeAll(raw, nil))
	}
	err = s.pool.Tx(ctx, func(tx pgx.Tx) error { return tx.SendBatch(ctx, batch).Close() })
	if err != nil {
		return fmt.Errorf("store the differences of %d upgrades: %w", len(upgrades), err)
	}
	return nil
}

// PutCompared notes that every upgrade of a package document is compared.
func (s *Store) PutCompared(ctx context.Context, r PackageRef) error {
	_, err := s.pool.Exec(ctx, `insert into catalog.compared (tenant, digest, package, semantics) values ($1, $2, $3, $4)
		on conflict (tenant, digest) do update set semantics = excluded.semantics`, r.Tenant, r.Digest, r.Package, compare.Semantics)
	return pg.Err(err)
}

// ImageContents returns the content of bundle images that were fetched, by image.
func (s *Store) ImageContents(ctx context.Context, tenant string, images []string) (map[string]digest.Digest, error) {
	rows, err := s.pool.Query(ctx, `select image, content from catalog.bundle_images where tenant = $1 and image = any ($2) and content <> ''`, tenant, images)
	if err != nil {
		return nil, pg.Err(err)
	}
	out := map[string]digest.Digest{}
	var image string
	var d digest.Digest
	_, err = pgx.ForEachRow(rows, []any{&image, &d}, func() error { out[image] = d; return nil })
	return out, pg.Err(err)
}

// ForgetCompared has the upgrades of packages looked at again: bundles of them were fetched, whose content
// was not at hand before.
func (s *Store) ForgetCompared(ctx context.Context, tx pgx.Tx, tenant string, packages []string) error {
	_, err := tx.Exec(ctx, `delete from catalog.compared where tenant = $1 and package = any ($2)`, tenant, packages)
	return pg.Err(err)
}
