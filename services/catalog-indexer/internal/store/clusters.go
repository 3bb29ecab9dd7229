package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/source"
)

// Clusters fold which Kubernetes versions are in use. Where that changed, the templated catalogs are polled: their
// variants are to be settled anew.
func Clusters(poll Poll) bus.Handlers {
	h := bus.Handlers{}
	on(h, poll, func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.ClusterRegistered) ([]Key, error) {
		_, err := tx.Exec(ctx, `insert into catalog.clusters (tenant, name) values ($1, $2) on conflict do nothing`,
			e.Tenant, p.Name)
		if err != nil {
			return nil, pg.Err(err)
		}
		return templated(ctx, tx, e.Tenant)
	})
	on(h, poll, func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.ClusterRemoved) ([]Key, error) {
		_, err := tx.Exec(ctx, `delete from catalog.clusters where tenant = $1 and name = $2`, e.Tenant, p.Name)
		if err != nil {
			return nil, pg.Err(err)
		}
		return templated(ctx, tx, e.Tenant)
	})
	on(h, poll, func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.ClusterObserved) ([]Key, error) {
		moved, err := observed(ctx, tx, e, p.KubernetesVersion)
		if err != nil || !moved {
			return nil, pg.Err(err)
		}
		return templated(ctx, tx, e.Tenant)
	})
	return h
}

// templated are the catalogs with a variant for each Kubernetes version. Variants that no cluster wants any more go.
func templated(ctx context.Context, tx pgx.Tx, tenant string) ([]Key, error) {
	if err := dropUnused(ctx, tx, tenant); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, `select tenant, stream, '' from catalog.catalogs where tenant = $1 and templated
		and not removed order by 2`, tenant)
	if err != nil {
		return nil, pg.Err(err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Key])
	return keys, pg.Err(err)
}

// observed notes a cluster's version. One that is not known, as of a cluster that cannot be reached, leaves what is
// known.
func observed(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, version string) (moved bool, err error) {
	minor, err := source.Variant(version)
	if err != nil { // unknown or unreadable: the cluster is served as one of unknown version
		return false, nil //nolint:nilerr // see above
	}
	tag, err := tx.Exec(ctx, `update catalog.clusters set version = $3, minor = $4 where tenant = $1 and name = $2
		and version <> $3`, e.Tenant, e.Subject, version, minor)
	return tag.RowsAffected() > 0, err
}

// dropUnused drops variants of Kubernetes versions that no cluster has. It runs with each event, as the resolver
// drops what it knows of them with each event: a version that goes and comes back begins anew with both. Their
// revisions have left service.
func dropUnused(ctx context.Context, tx pgx.Tx, tenant string) error {
	_, err := tx.Exec(ctx, `with gone as (delete from catalog.variants v using catalog.catalogs c
		where v.tenant = $1 and c.tenant = v.tenant and c.stream = v.stream and (not c.templated or not exists (
		  select from catalog.clusters k where k.tenant = c.tenant and k.minor = v.variant
		  and c.visibility_cluster in ('', k.name)))
		returning v.tenant, v.stream, v.variant)
		update catalog.revisions r set ended = now() from gone g
		where r.tenant = g.tenant and r.catalog = g.stream and r.variant = g.variant and r.ended is null`, tenant)
	if err != nil {
		return fmt.Errorf("drop unused variants: %w", pg.Err(err))
	}
	return nil
}

// Use is what the clusters that see a catalog run.
type Use struct {
	Minor, Version string // Minor "" where a cluster's version is not known; Version is the newest of the minor
}

// Uses returns the Kubernetes versions of the clusters that see a catalog, by minor.
func (s *Catalogs) Uses(ctx context.Context, c Catalog) ([]Use, error) {
	rows, err := s.pool.Query(ctx, `select distinct on (string_to_array(nullif(minor, ''), '.')::int[]) minor, version
		from catalog.clusters
		where tenant = $1 and $2 in ('', name)
		order by string_to_array(nullif(minor, ''), '.')::int[], string_to_array(substring(version
		from '^v?([0-9]{1,9}(?:\.[0-9]{1,9})*)'), '.')::int[] desc nulls last`, c.Tenant, c.Cluster)
	if err != nil {
		return nil, pg.Err(err)
	}
	uses, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Use])
	return uses, pg.Err(err)
}

// PutVariants makes the rows of variants that are in use. It returns those that are to be polled: the new ones,
// and those whose reference is another one now. references are by variant.
func PutVariants(ctx context.Context, tx pgx.Tx, c Catalog, references map[string]string) ([]Key, error) {
	names, refs := make([]string, 0, len(references)), make([]string, 0, len(references))
	for name, ref := range references {
		names, refs = append(names, name), append(refs, Storable(ref))
	}
	rows, err := tx.Query(ctx, `insert into catalog.variants as v (tenant, stream, variant, reference)
		select $1, $2, n, r from unnest($3::text[], $4::text[]) as u(n, r) order by n
		on conflict (tenant, stream, variant) do update set reference = excluded.reference
		where v.reference <> excluded.reference
		returning tenant, stream, variant`, c.Tenant, c.Stream, names, refs)
	if err != nil {
		return nil, pg.Err(err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Key])
	if err != nil {
		return nil, pg.Err(err)
	}
	return keys, dropUnused(ctx, tx, c.Tenant) // a cluster may have moved on since its version was read
}
