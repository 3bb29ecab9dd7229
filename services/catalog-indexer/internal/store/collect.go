package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// Collector removes what nobody refers to.
type Collector struct {
	pool      *pg.Pool
	log       *eventlog.Log
	documents *Documents
}

// collectSubject is the subject of the events about what went: one stream of a tenant.
const collectSubject = "catalog-indexer"

const (
	// Grace is how long the collector leaves alone what nothing refers to: it may be of a load that is not
	// published yet. The longest load known takes minutes; a day also lets a catalog that fails to publish
	// be corrected without being read from its source again.
	Grace = 24 * time.Hour
	// MinRetention is the shortest retention: decisions are made on what is served, and write down what
	// they refer to when they are made, so that it must outlive its service by more than the longest of them.
	MinRetention = Grace
	// decodedFor is how long a remembered value without content is kept unused: it is a cache.
	decodedFor = 30 * 24 * time.Hour
	// unbounded takes the place of a retention without a bound. It is less than the largest duration.
	unbounded = 200 * 365 * 24 * time.Hour
	// collectRows bounds the rows that go in one transaction, and so how long a publication waits.
	collectRows = 1000
	// collectWait bounds how long the collector waits for those who store, since others wait behind it.
	collectWait = "2s"
)

// collectLock is the advisory lock of the collector: shared by those who make something refer to content,
// alone for who removes it.
const collectLock = `hashtext('catalog.collect')`

// share keeps the collector out until the transaction has ended. What the transaction finds stored stays,
// and what it refers to is seen by the collector's next turn.
func share(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock_shared(`+collectLock+`)`)
	return err
}

// Collected counts what a turn of the collector removed, by kind, and the bytes of it.
type Collected struct {
	Rows  map[string]int
	Bytes int64
	// PassedOver is what could not be read; what it may refer to was kept.
	PassedOver []error
	// Postponed is why nothing was removed that events refer to: a reader of the log does not know yet the event that
	// says so. It goes in a later turn.
	Postponed error
}

// Total is the sum of all rows.
func (c Collected) Total() int {
	n := 0
	for _, rows := range c.Rows {
		n += rows
	}
	return n
}

// Collect removes what nobody refers to (DESIGN D3). These hold what they refer to, for as long as they
// are there:
//
//	revisions in service, and those that left it within the retention → package documents, blobs
//	package documents that decisions have consulted (resolver_api.content_references) → themselves
//	package documents that are kept → contents of their bundles
//	plans (resolver_api), installed operators (installer_api), fetched bundle images → contents
//	bundles and remembered values → packs
//
// Steps go from what refers to what is referred to, each row in one transaction with the query for who
// refers to it, so that a process that is killed anywhere leaves only garbage for the next turn. An event in the same
// transaction says what went of that which events refer to: one for each tenant and collectRows rows of a kind.
//
// A retention of 0 is as long as the events.
func (g *Collector) Collect(ctx context.Context, retention time.Duration) (Collected, error) {
	c := Collected{Rows: map[string]int{}}
	if err := g.noteContents(ctx, &c); err != nil {
		return c, err
	}
	_, err := g.log.Newest(ctx, g.pool, events.CatalogsCollected{})
	if err != nil && !errs.Is(err, errs.Unavailable) {
		return c, err
	}
	c.Postponed = err
	for _, step := range collectSteps() {
		if step.recorded && c.Postponed != nil {
			continue
		}
		if err := g.collect(ctx, step, retention, &c); err != nil {
			return c, fmt.Errorf("collect %s: %w", step.kind, err)
		}
	}
	return c, nil
}

// collect carries out one step until nothing is left of it.
func (g *Collector) collect(ctx context.Context, step collectStep, retention time.Duration, c *Collected) error {
	for {
		var rows int
		var bytes int64
		err := g.pool.Tx(ctx, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `set local lock_timeout = '`+collectWait+`'`); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(`+collectLock+`)`); err != nil {
				return err
			}
			// A catalog that is not read again yet looks as if it had been removed.
			var atWork bool
			err := tx.QueryRow(ctx, `select eventlog.hold_work($1)`, IntentsConsumer).Scan(&atWork)
			if err != nil || !atWork {
				return err
			}
			rows, bytes, err = g.remove(ctx, tx, step, retention)
			return err
		})
		c.Rows[step.kind] += rows
		c.Bytes += bytes
		if err != nil || rows < collectRows {
			return pg.Err(err)
		}
	}
}

// removedRows is what one transaction removed of one tenant.
type removedRows struct {
	tenant              string
	rows                int
	bytes               int64
	ids                 []string
	oldest, newest, now time.Time
}

// remove removes the next rows of a step, and records which.
func (g *Collector) remove(ctx context.Context, tx pgx.Tx, step collectStep, retention time.Duration) (
	rows int, bytes int64, err error,
) {
	gone, err := removeRows(ctx, tx, step, retention)
	for _, r := range gone {
		rows += r.rows
		bytes += r.bytes
		if err := g.record(ctx, tx, step, r, retention); err != nil {
			return 0, 0, err
		}
	}
	return rows, bytes, err
}

func removeRows(ctx context.Context, tx pgx.Tx, step collectStep, retention time.Duration) ([]removedRows, error) {
	if retention == 0 {
		retention = unbounded
	}
	rows, err := tx.Query(ctx, step.sql, pgx.NamedArgs{
		"retention": retention, "grace": Grace, "unused": decodedFor, "limit": collectRows,
	})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r removedRows, err error) {
		return r, row.Scan(&r.tenant, &r.rows, &r.bytes, &r.ids, &r.oldest, &r.newest, &r.now)
	})
}

// record appends the event about what went, where the step is one of those of which events tell.
func (g *Collector) record(ctx context.Context, tx pgx.Tx, step collectStep, r removedRows,
	retention time.Duration,
) error {
	if !step.recorded {
		return nil
	}
	m := events.Meta{Tenant: r.tenant, Source: events.Indexer, Time: r.now.UTC()}
	_, err := g.log.AppendFact(ctx, tx, m, commandSpace, events.KindRetention, collectSubject, events.CatalogsCollected{
		Removed: events.NewRemoved(step.kind, r.ids, r.oldest, r.newest, retention),
	})
	return err
}

// noteContents fills in what package documents refer to that a release before has stored. One that cannot be
// read is passed over; what it may refer to stays (collectSteps).
func (g *Collector) noteContents(ctx context.Context, c *Collected) error {
	var tenant, d string
	for {
		err := g.pool.QueryRow(ctx, `select tenant, digest from catalog.packages
			where contents is null and (tenant, digest) > ($1, $2)
			order by 1, 2 limit 1`, tenant, d).Scan(&tenant, &d)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return pg.Err(err)
		}
		p, err := g.documents.Package(ctx, tenant, digest.Digest(d))
		switch {
		case err != nil && (ctx.Err() != nil || errs.Is(err, errs.Unavailable)):
			return err
		case err != nil:
			c.PassedOver = append(c.PassedOver, fmt.Errorf("package document %s of tenant %s: %w", d, tenant, err))
			continue
		}
		if _, err := g.pool.Exec(ctx, `update catalog.packages set contents = $3 where tenant = $1 and digest = $2`,
			tenant, d, contentRefs(p)); err != nil {
			return pg.Err(err)
		}
	}
}
