// Package accesslog keeps who asked the API for what (ADR 0037). Requests hand in what became of them and go on; rows
// are written in batches beside them. What a process that dies had not yet written, at most writeInterval of requests,
// is in its log alone, which has a line for each.
package accesslog

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const (
	// DefaultRetention is how long requests are kept: as long as an audit looks back at least (service.LeastRetention).
	DefaultRetention = 400 * day
	// LeastRetention is the least that may be set; the database refuses to drop more.
	LeastRetention = 30 * day

	day = 24 * time.Hour
	// writeInterval bounds what a process that dies has not written.
	writeInterval = time.Second
	// maxWaiting bounds the rows that wait while PostgreSQL is away: ten seconds of one busy identity. What comes then
	// is counted, and the count becomes a row.
	maxWaiting = 10_000
	// maxAddresses bounds the addresses whose refused requests are counted apart until they are written; those of
	// others are counted together, under otherAddresses.
	maxAddresses   = 256
	otherAddresses = "others"
	// keepInterval is how often days are made and dropped.
	keepInterval = time.Hour
	// lastWrite bounds the write at the end of the process.
	lastWrite = 2 * time.Second
)

// Log takes requests, writes and lists them.
type Log struct {
	pool *pg.Pool // for all tenants
	// reads sees one tenant at a time.
	reads *pg.Pool

	days *int // null: nothing is dropped
	slog *slog.Logger

	mu      sync.Mutex
	waiting waiting
}

// waiting is what is not written yet.
type waiting struct {
	rows    []row
	refused map[refusal]int // index in rows
	lost    int64
}

// refusal is what refused requests are counted by.
type refusal struct {
	tenant, token, address string
	status                 int
}

type row struct {
	tenant string
	model.AccessEntry
}

// New makes a log whose rows are kept for keep, or for ever where hold is set. Requests are written by pool, for all
// tenants, and listed by reads, for one.
func New(pool, reads *pg.Pool, keep time.Duration, hold bool, log *slog.Logger) (*Log, error) {
	if keep < LeastRetention {
		return nil, errs.New(errs.Invalid, "the access log is to be kept for %s; give at least %s (30 days)", keep,
			LeastRetention).At("access-log-retention", "")
	}
	l := &Log{pool: pool, reads: reads, slog: log}
	if !hold {
		days := int(keep / day)
		l.days = &days
	}
	return l, nil
}

// Take takes what became of a request. It never waits for the database.
func (l *Log) Take(a httpserver.Access) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting.take(a)
}

func (w *waiting) take(a httpserver.Access) {
	r := rowOf(a)
	if a.Status != http.StatusUnauthorized && a.Status != http.StatusTooManyRequests {
		w.add(r)
		return
	}
	key := refusal{r.tenant, r.Token, r.Address, r.Status}
	if _, known := w.refused[key]; !known && len(w.refused) >= maxAddresses {
		key.address, r.Address = otherAddresses, otherAddresses
	}
	if at, known := w.refused[key]; known {
		w.rows[at].Count++
	} else if w.add(r) {
		if w.refused == nil {
			w.refused = map[refusal]int{}
		}
		w.refused[key] = len(w.rows) - 1
	}
}

func (w *waiting) add(r row) bool {
	if len(w.rows) >= maxWaiting {
		w.lost += r.Count
		return false
	}
	w.rows = append(w.rows, r)
	return true
}

// back takes rows that could not be written; they come before those that were taken since.
func (w *waiting) back(old waiting) {
	since := w.rows
	w.rows, w.refused, w.lost = old.rows, nil, w.lost+old.lost
	for _, r := range since {
		w.add(r)
	}
}

// rowOf makes a row. Where nobody was recognised it concerns who runs the installation, and what a stranger wrote into
// a path is not kept.
func rowOf(a httpserver.Access) row {
	r := row{a.Caller.Tenant, model.AccessEntry{
		At: a.Began, Actor: a.Caller.Actor, Token: a.Caller.Token, Role: model.Role(a.Caller.Role), Address: a.Address,
		Via: a.Caller.Via, Method: a.Method, Route: a.Route, Path: a.Path, Status: a.Status,
		TookMicros: a.Took.Microseconds(),
		Request:    a.Request, Count: 1,
	}}
	if r.tenant == "" {
		r.tenant, r.Path = events.DefaultTenant, ""
	}
	return r
}

