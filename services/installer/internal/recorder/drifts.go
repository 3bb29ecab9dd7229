package recorder

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

const (
	// collectEvery is how often differences are looked through whose retention is over; they are no hurry.
	collectEvery = time.Hour
	// collectRows bounds what one transaction of the collector removes, and so what one event tells of.
	collectRows = 500
	// collectSubject is the subject of the events about what went: one stream of a tenant.
	collectSubject = "installer"
)

// DriftCollector removes the differences that csv.drifted events name, once their retention is over. Any replica may
// run it: one works at a time.
type DriftCollector struct {
	Pool     *pg.Pool
	EventLog *eventlog.Log
	Log      *slog.Logger
	Now      func() time.Time
	// Keep is how long they are kept after an operator has last drifted so; 0 is as long as the events.
	Keep time.Duration
}

// Run collects until ctx ends. Trouble is logged and tried again.
func (c *DriftCollector) Run(ctx context.Context) error {
	t := time.NewTicker(collectEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		n, err := c.Collect(ctx)
		if err != nil && ctx.Err() == nil {
			c.Log.WarnContext(ctx, "cannot collect old differences; trying again", "error", err)
		} else if n > 0 {
			c.Log.InfoContext(ctx, "collected old differences of objects", "count", n)
		}
	}
}

// Collect removes what is older than the retention, page by page; an event in the transaction of a page says, for each
// tenant, what went. It is errs.Unavailable, and nothing goes, until all readers of the log know that event.
func (c *DriftCollector) Collect(ctx context.Context) (removed int, err error) {
	if c.Keep == 0 {
		return 0, nil
	}
	for n := collectRows; n == collectRows; removed += n {
		if err := c.Pool.Tx(ctx, func(tx pgx.Tx) error {
			n, err = c.page(ctx, tx)
			return err
		}); err != nil {
			return removed, fmt.Errorf("collect differences: %w", pg.Err(err))
		}
	}
	return removed, nil
}

// page removes the oldest ones, none where another replica does.
func (c *DriftCollector) page(ctx context.Context, tx pgx.Tx) (removed int, err error) {
	var alone bool
	if err := tx.QueryRow(ctx, `select pg_try_advisory_xact_lock(hashtext('installer.collect'))`).Scan(
		&alone); err != nil || !alone {
		return 0, err
	}
	now := c.Now().UTC()
	rows, err := tx.Query(ctx, `with old as (
		  select tenant, digest from installer.drifts where created < $1 order by created limit $2 for update skip locked),
		gone as (delete from installer.drifts d using old where d.tenant = old.tenant and d.digest = old.digest
		  returning d.tenant, d.digest, d.created)
		select tenant, array_agg(digest), min(created), max(created) from gone group by tenant`,
		now.Add(-c.Keep), collectRows)
	if err != nil {
		return 0, err
	}
	type goneDrifts struct {
		tenant         string
		ids            []string
		oldest, newest time.Time
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (g goneDrifts, err error) {
		return g, r.Scan(&g.tenant, &g.ids, &g.oldest, &g.newest)
	})
	if err != nil {
		return 0, err
	}
	for _, g := range list {
		removed += len(g.ids)
		m := events.Meta{Tenant: g.tenant, Source: events.Installer, Time: now}
		p := events.DriftsCollected{Removed: events.NewRemoved("drifts", g.ids, g.oldest, g.newest, c.Keep)}
		if _, err := c.EventLog.AppendFact(ctx, tx, m, namespaceCommand, events.KindRetention, collectSubject,
			p); err != nil {
			return 0, err
		}
	}
	return removed, nil
}
