package view

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func subscriptionsProjection() projection.Projection {
	types := typesOf(events.SubscriptionCreated{}, events.SubscriptionGenerated{}, events.SubscriptionChanged{}, events.SubscriptionDeleted{},
		events.SubscriptionRollbackRequested{}, events.SubscriptionMetadataChanged{},
		events.ResolutionFailed{}, events.ResolutionSucceeded{}, events.CSVPhaseChanged{}, events.CSVRemoved{},
		events.CatalogAdded{}, events.CatalogRemoved{}, events.CatalogRevisionPublished{}, events.CatalogLoadFailed{})
	return projection.Projection{
		Name: Subscriptions, Version: 5, Schema: schema,
		Tables: []string{"subscriptions", "subscription_csvs", "subscription_catalogs", "subscription_deprecations"},
		Types:  append(types, planTypes()...),
		Apply:  applySubscriptionEvent,
	}
}

// subscriptionFold is one event and the tables that it goes into.
type subscriptionFold struct {
	tx                         pgx.Tx
	e                          eventlog.Recorded
	subs, csvs, catalogs, ends string // tables; ends is that of deprecations
	cluster, namespace, name   string // of the event's subject
}

func applySubscriptionEvent(ctx context.Context, tx pgx.Tx, t projection.Tables, e eventlog.Recorded) error {
	f := subscriptionFold{
		tx: tx, e: e, subs: t.Name("subscriptions"), csvs: t.Name("subscription_csvs"), catalogs: t.Name("subscription_catalogs"),
		ends: t.Name("subscription_deprecations"),
	}
	if e.StreamID.Kind == events.KindCatalog {
		return f.catalog(ctx)
	}
	var err error
	if f.cluster, f.namespace, f.name, err = scope(e); err != nil {
		return err
	}
	switch e.StreamID.Kind {
	case events.KindSubscription:
		return f.subscription(ctx)
	case events.KindCSV:
		return f.csv(ctx)
	case events.KindInstallPlan:
		return f.plan(ctx)
	default:
		return unknown(e)
	}
}

// update changes the subscription of the event's subject; arguments count from $5.
func (f subscriptionFold) update(ctx context.Context, set string, args ...any) error {
	return exec(ctx, f.tx, `update `+f.subs+` set `+set+` where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`,
		append([]any{f.e.Tenant, f.cluster, f.namespace, f.name}, args...)...)
}

func (f subscriptionFold) subscription(ctx context.Context) error {
	e := f.e
	switch p := e.Payload.(type) {
	case events.SubscriptionCreated:
		return f.insert(ctx, p.Spec, false)
	case events.SubscriptionGenerated:
		return f.insert(ctx, p.Spec, true)
	case events.SubscriptionChanged:
		s := p.Spec
		return f.update(ctx, `package = $5, channel = $6, catalog = $7, catalog_namespace = $8, starting_csv = $9, approval = $10, config = $11,
			updated = $12, version = $13, spec_event = $14, spec_since = $12, rollback_from = '', rollback_to = ''`,
			s.Package, s.Channel, s.Catalog, s.CatalogNamespace, s.StartingCSV, s.Approval, s.Config, e.Time, e.Version, e.ID)
	case events.SubscriptionRollbackRequested:
		return f.update(ctx, `rollback_from = $5, rollback_to = $6, updated = $7, version = $8`, p.From, p.To, e.Time, e.Version)
	case events.SubscriptionMetadataChanged:
		return f.update(ctx, `labels = $5, annotations = $6, updated = $7, version = $8`, labelsOf(p.Metadata), p.Metadata.Annotations, e.Time, e.Version)
	case events.SubscriptionDeleted:
		return exec(ctx, f.tx, `delete from `+f.subs+` where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`,
			e.Tenant, f.cluster, f.namespace, f.name)
	case events.ResolutionFailed:
		return f.update(ctx, `failed_reason = $5, failed_document = $6, failed_event = $7, failed_since = $8, updated = $8, version = $9,
			missing_event = '', missing_since = null`,
			p.Reason, p.Explanation, e.ID, e.Time, e.Version)
	case events.ResolutionSucceeded:
		return f.resolved(ctx, p)
	default:
		return unknown(e)
	}
}

func (f subscriptionFold) insert(ctx context.Context, s events.SubscriptionSpec, generated bool) error {
	e := f.e
	return exec(ctx, f.tx, `insert into `+f.subs+` (tenant, cluster, namespace, name, package, channel, catalog, catalog_namespace, starting_csv,
			approval, config, generated, current_csv, installed_csv, plan_id, plan_name, plan_generation, plan_phase, plan_reason, plan_event,
			failed_reason, failed_document, failed_event, created, updated, stream, version, spec_event, spec_since)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, '', '', '', '', 0, '', '', '', '', '', '', $13, $13, $14, $15, $16, $13)`,
		e.Tenant, f.cluster, f.namespace, f.name, s.Package, s.Channel, s.Catalog, s.CatalogNamespace, s.StartingCSV,
		s.Approval, s.Config, generated, e.Time, e.Stream, e.Version, e.ID)
}

