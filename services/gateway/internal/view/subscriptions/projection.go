// Package subscriptions is the read model of subscriptions: their intent, what it was resolved to, and the conditions
// that OLM gives them (R-SUB §4.5).
package subscriptions

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

// Name is the name of the projection.
const Name = "gateway.subscriptions"

// Tables of the read model.
const (
	subscriptions = "subscriptions"
	csvs          = "subscription_csvs"     // phases of ClusterServiceVersions
	catalogs      = "subscription_catalogs" // how the variants of catalogs do
	deprecated    = "subscription_deprecations"
)

// Projection folds what subscriptions ask for and what becomes of them: events of subscriptions, of their plans and
// ClusterServiceVersions, and of catalogs.
func Projection() projection.Projection {
	return readmodel.Projection(Name, 7, []string{subscriptions, csvs, catalogs, deprecated},
		append(readmodel.OnAll(events.KindInstallPlan, planEvent),
			readmodel.On(created), readmodel.On(generated), readmodel.On(changed), readmodel.On(deleted),
			readmodel.On(takenBack), readmodel.On(placed), readmodel.On(released),
			readmodel.On(rollbackRequested), readmodel.On(metadataChanged), readmodel.On(resolutionFailed),
			readmodel.On(resolved), readmodel.On(csvPhaseChanged), readmodel.On(csvRemoved), readmodel.On(catalogAdded),
			readmodel.On(catalogRemoved), readmodel.On(revisionPublished), readmodel.On(catalogLoadFailed))...)
}

// update changes the subscription of the event's subject; arguments count from $5.
func update(ctx context.Context, f readmodel.Fold, set string, args ...any) error {
	cluster, namespace, name, err := f.Scope()
	if err != nil {
		return err
	}
	return updateNamed(ctx, f, cluster, namespace, name, set, args...)
}

func updateNamed(ctx context.Context, f readmodel.Fold, cluster, namespace, name, set string, args ...any) error {
	return f.Exec(ctx, `update `+f.Table(subscriptions)+` set `+set+
		` where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`,
		append([]any{f.Tenant, cluster, namespace, name}, args...)...)
}

func created(ctx context.Context, f readmodel.Fold, p events.SubscriptionCreated) error {
	return insert(ctx, f, p.Spec, false, "")
}

func generated(ctx context.Context, f readmodel.Fold, p events.SubscriptionGenerated) error {
	return insert(ctx, f, p.Spec, true, "")
}

// replaceIntent is what is kept of a subscription that was there, when a fleet subscription asks for another: what has
// become of it so far.
const replaceIntent = ` on conflict (tenant, cluster, namespace, name) do update set package = excluded.package,
	channel = excluded.channel, catalog = excluded.catalog, catalog_namespace = excluded.catalog_namespace,
	starting_csv = excluded.starting_csv, approval = excluded.approval, config = excluded.config,
	updated = excluded.updated, version = excluded.version, spec_event = excluded.spec_event,
	spec_since = excluded.spec_since`

// placed makes the subscription where there is none, and replaces its intent otherwise.
func placed(ctx context.Context, f readmodel.Fold, p events.SubscriptionPlaced) error {
	if err := insert(ctx, f, p.Spec, false, replaceIntent); err != nil {
		return err
	}
	return update(ctx, f, `owner = $5, target = $6, rollback_from = $7, rollback_to = $8`, p.Owner,
		model.TargetOf(p.Target, p.Rollout), p.Rollback.From, p.Rollback.To)
}

// released leaves the target: it holds until somebody changes the subscription.
func released(ctx context.Context, f readmodel.Fold, _ events.SubscriptionReleased) error {
	return update(ctx, f, `owner = '', updated = $5, version = $6`, f.Time, f.Version)
}

func insert(
	ctx context.Context, f readmodel.Fold, s events.SubscriptionSpec, generated bool, otherwise string,
) error {
	cluster, namespace, name, err := f.Scope()
	if err != nil {
		return err
	}
	return f.Exec(ctx, `insert into `+f.Table(subscriptions)+
		` (tenant, cluster, namespace, name, package, channel, catalog, catalog_namespace, starting_csv,
			approval, config, generated, current_csv, installed_csv, plan_id, plan_name, plan_generation, plan_phase, plan_event,
			failed_reason, failed_document, failed_event, created, updated, stream, version, spec_event, spec_since)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, '', '', '', '', 0, '', '', '', '', '', $13, $13, $14, $15, $16, $13)`+otherwise,
		f.Tenant, cluster, namespace, name, s.Package, s.Channel, s.Catalog, s.CatalogNamespace, s.StartingCSV,
		s.Approval, s.Config, generated, f.Time, f.Stream, f.Version, f.ID)
}

func changed(ctx context.Context, f readmodel.Fold, p events.SubscriptionChanged) error {
	rollback, err := rollbackAfter(ctx, f, p)
	if err != nil {
		return err
	}
	s := p.Spec
	return update(ctx, f,
		`package = $5, channel = $6, catalog = $7, catalog_namespace = $8, starting_csv = $9, approval = $10, config = $11,
		updated = $12, version = $13, spec_event = $14, spec_since = $12, rollback_from = $15, rollback_to = $16,
		owner = '', target = null`,
		s.Package, s.Channel, s.Catalog, s.CatalogNamespace, s.StartingCSV, s.Approval, s.Config, f.Time, f.Version,
		f.ID, rollback.From, rollback.To)
}

