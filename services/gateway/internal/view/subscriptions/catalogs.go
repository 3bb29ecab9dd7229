package subscriptions

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func catalogAdded(ctx context.Context, f readmodel.Fold, _ events.CatalogAdded) error {
	return catalogState(ctx, f, "", model.CatalogLoading, "")
}

func catalogLoadFailed(ctx context.Context, f readmodel.Fold, p events.CatalogLoadFailed) error {
	return catalogState(ctx, f, p.Variant, model.CatalogFailed, p.Reason)
}

func catalogRemoved(ctx context.Context, f readmodel.Fold, _ events.CatalogRemoved) error {
	// One row stays, so that the condition of a subscription says when its catalog was removed.
	if err := f.Exec(ctx, `delete from `+f.Table(catalogs)+` where tenant = $1 and subject = $2`, f.Tenant,
		f.Subject); err != nil {
		return err
	}
	if err := f.Exec(ctx, `delete from `+f.Table(deprecated)+` where tenant = $1 and subject = $2`, f.Tenant,
		f.Subject); err != nil {
		return err
	}
	return catalogState(ctx, f, "", catalogGone, "")
}

// catalogState sets how a variant of a catalog does. Since is when the state began, not when it was last confirmed.
func catalogState(ctx context.Context, f readmodel.Fold, variant, state, reason string) error {
	return f.Exec(ctx, `insert into `+f.Table(catalogs)+
		` as c (tenant, subject, variant, state, reason, event_id, since) values ($1, $2, $3, $4, $5, $6, $7)
		on conflict (tenant, subject, variant) do update set state = excluded.state, reason = excluded.reason,
			event_id = case when c.state = excluded.state then c.event_id else excluded.event_id end,
			since = case when c.state = excluded.state then c.since else excluded.since end`,
		f.Tenant, f.Subject, variant, state, reason, f.ID, f.Time)
}

// revisionPublished sets which event brought the revision in service, and since which one things are deprecated
// (R-SUB-41).
func revisionPublished(ctx context.Context, f readmodel.Fold, p events.CatalogRevisionPublished) error {
	err := catalogState(ctx, f, p.Variant, model.CatalogReady, "")
	if err != nil || p.Revision == p.Previous {
		return err
	}
	err = f.Exec(ctx, `update `+f.Table(catalogs)+
		` set revision_event = $4, revision_since = $5 where tenant = $1 and subject = $2 and variant = $3`,
		f.Tenant, f.Subject, p.Variant, f.ID, f.Time)
	for _, c := range p.Changes {
		if err != nil {
			return err
		}
		err = packageChanged(ctx, f, p.Variant, c)
	}
	return err
}

func packageChanged(ctx context.Context, f readmodel.Fold, variant string, c events.PackageChange) error {
	if c.Change == "removed" || len(c.Undeprecated) > 0 {
		err := f.Exec(ctx, `delete from `+f.Table(deprecated)+
			` where tenant = $1 and subject = $2 and variant = $3 and package = $4 and ($5 or element = any ($6))`,
			f.Tenant, f.Subject, variant, c.Package, c.Change == "removed", c.Undeprecated)
		if err != nil {
			return err
		}
	}
	if len(c.Deprecated) == 0 {
		return nil
	}
	return f.Exec(ctx, `insert into `+f.Table(deprecated)+
		` (tenant, subject, variant, package, element, event_id, since)
		select $1, $2, $3, $4, element, $6, $7 from unnest($5::text[]) as element on conflict do nothing`,
		f.Tenant, f.Subject, variant, c.Package, c.Deprecated, f.ID, f.Time)
}
