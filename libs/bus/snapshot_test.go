package bus_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
)

// While a snapshot is open, no move of a checkpoint and no poll reads the versions of before, and there is one
// checkpoint for each consumer whoever makes it.
func TestCheckpointsAreReadNewestFirst(t *testing.T) {
	t.Parallel()
	const moves, pages = 2000, 20 // the versions of before are on 25 pages, in an index with as many entries
	d := pgtest.DB(t)
	admin, pool := d.Pool(t, pgtest.Admin), d.Pool(t, "installer")
	holdSnapshot(t, admin)
	moveAlone(t, admin, pool, moves)
	var at, rows int
	err := pool.QueryRow(t.Context(), `select c.position, (select count(*) from eventlog.checkpoints
		where consumer = 'installer.bench') from eventlog.checkpoint('installer.bench') c`).Scan(&at, &rows)
	if err != nil {
		t.Fatal(err)
	}
	if at != moves || rows != 1 {
		t.Errorf("the checkpoint is at %d, want %d; %d rows", at, moves, rows)
	}
	for _, sql := range []string{
		`select * from eventlog.checkpoint('installer.bench')`,
		`select eventlog.at_work('installer.bench')`,
		`select eventlog.take_checkpoint('installer.bench')`,
		fmt.Sprintf(`select eventlog.move_checkpoint('installer.bench', 1, %d)`, moves+9),
	} {
		if n := pagesOf(t, pool, sql); n > pages {
			t.Errorf("%s reads %d pages, want %d at most", sql, n, pages)
		}
	}
	if _, err := admin.Exec(t.Context(), `insert into eventlog.checkpoints (consumer, tenant, epoch, position)
		values ('installer.bench', '*', 1, 0)`); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Exec(t.Context(), `insert into eventlog.sequencer default values`); err == nil {
		t.Error("the sequencer has a second row")
	}
	err = pool.QueryRow(t.Context(), `select count(*) from eventlog.checkpoints`).Scan(&rows)
	if err != nil || rows != 1 {
		t.Errorf("%d checkpoints (%v)", rows, err)
	}
}

// pagesOf is how many pages a statement reads, with a plan that is not made for a table of one page.
func pagesOf(t *testing.T, pool *pg.Pool, sql string) int {
	t.Helper()
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	err := pool.Tx(t.Context(), func(tx pgx.Tx) error {
		// the first time a session reads the catalogs of the database; the second time is what counts
		for _, do := range []string{`set local enable_seqscan = off`, sql} {
			if _, err := tx.Exec(t.Context(), do); err != nil {
				return err
			}
		}
		return tx.QueryRow(t.Context(), `explain (analyze, buffers, format json) `+sql).Scan(&plans)
	})
	if err != nil {
		t.Fatal(pg.Err(err))
	}
	return plans[0].Plan.Hit + plans[0].Plan.Read
}

// holdSnapshot keeps a snapshot open until the test ends, as that of a dump.
func holdSnapshot(tb testing.TB, admin *pg.Pool) {
	tb.Helper()
	tx, err := admin.BeginTx(tb.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // it only read
	if _, err := tx.Exec(tb.Context(), `select count(*) from eventlog.checkpoints`); err != nil {
		tb.Fatal(err)
	}
}

// moveAlone moves the checkpoint of installer.bench so many times, in the database alone.
func moveAlone(tb testing.TB, admin, pool *pg.Pool, moves int) {
	tb.Helper()
	if _, err := admin.Exec(tb.Context(), `update eventlog.sequencer set position = 1000000000`); err != nil {
		tb.Fatal(err)
	}
	const part = 1000 // a statement, which may take a minute
	for first := 1; first <= moves; first += part {
		if _, err := pool.Exec(tb.Context(), fmt.Sprintf(`do $$ begin
			for i in %d..%d loop
				perform eventlog.take_checkpoint('installer.bench');
				perform eventlog.move_checkpoint('installer.bench', 1, i);
				commit;
			end loop;
		end $$`, first, first+part-1)); err != nil {
			tb.Fatal(pg.Err(err))
		}
	}
}

// snapshotBatches is how many batches a consumer took while the snapshot of BenchmarkLongSnapshot was open.
const snapshotBatches = 25_000

// BenchmarkLongSnapshot is what the checkpoint of a batch and the poll of a consumer take after 25,000 batches, beside
// a snapshot that has been open since before these, as that of a dump, and without one.
func BenchmarkLongSnapshot(b *testing.B) {
	for _, open := range []bool{false, true} {
		b.Run(fmt.Sprintf("open=%v", open), func(b *testing.B) {
			d := pgtest.DB(b)
			admin, pool := d.Pool(b, pgtest.Admin), d.Pool(b, "installer")
			if open {
				holdSnapshot(b, admin)
			}
			c := &bus.Consumer{Name: "installer.bench", Log: eventlog.New(pool), Pool: pool}
			moveAlone(b, admin, pool, snapshotBatches)
			if !open { // what autovacuum does after a while
				if _, err := admin.Exec(b.Context(), `vacuum eventlog.checkpoints`); err != nil {
					b.Fatal(err)
				}
			}
			spent := map[string]time.Duration{}
			timed := func(name string, one func() error) {
				begun := time.Now()
				if err := one(); err != nil {
					b.Fatal(name, err)
				}
				spent[name] += time.Since(begun)
			}
			at := int64(snapshotBatches)
			for b.Loop() {
				at++
				timed("checkpoint", func() error { return c.Move(b.Context(), at) })
				timed("poll", func() error { return c.AtRest(b.Context()) })
			}
			for name, took := range spent {
				b.ReportMetric(float64(took.Microseconds())/float64(b.N)/1000, name+"-ms")
			}
		})
	}
}
