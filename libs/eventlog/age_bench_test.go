package eventlog_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// oldPartitions is how many partitions the log of an old installation has in these benchmarks.
const oldPartitions = 100

// age gives a log many partitions, and streams in the first, in the last and in all of them.
func (b bundle) age(tb testing.TB, partitions int) {
	tb.Helper()
	const rows = 200 // a partition, for the benchmark: what is measured is their number
	if _, err := b.admin.Exec(tb.Context(), `update eventlog.sequencer set position = partitioned - 400,
		partition_rows = $1`, rows); err != nil {
		tb.Fatal(err)
	}
	term := b.lead(tb)
	b.mustAppend(tb, "early", 0, registered("early"), replaced(1), replaced(2))
	for i := range partitions {
		version := int64(i)
		payload := replaced(i)
		if i == 0 {
			payload = registered("long")
		}
		b.mustAppend(tb, "long", version, payload)
		b.fillInbox(tb, fmt.Sprintf("p%d-", i), rows-1)
		b.sequenceAll(tb, term)
	}
	b.mustAppend(tb, "late", 0, registered("late"), replaced(1), replaced(2))
	b.sequenceAll(tb, term)
	if _, err := b.admin.Exec(tb.Context(), `analyze eventlog.events`); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkManyPartitions reads streams of a young log and of one with 100 partitions: what it takes may not grow
// with the age of the log.
func BenchmarkManyPartitions(b *testing.B) {
	for _, partitions := range []int{1, oldPartitions} {
		b.Run(fmt.Sprintf("partitions=%d", partitions), func(b *testing.B) {
			d := durable(b)
			d.age(b, partitions)
			head, err := d.log.Head(b.Context(), d.pool)
			if err != nil {
				b.Fatal(err)
			}
			kinds := []*kind{
				{name: "stream", one: func(ctx context.Context, _, _ int) error {
					return d.reads(ctx, "late", 3)
				}},
				{name: "old-stream", one: func(ctx context.Context, _, _ int) error {
					return d.reads(ctx, "early", 3)
				}},
				{name: "position", one: func(ctx context.Context, _, _ int) error {
					_, ok, err := d.log.PositionOf(ctx, d.pool, events.DefaultTenant, clusterStream("late"), 2)
					if err == nil && !ok {
						err = fmt.Errorf("no position")
					}
					return err
				}},
				{name: "after", one: func(ctx context.Context, _, _ int) error {
					_, _, err := d.log.ReadAfter(ctx, d.pool, events.Position{Epoch: 1, N: head.N - 3},
						eventlog.Filter{}, 256)
					return err
				}},
				{name: "once", one: func(ctx context.Context, w, i int) error {
					name := fmt.Sprintf("once%d-%d", w, i)
					return d.pool.Tx(ctx, func(tx pgx.Tx) error {
						_, err := d.log.AppendOnce(ctx, tx, meta(), clusterStream(name), name, 0, registered(name))
						return err
					})
				}},
			}
			measure(b, kinds)
		})
	}
}

// measure does each kind in turn and reports the time of one.
func measure(b *testing.B, kinds []*kind) {
	b.Helper()
	for _, k := range kinds {
		for i := range 10 { // statements are prepared before it counts
			if err := k.one(b.Context(), 1, i); err != nil {
				b.Fatal(k.name, err)
			}
		}
	}
	for b.Loop() {
		for _, k := range kinds {
			start := time.Now()
			if err := k.one(b.Context(), 0, int(k.count.Add(1))); err != nil {
				b.Fatal(k.name, err)
			}
			k.spent += time.Since(start)
		}
	}
	for _, k := range kinds {
		b.ReportMetric(float64(k.spent.Microseconds())/float64(k.count.Load())/1000, k.name+"-ms")
	}
}

// reads takes a stream as a reader does and counts its events.
func (b bundle) reads(ctx context.Context, name string, want int) error {
	list, err := b.log.ReadStream(ctx, b.pool, events.DefaultTenant, clusterStream(name), 0)
	if err == nil && len(list) != want {
		err = fmt.Errorf("%d events of %s, want %d", len(list), name, want)
	}
	return err
}

// BenchmarkLongSnapshot sequences 50,000 events in moves of 5 beside a snapshot that stays open, as that of a dump,
// and then measures what reads and polls of a log at rest take, beside the same without a snapshot.
func BenchmarkLongSnapshot(b *testing.B) {
	for _, open := range []bool{false, true} {
		b.Run(fmt.Sprintf("open=%v", open), func(b *testing.B) {
			d := durable(b)
			if open {
				d.snapshot(b)
			}
			term := d.lead(b)
			for i := range 1000 {
				d.fillInbox(b, fmt.Sprintf("s%d-", i), 50)
				for n := 1; n > 0; {
					var err error
					if n, err = d.log.Sequence(b.Context(), term, 5); err != nil {
						b.Fatal(err)
					}
				}
			}
			if !open { // what autovacuum does after a while
				if _, err := d.admin.Exec(b.Context(), `vacuum eventlog.appended, eventlog.sequencer`); err != nil {
					b.Fatal(err)
				}
			}
			measure(b, []*kind{
				{name: "idle", one: func(ctx context.Context, _, _ int) error {
					_, err := d.log.Sequence(ctx, term, 1000)
					return err
				}},
				{name: "head", one: func(ctx context.Context, _, _ int) error {
					_, err := d.log.Head(ctx, d.pool)
					return err
				}},
				{name: "move", one: func(ctx context.Context, w, i int) error {
					name := fmt.Sprintf("move%d-%d", w, i)
					if _, err := d.append(ctx, name, 0, registered(name)); err != nil {
						return err
					}
					_, err := d.log.Sequence(ctx, term, 1000)
					return err
				}},
			})
		})
	}
}

// snapshot holds a repeatable-read snapshot open until the test ends, with a lock on the tables as a dump has it.
func (b bundle) snapshot(tb testing.TB) {
	tb.Helper()
	tx, err := b.admin.BeginTx(tb.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // it only read
	if _, err := tx.Exec(tb.Context(), `lock table eventlog.appended, eventlog.sequencer, eventlog.events
		in access share mode`); err != nil {
		tb.Fatal(pg.Err(err))
	}
	if _, err := tx.Exec(tb.Context(), `select count(*) from eventlog.appended`); err != nil {
		tb.Fatal(pg.Err(err))
	}
}