// resolved sets where the subscription moves to; it has arrived if the CSV exists, in whatever phase
// (R-SUB §4.3).
func (f subscriptionFold) resolved(ctx context.Context, p events.ResolutionSucceeded) error {
	const arrived = `where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`
	key := []any{f.e.Tenant, f.cluster, f.namespace, f.name}
	err := f.update(ctx, `failed_reason = '', failed_document = '', failed_event = '', failed_since = null, updated = $6, version = $7,
		current_csv = coalesce(nullif($5, ''), current_csv),
		missing_event = case when $8 then '' else missing_event end, missing_since = case when $8 then null else missing_since end`,
		p.CSV, f.e.Time, f.e.Version, p.Plan == "")
	if err != nil {
		return err
	}
	return exec(ctx, f.tx, `update `+f.subs+` s set installed_csv = $5, installed_event = $6, installed_since = $7 `+arrived+` and installed_csv <> $5
		and exists (select from `+f.csvs+` c where c.tenant = $1 and c.cluster = $2 and c.namespace = $3 and c.name = $5)`,
		append(key, p.CSV, f.e.ID, f.e.Time)...)
}

func (f subscriptionFold) csv(ctx context.Context) error {
	e := f.e
	key := []any{e.Tenant, f.cluster, f.namespace, f.name}
	switch p := e.Payload.(type) {
	case events.CSVPhaseChanged:
		err := exec(ctx, f.tx, `insert into `+f.csvs+` (tenant, cluster, namespace, name, phase) values ($1, $2, $3, $4, $5)
			on conflict (tenant, cluster, namespace, name) do update set phase = excluded.phase`, append(key, p.Phase)...)
		if err != nil {
			return err
		}
		return exec(ctx, f.tx, `update `+f.subs+` set installed_csv = $4, installed_event = $6, installed_since = $5, updated = $5
			where tenant = $1 and cluster = $2 and namespace = $3 and current_csv = $4 and installed_csv <> $4`, append(key, e.Time, e.ID)...)
	case events.CSVRemoved:
		if err := exec(ctx, f.tx, `delete from `+f.csvs+` where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`, key...); err != nil {
			return err
		}
		return exec(ctx, f.tx, `update `+f.subs+` set installed_csv = '', installed_event = $6, installed_since = $5, updated = $5
			where tenant = $1 and cluster = $2 and namespace = $3 and installed_csv = $4`, append(key, e.Time, e.ID)...)
	default:
		return unknown(e)
	}
}

func (f subscriptionFold) plan(ctx context.Context) error {
	switch p := f.e.Payload.(type) {
	case events.InstallPlanProposed:
		return f.proposed(ctx, p)
	case events.InstallPlanSuperseded, events.InstallPlanRejected:
		// The reference and the target are cleared, and resolution runs again (R-SUB-21); until that says something
		// else, or another plan is there, the subscription waits for one that is not (InstallPlanMissing). A plan without a
		// phase is not shown; which one it was is kept for a start that crossed this.
		return f.planUpdate(ctx, `plan_phase = '', plan_reason = '', plan_event = $5, plan_since = $6,
			current_csv = installed_csv, missing_event = $5, missing_since = $6`)
	case events.InstallPlanApprovalGiven, events.InstallPlanObstaclesSettled, events.InstallPlanMetadataChanged:
		return nil // it waits as before: for the next one, since its proposal, or for its executor
	case events.InstallPlanApproved:
		return f.planUpdate(ctx, `plan_phase = 'Installing', plan_reason = '', plan_event = $5, plan_since = $6, plan_expires = $7`, p.Expires)
	case events.InstallPlanStarted:
		return f.planUpdate(ctx, `plan_phase = 'Installing', plan_reason = '', plan_event = $5, plan_since = $6, plan_begun = true,
			missing_event = '', missing_since = null`)
	case events.InstallPlanBlocked:
		return f.planUpdate(ctx, `plan_reason = $7, plan_event = $5, plan_since = $6`, p.Reason)
	case events.InstallPlanFinished:
		return f.planUpdate(ctx, `plan_phase = 'Complete', plan_reason = '', plan_event = $5, plan_since = $6`)
	case events.InstallPlanFailed:
		return f.planUpdate(ctx, `plan_phase = 'Failed', plan_reason = $7, plan_event = $5, plan_since = $6`, p.Reason)
	default:
		return unknown(f.e)
	}
}

