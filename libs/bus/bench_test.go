package bus_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
)

// benchEvents is the log of the benchmarks: enough that what happens once does not count.
const benchEvents = 20_000

// benchLog makes a log of n events at once, as a log that has been sequenced looks.
func benchLog(b *testing.B, n int) (*pgtest.Database, *eventlog.Log) {
	b.Helper()
	d := pgtest.DB(b)
	_, err := d.Pool(b, "admin").Exec(b.Context(), fmt.Sprintf(`with e as (
		select i, gen_random_uuid() as key, convert_to(json_build_object('specversion', '1.0', 'id', gen_random_uuid(),
		'type', 'catalog.refresh-requested.v1',
		  'source', '/chandler/gateway', 'subject', 's', 'time', '2026-01-01T00:00:00Z', 'tenant', 'default',
		  'streamversion', 1, 'data', '{}'::json,
		  'authid', repeat('x', 300))::text, 'UTF8') as body
		from generate_series(1, %d) i)
		insert into eventlog.events (position, epoch, recorded, tenant, kind, stream_key, incarnation, version, type,
		subject, event_id, body, hash)
		select i, 1, now(), 'default', 'catalog', key, 1, 1, 'catalog.refresh-requested.v1', 's', gen_random_uuid(),
		body, sha256(body) from e`, n))
	if err == nil {
		_, err = d.Pool(b, "admin").Exec(b.Context(), `update eventlog.sequencer set position = $1`, n)
	}
	if err != nil {
		b.Fatal(err)
	}
	return d, eventlog.New(d.Pool(b, "gateway"))
}

// BenchmarkRefill is how fast EVENTS is filled from the log: hints/s.
func BenchmarkRefill(b *testing.B) {
	d, log := benchLog(b, benchEvents)
	pool := d.Pool(b, "gateway")
	n := bustest.Start(b)
	for b.Loop() {
		if err := bus.Rebuild(b.Context(), n.Bus, log, pool); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(benchEvents*b.N)/b.Elapsed().Seconds(), "hints/s")
}

// BenchmarkConsumer is how fast a consumer whose effect is one row goes through the log: events/s.
func BenchmarkConsumer(b *testing.B) {
	d, log := benchLog(b, benchEvents)
	pool := d.Pool(b, "gateway")
	if _, err := d.Pool(b, "admin").Exec(b.Context(),
		`create table public.effects (event text); grant all on public.effects to public`); err != nil {
		b.Fatal(err)
	}
	i := 0
	for b.Loop() {
		i++
		c := &bus.Consumer{
			Name: fmt.Sprint("bench", i), Log: log, Pool: pool,
			Handle: func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
				_, err := tx.Exec(ctx, `insert into public.effects values ($1)`, e.ID)
				return err
			},
		}
		if err := c.CatchUp(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(benchEvents*b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkLanes is how fast dirty scopes of 100 clusters are claimed, worked on and finished: scopes/s.
func BenchmarkLanes(b *testing.B) {
	const scopes = 2000
	pool := pgtest.DB(b).Pool(b, "installer")
	l := bus.NewLanes(pool, dirty, nil)
	all := make([]bus.Scope, scopes)
	for i := range all {
		all[i] = bus.Scope{Tenant: events.DefaultTenant, Cluster: fmt.Sprint(i % 100), Namespace: fmt.Sprint(i)}
	}
	for b.Loop() {
		if err := pool.Tx(b.Context(), func(tx pgx.Tx) error {
			return l.Mark(
				b.Context(), tx, bus.FanOut, all...)
		}); err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		done := make(chan struct{}, scopes)
		go func() {
			for range scopes {
				<-done
			}
			cancel()
		}()
		if err := l.Work(ctx, 4, func(context.Context,
			bus.Scope,
		) error {
			done <- struct{}{}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(scopes*b.N)/b.Elapsed().Seconds(), "scopes/s")
}