func rollbackRequested(ctx context.Context, f readmodel.Fold, p events.SubscriptionRollbackRequested) error {
	rollback, err := rollbackAfter(ctx, f, p)
	if err != nil {
		return err
	}
	return update(ctx, f, `rollback_from = $5, rollback_to = $6, updated = $7, version = $8`, rollback.From, rollback.To,
		f.Time, f.Version)
}

// rollbackAfter is the rollback that holds after an event, as the aggregate decides.
func rollbackAfter(
	ctx context.Context, f readmodel.Fold, p events.Payload,
) (events.SubscriptionRollbackRequested, error) {
	now := subscription.State{Created: true}
	cluster, namespace, name, err := f.Scope()
	if err != nil {
		return now.Rollback, err
	}
	err = f.Tx.QueryRow(ctx, `select rollback_from, rollback_to from `+f.Table(subscriptions)+
		` where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`,
		f.Tenant, cluster, namespace, name).Scan(&now.Rollback.From, &now.Rollback.To)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return now.Rollback, err
	}
	now, err = subscription.Evolve(now, p)
	return now.Rollback, err
}

func metadataChanged(ctx context.Context, f readmodel.Fold, p events.SubscriptionMetadataChanged) error {
	return update(ctx, f, `labels = $5, annotations = $6, updated = $7, version = $8`,
		readmodel.Labels(p.Metadata), p.Metadata.Annotations, f.Time, f.Version)
}

func deleted(ctx context.Context, f readmodel.Fold, _ events.SubscriptionDeleted) error {
	return end(ctx, f)
}

func takenBack(ctx context.Context, f readmodel.Fold, _ events.SubscriptionRemoved) error {
	return end(ctx, f)
}

func end(ctx context.Context, f readmodel.Fold) error {
	cluster, namespace, name, err := f.Scope()
	if err != nil {
		return err
	}
	return f.Exec(ctx, `delete from `+f.Table(subscriptions)+
		` where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`,
		f.Tenant, cluster, namespace, name)
}

func resolutionFailed(ctx context.Context, f readmodel.Fold, p events.ResolutionFailed) error {
	return update(ctx, f,
		`failed_reason = $5, failed_document = $6, failed_event = $7, failed_since = $8, updated = $8, version = $9,
		missing_event = '', missing_since = null`,
		p.Reason, p.Explanation, f.ID, f.Time, f.Version)
}

// resolved sets where the subscription moves to; it has arrived if the CSV exists, in whatever phase
// (R-SUB §4.3).
func resolved(ctx context.Context, f readmodel.Fold, p events.ResolutionSucceeded) error {
	cluster, namespace, name, err := f.Scope()
	if err != nil {
		return err
	}
	err = update(ctx, f,
		`failed_reason = '', failed_document = '', failed_event = '', failed_since = null, updated = $6, version = $7,
		current_csv = coalesce(nullif($5, ''), current_csv),
		missing_event = case when $8 then '' else missing_event end, missing_since = case when $8 then null else missing_since end`,
		p.CSV, f.Time, f.Version, p.Plan == "")
	if err != nil {
		return err
	}
	return f.Exec(ctx, `update `+f.Table(subscriptions)+
		` s set installed_csv = $5, installed_event = $6, installed_since = $7
		where tenant = $1 and cluster = $2 and namespace = $3 and name = $4 and installed_csv <> $5
		and exists (select from `+f.Table(csvs)+` c where c.tenant = $1 and c.cluster = $2 and c.namespace = $3 and c.name = $5)`,
		f.Tenant, cluster, namespace, name, p.CSV, f.ID, f.Time)
}

func csvPhaseChanged(ctx context.Context, f readmodel.Fold, p events.CSVPhaseChanged) error {
	cluster, namespace, name, err := f.Scope()
	if err != nil {
		return err
	}
	err = f.Exec(ctx, `insert into `+f.Table(csvs)+
		` (tenant, cluster, namespace, name, phase) values ($1, $2, $3, $4, $5)
		on conflict (tenant, cluster, namespace, name) do update set phase = excluded.phase`, f.Tenant, cluster, namespace, name, p.Phase)
	if err != nil {
		return err
	}
	return f.Exec(ctx, `update `+f.Table(subscriptions)+
		` set installed_csv = $4, installed_event = $6, installed_since = $5, updated = $5
		where tenant = $1 and cluster = $2 and namespace = $3 and current_csv = $4 and installed_csv <> $4`,
		f.Tenant, cluster, namespace, name, f.Time, f.ID)
}

func csvRemoved(ctx context.Context, f readmodel.Fold, _ events.CSVRemoved) error {
	cluster, namespace, name, err := f.Scope()
	if err != nil {
		return err
	}
	err = f.Exec(ctx, `delete from `+f.Table(csvs)+
		` where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`,
		f.Tenant, cluster, namespace, name)
	if err != nil {
		return err
	}
	return f.Exec(ctx, `update `+f.Table(subscriptions)+
		` set installed_csv = '', installed_event = $6, installed_since = $5, updated = $5
		where tenant = $1 and cluster = $2 and namespace = $3 and installed_csv = $4`, f.Tenant, cluster, namespace, name, f.Time, f.ID)
}
