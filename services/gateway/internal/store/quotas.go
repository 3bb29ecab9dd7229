package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/quota"
)

// Quotas keeps what tenants may have and ask for at most. Its zero value is ready for use.
type Quotas struct{}

// Get returns the bounds of a tenant, and when they were set; none where nobody has set any.
func (Quotas) Get(ctx context.Context, q pg.Querier, tenant string) (h model.HardQuota, set *time.Time, err error) {
	err = q.QueryRow(ctx, `select subscriptions, catalogs, requests, streams, updated from gateway.quotas
		where tenant = $1`, tenant).Scan(&h.Subscriptions, &h.Catalogs, &h.RequestsPerSecond, &h.Streams, &set)
	if errors.Is(err, pgx.ErrNoRows) {
		return h, nil, nil
	}
	return h, set, errs.Wrap(errs.KindOf(pg.Err(err)), err, "read the quota of tenant %s", tenant)
}

// Set replaces the bounds of a tenant.
func (Quotas) Set(ctx context.Context, tx pgx.Tx, tenant string, h model.HardQuota, at time.Time) error {
	_, err := tx.Exec(ctx, `insert into gateway.quotas (tenant, subscriptions, catalogs, requests, streams, updated)
		values ($1, $2, $3, $4, $5, $6) on conflict (tenant) do update set subscriptions = excluded.subscriptions,
		catalogs = excluded.catalogs, requests = excluded.requests, streams = excluded.streams,
		updated = excluded.updated`, tenant, h.Subscriptions, h.Catalogs, h.RequestsPerSecond, h.Streams, at)
	return errs.Wrap(errs.KindOf(pg.Err(err)), err, "store the quota of tenant %s", tenant)
}

// Count returns how many subscriptions and catalogs a tenant has, by the heads of streams: they know of what was
// committed a moment ago, which no read model does.
func (Quotas) Count(ctx context.Context, q pg.Querier, tenant string) (subscriptions, catalogs int64, err error) {
	// The kinds are those of the index streams_bounded.
	err = q.QueryRow(ctx, `select count(*) filter (where kind = 'subscription'), count(*) filter (where kind = 'catalog')
		from eventlog.streams where tenant = $1 and kind in ('subscription', 'catalog') and not closed`, tenant).
		Scan(&subscriptions, &catalogs)
	return subscriptions, catalogs, errs.Wrap(errs.KindOf(pg.Err(err)), err, "count what tenant %s has", tenant)
}

// Admit refuses to make one more of a kind than the quota of the tenant allows. Where there is such a bound, nobody
// else passes until the transaction ends: who waited counts what was made meanwhile.
func (s Quotas) Admit(ctx context.Context, tx pgx.Tx, tenant string, kind events.Kind) error {
	var column, things string
	switch kind { // nothing else is bounded
	case events.KindSubscription:
		column, things = "subscriptions", "subscriptions"
	case events.KindCatalog:
		column, things = "catalogs", "catalogs"
	default:
		return nil
	}
	var hard *int64
	err := tx.QueryRow(ctx, `select `+column+` from gateway.quotas where tenant = $1 and `+column+` is not null
		for no key update`, tenant).Scan(&hard)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return errs.Wrap(errs.KindOf(pg.Err(err)), err, "lock the quota of tenant %s", tenant)
	}
	used, catalogs, err := s.Count(ctx, tx, tenant) // a statement of its own, which sees what was committed meanwhile
	if err != nil {
		return err
	}
	if kind == events.KindCatalog {
		used = catalogs
	}
	return quota.Check(tenant, things, hard, used)
}

// Hard are the bounds of all tenants that have some, with how many gateways serve. The pool sees all tenants.
func (Quotas) Hard(ctx context.Context, pool *pg.Pool) (all map[string]model.HardQuota, gateways int64, err error) {
	rows, err := pool.Query(ctx, `select tenant, subscriptions, catalogs, requests, streams from gateway.quotas`)
	if err != nil {
		return nil, 0, errs.Wrap(errs.KindOf(pg.Err(err)), err, "read quotas")
	}
	all = map[string]model.HardQuota{}
	var tenant string
	var h model.HardQuota
	_, err = pgx.ForEachRow(rows, []any{&tenant, &h.Subscriptions, &h.Catalogs, &h.RequestsPerSecond, &h.Streams},
		func() error {
			all[tenant] = h
			h = model.HardQuota{}
			return nil
		})
	if err == nil {
		err = pool.QueryRow(ctx, `select count(*) from eventlog.readers where service = 'gateway'
			and seen > clock_timestamp() - interval '1 minute'`).Scan(&gateways)
	}
	return all, gateways, errs.Wrap(errs.KindOf(pg.Err(err)), err, "read quotas")
}
