package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// clusterRegistered takes up work that waited while the cluster was away.
func (s *Store) clusterRegistered(ctx context.Context, tx pgx.Tx, e eventlog.Recorded,
	p events.ClusterRegistered,
) error {
	labels := p.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	if err := exec(ctx, tx, `insert into resolver.clusters (tenant, name, labels) values ($1, $2, $3)
		on conflict (tenant, name) do update set removed = false, labels = excluded.labels`, e.Tenant, p.Name, labels); err != nil {
		return err
	}
	return s.markCluster(ctx, tx, e, p.Name)
}

// clusterLabelled follows other labels of a cluster: what a policy chose there by labels and no longer does, or does
// now, is dirty.
func (s *Store) clusterLabelled(ctx context.Context, tx pgx.Tx, e eventlog.Recorded,
	p events.ClusterLabelsChanged,
) error {
	labels := p.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	var before map[string]string
	err := tx.QueryRow(ctx, `with former as (select labels from resolver.clusters where tenant = $1 and name = $2)
		update resolver.clusters set labels = $3 where tenant = $1 and name = $2 returning (select labels from former)`,
		e.Tenant, e.Subject, labels).Scan(&before)
	if errors.Is(err, pgx.ErrNoRows) { // let go of meanwhile
		return nil
	}
	if err != nil {
		return fmt.Errorf("note the labels of cluster %s: %w", e.Subject, pg.Err(err))
	}
	rows, err := tx.Query(ctx, `select name, spec from resolver.approval_policies where tenant = $1 order by name`,
		e.Tenant)
	if err != nil {
		return pg.Err(err)
	}
	policies, err := pgx.CollectRows(rows, scanPolicy)
	if err != nil {
		return fmt.Errorf("read the approval policies: %w", pg.Err(err))
	}
	var moved []events.PolicySelector
	for _, p := range policies {
		if sel, ok := p.Moved(e.Subject, before, labels); ok {
			moved = append(moved, sel)
		}
	}
	if len(moved) == 0 {
		return nil
	}
	return s.markChosen(ctx, tx, e, moved)
}

func (s *Store) clusterRemoved(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.ClusterRemoved) error {
	if err := exec(ctx, tx, `insert into resolver.clusters (tenant, name, removed) values ($1, $2, true)
		on conflict (tenant, name) do update set removed = true, minor = '', kubernetes = ''`, e.Tenant, p.Name); err != nil {
		return err
	}
	return dropUnused(ctx, tx, e.Tenant)
}

// clusterObserved notes which version of Kubernetes a cluster runs. With another one, its scopes see other variants
// of templated catalogs: these move by themselves (R-CAT-92).
func (s *Store) clusterObserved(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.ClusterObserved) error {
	version := p.KubernetesVersion
	minor, err := source.Variant(version)
	if err != nil { // unknown or unreadable: what is known stays
		return nil //nolint:nilerr // see above
	}
	moved, err := tx.Exec(ctx, `update resolver.clusters set kubernetes = $3 where tenant = $1 and name = $2
		and not removed and kubernetes <> $3`,
		e.Tenant, e.Subject, version)
	if err != nil {
		return fmt.Errorf("note the version of cluster %s: %w", e.Subject, pg.Err(err))
	}
	if moved.RowsAffected() > 0 {
		if err := s.clusterChanged(ctx, tx, e, e.Subject); err != nil {
			return err
		}
	}
	tag, err := tx.Exec(ctx, `update resolver.clusters set minor = $3 where tenant = $1 and name = $2 and not removed
		and minor <> $3`, e.Tenant, e.Subject, minor)
	if err != nil {
		return fmt.Errorf("note the version of cluster %s: %w", e.Subject, pg.Err(err))
	}
	if tag.RowsAffected() == 0 {
		return nil
	}
	if err := countCatalogChange(ctx, tx, e.Tenant); err != nil { // other catalogs are seen
		return err
	}
	if err := dropUnused(ctx, tx, e.Tenant); err != nil {
		return err
	}
	var templated bool
	if err := tx.QueryRow(ctx, `select exists (select from resolver.catalogs where tenant = $1 and templated)`,
		e.Tenant).Scan(&templated); err != nil {
		return pg.Err(err)
	}
	if !templated {
		return nil
	}
	return s.markCluster(ctx, tx, e, e.Subject)
}

func (s *Store) markCluster(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, name string) error {
	return s.markAll(ctx, tx, e, `select distinct cluster, namespace from resolver.subscriptions
		where tenant = $1 and cluster = $2`, e.Tenant, name)
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

// healthSet keeps what a catalog namespace is strict about (R-CAT-99), and makes dirty the scopes that asked for the
// health of any catalog: what is held up may go on, or another catalog holds it up, too. A scope that asked for none
// has planned what there is to plan, and plans are not taken back.
func (s *Store) healthSet(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.CatalogHealthSet) error {
	if err := countCatalogChange(ctx, tx, e.Tenant); err != nil {
		return err
	}
	err := exec(ctx, tx, `insert into resolver.catalog_health (tenant, cluster, namespace, strict)
		values ($1, $2, $3, $4)
		on conflict (tenant, cluster, namespace) do update set strict = excluded.strict`, e.Tenant, p.Cluster, p.Namespace, p.Mode == healthStrict)
	if err != nil {
		return err
	}
	return s.markAll(ctx, tx, e, `select distinct cluster, namespace from resolver.reads where tenant = $1 and kind = $2
		and $3 in ('', cluster)`,
		e.Tenant, string(resolution.ReadHealth), p.Cluster)
}

// healthStrict is the mode of events.CatalogHealthSet in which an unhealthy catalog blocks all who see it.
const healthStrict = "Strict"

// strictly is true of a catalog c whose own namespace, in its subject, is strict.
const strictly = `exists (select from resolver.catalog_health h where h.tenant = c.tenant and h.strict
	and (h.cluster, h.namespace) = (case when c.subject like '%/%/%' then split_part(c.subject, '/', 1) else '' end,
	  case when c.subject like '%/%/%' then split_part(c.subject, '/', 2) else '' end))`
