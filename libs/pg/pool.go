package pg

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Querier is what a query needs; a pool, a connection and a transaction satisfy it.
type Querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Pool is a pool of connections of one role to one database.
type Pool struct {
	*pgxpool.Pool
	log *slog.Logger
	// versioned says that statements find tables by a search path: those of read models, whose versions come and go.
	versioned bool
	// narrow says that sessions begin with no tenant, and may keep one that they were given until another is asked for.
	narrow bool
	// connected counts connections.
	connected atomic.Int64
}

// How a pool waits for a database that is away at start: quickly at first, then rarely enough that a
// fleet of services does not hammer a database that has just come back.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
	// sayAgain is how often the wait is mentioned in the log.
	sayAgain = 15 * time.Second
)

// Open opens a pool and waits until the database answers, for as long as ctx lives, saying so in the
// log. A URL that cannot be read and a credential that is refused are errors at once: waiting does not help.
func Open(ctx context.Context, url string, opts ...Option) (*Pool, error) {
	o := collect(opts)
	if url == "" { // a driver would look for a database on this machine, and wait for it
		return nil, errs.New(errs.Invalid, "%s is not set: it says where PostgreSQL is, and as whom", o.setting)
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "read the database URL, which %s gives", o.setting)
	}
	o.apply(cfg)
	p := &Pool{log: o.log, versioned: len(o.path) > 0, narrow: o.tenant != nil}
	cfg.AfterConnect = func(context.Context, *pgx.Conn) error {
		p.connected.Add(1)
		return nil
	}
	cfg.PrepareConn = confine
	if p.Pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, Err(err)
	}
	if err := p.await(ctx, cfg.ConnConfig); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Connected is how many connections the pool has made so far. A server that has crashed or was replaced may have lost
// commits that did not wait for the disk. It can only be read on a connection that is newer, and that is counted here
// before anything is read on it: what was read while the count was lower is to be read again.
func (p *Pool) Connected() int64 { return p.connected.Load() }

// await pings until the database answers.
func (p *Pool) await(ctx context.Context, cfg *pgx.ConnConfig) error {
	pause := firstRetry
	var said time.Time
	for {
		err := Err(p.Ping(ctx))
		if err == nil {
			if !said.IsZero() {
				p.log.InfoContext(ctx, "the database answers")
			}
			return nil
		}
		if !errs.Is(err, errs.Unavailable) || ctx.Err() != nil {
			return fmt.Errorf("connect to database %q as %q: %w", cfg.Database, cfg.User, err)
		}
		if time.Since(said) >= sayAgain {
			said = time.Now()
			p.log.WarnContext(ctx, "the database is away; waiting for it", "host", cfg.Host, "database", cfg.Database,
				"error", err)
		}
		if err := sleep(ctx, pause); err != nil {
			return fmt.Errorf("wait for database %q at %s: %w", cfg.Database, cfg.Host, err)
		}
		pause = min(2*pause, lastRetry)
	}
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// Tx runs fn in one READ COMMITTED transaction: committed when fn returns nil, rolled back otherwise.
// Errors of the driver come back as kinds (Err); errors of fn come back unchanged beside that.
func (p *Pool) Tx(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return Err(pgx.BeginTxFunc(ctx, p.Pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, fn))
}

// TenantTx is Tx in which row-level security shows and accepts rows of one tenant only. The tenant is set in the round
// trip that begins the transaction. A table that is not there is errs.Unavailable where the pool has a search path: the
// tables of a read model that is being made are missing until it is.
func (p *Pool) TenantTx(ctx context.Context, tenant string, fn func(tx pgx.Tx) error) error {
	begin := "begin isolation level read committed; set local chandler.tenant = " + literal(tenant)
	if p.narrow {
		ctx = Confine(ctx, tenant) // the next TenantRead finds it set
	}
	return p.versionErr(pgx.BeginTxFunc(ctx, p.Pool, pgx.TxOptions{BeginQuery: begin}, fn))
}

// TenantRead is TenantTx for what only reads, without a transaction: each statement of READ COMMITTED has a snapshot of
// its own in either. So it takes no round trip to begin and none to commit, and one to set the tenant only where the
// connection had another one before. Who uses the connection next has the tenant that it asks for, or none (Confine).
func (p *Pool) TenantRead(ctx context.Context, tenant string, fn func(q Querier) error) error {
	conn, err := p.Acquire(Confine(ctx, tenant))
	if err != nil {
		return Err(err)
	}
	defer conn.Release()
	return p.versionErr(fn(conn))
}

// versionErr is Err for statements that may find the tables of a read model missing while they are made.
func (p *Pool) versionErr(err error) error {
	if p.versioned && Undefined(err) {
		return errs.Wrap(errs.Unavailable, err, "a read model is being made")
	}
	return Err(err)
}

// literal writes a string as SQL, whatever standard_conforming_strings is: what begins a transaction takes no
// parameters.
func literal(s string) string {
	return "E'" + strings.NewReplacer("'", "''", `\`, `\\`).Replace(s) + "'"
}

// Send carries out a batch as one transaction in one round trip, where Tx takes one more to begin and one to commit:
// all of it happens or, at the first error of the database, nothing. A callback of the batch comes too late to prevent
// the commit: what must hold is checked by the statements themselves.
func (p *Pool) Send(ctx context.Context, b *pgx.Batch) error { return Err(p.SendBatch(ctx, b).Close()) }

// Snapshot runs fn in one read-only REPEATABLE READ transaction: all its queries see the same moment.
func (p *Pool) Snapshot(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return Err(pgx.BeginTxFunc(ctx, p.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, fn))
}