// planUpdate changes the subscriptions that refer to the plan; $5 is the event, $6 its time,
// arguments count from $7.
func (f subscriptionFold) planUpdate(ctx context.Context, set string, args ...any) error {
	return exec(ctx, f.tx, `update `+f.subs+` set updated = $6, `+set+` where tenant = $1 and cluster = $2 and namespace = $3 and plan_name = $4`,
		append([]any{f.e.Tenant, f.cluster, f.namespace, f.name, f.e.ID, f.e.Time}, args...)...)
}

// windowsOf are the maintenance windows of a plan, never null.
func windowsOf(p events.InstallPlanProposed) []events.WindowGroup {
	return append([]events.WindowGroup{}, p.Windows...)
}

// proposed makes every subscription that the plan serves refer to it (R-IP-1).
func (f subscriptionFold) proposed(ctx context.Context, p events.InstallPlanProposed) error {
	phase := installplan.Installing
	if p.Approval == installplan.Manual {
		phase = installplan.RequiresApproval
	}
	for _, b := range p.Bundles {
		for _, s := range b.Subscriptions {
			f.name = s[strings.LastIndex(s, "/")+1:]
			err := f.update(ctx, `current_csv = $5, plan_id = $6, plan_name = $7, plan_generation = $8, plan_phase = $9, plan_reason = '',
				plan_event = $10, plan_since = $11, updated = $11, missing_event = '', missing_since = null,
				plan_approval = $12, plan_begun = false, plan_expires = null, plan_windows = $13`,
				b.CSV, p.Plan, p.Name, p.Generation, string(phase), f.e.ID, f.e.Time, p.Approval, windowsOf(p))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (f subscriptionFold) catalog(ctx context.Context) error {
	switch p := f.e.Payload.(type) {
	case events.CatalogAdded:
		return f.catalogState(ctx, "", model.CatalogLoading, "")
	case events.CatalogRevisionPublished:
		if err := f.catalogState(ctx, p.Variant, model.CatalogReady, ""); err != nil {
			return err
		}
		return f.revision(ctx, p)
	case events.CatalogLoadFailed:
		return f.catalogState(ctx, p.Variant, model.CatalogFailed, p.Reason)
	case events.CatalogRemoved:
		// One row stays, so that who follows the catalog is told when it went.
		if err := exec(ctx, f.tx, `delete from `+f.catalogs+` where tenant = $1 and subject = $2`, f.e.Tenant, f.e.Subject); err != nil {
			return err
		}
		if err := exec(ctx, f.tx, `delete from `+f.ends+` where tenant = $1 and subject = $2`, f.e.Tenant, f.e.Subject); err != nil {
			return err
		}
		return f.catalogState(ctx, "", catalogGone, "")
	default:
		return unknown(f.e)
	}
}

// catalogState notes how a variant of a catalog does. Since is when the state began, not when it was last confirmed.
func (f subscriptionFold) catalogState(ctx context.Context, variant, state, reason string) error {
	e := f.e
	return exec(ctx, f.tx, `insert into `+f.catalogs+` as c (tenant, subject, variant, state, reason, event_id, since) values ($1, $2, $3, $4, $5, $6, $7)
		on conflict (tenant, subject, variant) do update set state = excluded.state, reason = excluded.reason,
			event_id = case when c.state = excluded.state then c.event_id else excluded.event_id end,
			since = case when c.state = excluded.state then c.since else excluded.since end`,
		e.Tenant, e.Subject, variant, state, reason, e.ID, e.Time)
}

// revision notes which event brought the revision in service, and since which one things are deprecated (R-SUB-41).
func (f subscriptionFold) revision(ctx context.Context, p events.CatalogRevisionPublished) error {
	e := f.e
	if p.Revision == p.Previous {
		return nil
	}
	err := exec(ctx, f.tx, `update `+f.catalogs+` set revision_event = $4, revision_since = $5 where tenant = $1 and subject = $2 and variant = $3`,
		e.Tenant, e.Subject, p.Variant, e.ID, e.Time)
	for _, c := range p.Changes {
		if err != nil {
			return err
		}
		err = f.deprecated(ctx, p.Variant, c)
	}
	return err
}

func (f subscriptionFold) deprecated(ctx context.Context, variant string, c events.PackageChange) error {
	e := f.e
	if c.Change == "removed" || len(c.Undeprecated) > 0 {
		err := exec(ctx, f.tx, `delete from `+f.ends+` where tenant = $1 and subject = $2 and variant = $3 and package = $4 and ($5 or element = any ($6))`,
			e.Tenant, e.Subject, variant, c.Package, c.Change == "removed", c.Undeprecated)
		if err != nil {
			return err
		}
	}
	if len(c.Deprecated) == 0 {
		return nil
	}
	return exec(ctx, f.tx, `insert into `+f.ends+` (tenant, subject, variant, package, element, event_id, since)
		select $1, $2, $3, $4, element, $6, $7 from unnest($5::text[]) as element on conflict do nothing`,
		e.Tenant, e.Subject, variant, c.Package, c.Deprecated, e.ID, e.Time)
}
