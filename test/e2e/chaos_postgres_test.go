package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestFaultsOfPostgres harms the record while portals write. DESIGN D1, D4.
func TestFaultsOfPostgres(t *testing.T) {
	t.Parallel()
	w := newDurableWorld(t)
	w.tried([]fault{
		{name: "the postmaster is killed", do: func(w *world) {
			w.must(w.Postgres().Crash())
			w.eventually("what the postmaster has left lets a new one start", func() (string, bool) {
				err := w.StartPostgres(w.ctx)
				return fmt.Sprint(err), err == nil
			})
		}},
		{name: "away for a minute", do: func(w *world) {
			w.must(w.Postgres().Stop())
			w.during(time.Minute)
			w.must(w.StartPostgres(w.ctx))
		}},
		{name: "a session is idle in a transaction on the tables of the log", do: func(w *world) {
			w.idleInTransaction(`select count(*) from eventlog.events, eventlog.streams, eventlog.appended`)
		}},
		{name: "a session holds a lock on the tables of the log", do: func(w *world) {
			w.idleInTransaction(`lock table eventlog.events, eventlog.streams in share mode`)
		}},
		{name: "all sessions are ended again and again", do: func(w *world) {
			w.repeatedly(30*time.Second, 300*time.Millisecond, func() {
				_, err := w.record.Exec(w.ctx, `select pg_terminate_backend(pid) from pg_stat_activity
					where pid <> pg_backend_pid() and usename like 'chandler_%'`)
				w.must(err)
			})
		}},
		{name: "no connection is left", do: (*world).noConnectionLeft},
	})
}

// idleInTransaction holds what a statement takes, and a snapshot.
func (w *world) idleInTransaction(statement string) {
	w.t.Helper()
	conn, err := pgx.Connect(w.ctx, w.Postgres().AdminURL())
	w.must(err)
	defer conn.Close(context.WithoutCancel(w.ctx)) //nolint:errcheck // it ends the transaction, whatever it says
	tx, err := conn.BeginTx(w.ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	w.must(err)
	_, err = tx.Exec(w.ctx, statement)
	w.must(err)
	w.during(30 * time.Second)
	w.must(tx.Rollback(w.ctx))
}

// noConnectionLeft takes every connection that the server gives, and ends those of the services.
func (w *world) noConnectionLeft() {
	w.t.Helper()
	var taken []*pgx.Conn
	defer func() {
		for _, c := range taken {
			_ = c.Close(context.WithoutCancel(w.ctx)) // it may have been ended
		}
	}()
	w.repeatedly(30*time.Second, 100*time.Millisecond, func() {
		for {
			c, err := pgx.Connect(w.ctx, w.Postgres().RoleURL("chandler_resolver"))
			if err != nil {
				break // none is left but those that are kept for superusers
			}
			taken = append(taken, c)
		}
		_, err := w.record.Exec(w.ctx, `select pg_terminate_backend(pid) from pg_stat_activity
			where usename in ('chandler_gateway', 'chandler_installer', 'chandler_catalog_indexer')`)
		w.must(err)
	})
}