// Run makes and drops days, and writes until ctx ends, and once more then.
func (l *Log) Run(ctx context.Context) error {
	tick := time.NewTicker(writeInterval)
	defer tick.Stop()
	var kept time.Time
	for said := ""; ; {
		var err error
		if time.Since(kept) >= keepInterval {
			if err = l.Keep(ctx); err == nil {
				kept = time.Now()
			}
		}
		if err == nil {
			err = l.Write(ctx)
		}
		switch {
		case err == nil:
			said = ""
		case ctx.Err() == nil && err.Error() != said:
			said = err.Error()
			l.slog.WarnContext(ctx, "the access log is not written; trying again", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			l.writeLast(context.WithoutCancel(ctx))
			return nil
		}
	}
}

func (l *Log) writeLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastWrite)
	defer cancel()
	if err := l.Write(ctx); err != nil {
		l.slog.WarnContext(ctx, "the last requests are in this log alone", "error", err)
	}
}

// Keep makes the days that come and drops those that are older than the retention.
func (l *Log) Keep(ctx context.Context) error {
	var dropped int
	if err := l.pool.QueryRow(ctx, `select gateway.keep_access_log($1)`, l.days).Scan(&dropped); err != nil {
		return fmt.Errorf("make and drop days of the access log: %w", pg.Err(err))
	}
	if dropped > 0 {
		l.slog.InfoContext(ctx, "days of the access log are older than the retention and were dropped", "days", dropped)
	}
	return nil
}

// Write writes what waits. A clock that is wrong by more than a day is told as a day, since there are partitions for
// the days around today alone.
func (l *Log) Write(ctx context.Context) error {
	l.mu.Lock()
	now := l.waiting
	l.waiting = waiting{}
	l.mu.Unlock()
	rows := now.rows
	if now.lost > 0 {
		rows = append(slices.Clip(rows), row{events.DefaultTenant, model.AccessEntry{
			At: time.Now().UTC(), Count: now.lost,
		}})
	}
	if len(rows) == 0 {
		return nil
	}
	b := &pgx.Batch{}
	for _, r := range rows {
		b.Queue(`insert into gateway.access_log (tenant, at, id, actor, token, role, address, method, route, path, status,
			took_us, request, count, via)
			values ($1, least(greatest($2::timestamptz, now() - interval '1 day'), now() + interval '1 day'),
			$3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
			r.tenant, r.At, uuid.New(), r.Actor, r.Token, string(r.Role), r.Address, r.Method, r.Route, r.Path,
			r.Status, r.TookMicros, r.Request, r.Count, r.Via)
	}
	if err := l.pool.Send(ctx, b); err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waiting.back(now)
		return fmt.Errorf("write %d rows of the access log: %w", len(rows), err)
	}
	return nil
}

// List returns rows of the caller's tenant, newest first, and the cursor of the page after.
func (l *Log) List(
	ctx context.Context, who model.Caller, f model.AccessFilter, page model.Page,
) (items []model.AccessEntry, next []string, err error) {
	before, id, err := cursor(page.After)
	if err != nil {
		return nil, nil, err
	}
	var last uuid.UUID
	err = l.reads.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select id, at, actor, token, role, address, method, route, path, status, took_us, request, count,
			via
			from gateway.access_log
			where tenant = $1 and ($2::timestamptz is null or (at, id) < ($2, $3)) and ($4 = '' or actor = $4)
			  and ($5 = '' or token = $5) and ($6 = '' or address = $6) and status >= $7
			  and ($8::timestamptz is null or at >= $8) and ($9::timestamptz is null or at < $9)
			order by at desc, id desc limit $10`,
			who.Tenant, before, id, f.Actor, f.Token, f.Address, f.MinStatus, f.From, f.Until, page.Limit)
		if err != nil {
			return err
		}
		var e model.AccessEntry
		_, err = pgx.ForEachRow(rows, []any{
			&last, &e.At, &e.Actor, &e.Token, &e.Role, &e.Address, &e.Method, &e.Route, &e.Path, &e.Status,
			&e.TookMicros, &e.Request, &e.Count, &e.Via,
		}, func() error {
			e.At = e.At.UTC()
			items = append(items, e)
			return nil
		})
		return err
	})
	if err == nil && len(items) == page.Limit {
		next = []string{items[len(items)-1].At.Format(time.RFC3339Nano), last.String()}
	}
	return items, next, err
}

func cursor(after []string) (at *time.Time, id uuid.UUID, err error) {
	if len(after) == 0 {
		return nil, id, nil
	}
	t, err := time.Parse(time.RFC3339Nano, after[0])
	id, wrong := uuid.Parse(after[len(after)-1])
	if err != nil || wrong != nil {
		return nil, id, errs.New(errs.Invalid, "the cursor does not belong to this list").At("query.cursor", "cursor")
	}
	return &t, id, nil
}
