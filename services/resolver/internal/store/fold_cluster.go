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
)

// clusterFolds folds what is known of clusters: whether they are registered, their labels, taints and version.
type clusterFolds struct{ dirty *dirtyScopes }

// registered takes up work that waited while the cluster was away.
func (f *clusterFolds) registered(ctx context.Context, tx pgx.Tx, e eventlog.Recorded,
	p events.ClusterRegistered,
) error {
	labels := p.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	if err := exec(ctx, tx, `insert into resolver.clusters (tenant, name, labels) values ($1, $2, $3)
		on conflict (tenant, name) do update set removed = false, labels = excluded.labels, taints = '{}',
		facts = '{}', cordoned = false`, e.Tenant, p.Name, labels); err != nil {
		return err
	}
	return f.dirty.markCluster(ctx, tx, e, p.Name)
}

// labelled follows other labels of a cluster: what a policy chose there by labels and no longer does, or does
// now, is dirty.
func (f *clusterFolds) labelled(ctx context.Context, tx pgx.Tx, e eventlog.Recorded,
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
	return f.dirty.markChosen(ctx, tx, e, moved)
}

// tainted notes other taints of a cluster. No scope is dirty: they concern fleet subscriptions alone.
func (f *clusterFolds) tainted(ctx context.Context, tx pgx.Tx, e eventlog.Recorded,
	p events.ClusterTaintsChanged,
) error {
	return exec(ctx, tx, `update resolver.clusters set taints = coalesce($3, '{}'::jsonb)
		where tenant = $1 and name = $2`, e.Tenant, e.Subject, p.Taints)
}

// factsObserved notes what a cluster is made of. No scope is dirty: fleet subscriptions alone choose by it.
func (f *clusterFolds) factsObserved(ctx context.Context, tx pgx.Tx, e eventlog.Recorded,
	p events.ClusterFactsObserved,
) error {
	return exec(ctx, tx, `update resolver.clusters set facts = $3 where tenant = $1 and name = $2`, e.Tenant, e.Subject,
		p.Facts)
}

func (f *clusterFolds) removed(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.ClusterRemoved) error {
	if err := exec(ctx, tx, `insert into resolver.clusters (tenant, name, removed) values ($1, $2, true)
		on conflict (tenant, name) do update set removed = true, minor = '', kubernetes = ''`, e.Tenant, p.Name); err != nil {
		return err
	}
	return dropUnused(ctx, tx, e.Tenant)
}

func (f *clusterFolds) cordoned(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, _ events.ClusterCordoned) error {
	return f.setCordoned(ctx, tx, e, true)
}

func (f *clusterFolds) uncordoned(ctx context.Context, tx pgx.Tx, e eventlog.Recorded,
	_ events.ClusterUncordoned,
) error {
	return f.setCordoned(ctx, tx, e, false)
}

// setCordoned wakes the scopes that wait for the end of it. A proposal that is being written finds that the count of
// changes moved on, and is decided again.
func (f *clusterFolds) setCordoned(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, cordoned bool) error {
	if err := exec(ctx, tx, `update resolver.clusters set cordoned = $3 where tenant = $1 and name = $2`, e.Tenant,
		e.Subject, cordoned); err != nil {
		return err
	}
	return f.dirty.clusterChanged(ctx, tx, e, e.Subject)
}

// observed notes which version of Kubernetes a cluster runs. With another one, its scopes see other variants
// of templated catalogs: these move by themselves (R-CAT-92).
func (f *clusterFolds) observed(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.ClusterObserved) error {
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
		if err := f.dirty.clusterChanged(ctx, tx, e, e.Subject); err != nil {
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
	return f.dirty.markCluster(ctx, tx, e, e.Subject)
}
