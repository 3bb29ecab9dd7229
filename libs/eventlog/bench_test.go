package eventlog_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pglocal"
)

// writers at once, as in DESIGN §7.
const benchWriters = 16

// durable is a log in a PostgreSQL of its own with fsync, as in production.
func durable(b *testing.B) bundle {
	b.Helper()
	s, err := pglocal.Start(b.Context(), pglocal.Options{Durable: true, Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Stop(); err != nil {
			b.Error(err)
		}
	})
	if err := migrate.Up(b.Context(), s.AdminURL(), migrate.Options{Log: quiet}); err != nil {
		b.Fatal(err)
	}
	open := func(url string) *pg.Pool {
		p, err := pg.Open(b.Context(), url, pg.WithMaxConns(benchWriters+4))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(p.Close)
		return p
	}
	pool := open(s.RoleURL("chandler_gateway"))
	return bundle{admin: open(s.AdminURL()), pool: pool, log: eventlog.New(pool)}
}

// slice is how long one kind of write runs before the next has its turn: what else the machine does
// then weighs on all of them alike.
const slice = 200 * time.Millisecond

// kind is one kind of write; one does a single one of writer w.
type kind struct {
	name  string
	one   func(ctx context.Context, w, i int) error
	count atomic.Int64
	spent time.Duration
}

// run lets 16 writers write for one slice.
func (k *kind) run(b *testing.B) {
	b.Helper()
	var wg sync.WaitGroup
	start := time.Now()
	for w := range benchWriters {
		wg.Go(func() {
			for time.Since(start) < slice {
				if err := k.one(b.Context(), w, int(k.count.Add(1))); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	k.spent += time.Since(start)
}

func (k *kind) rate() float64 { return float64(k.count.Load()) / k.spent.Seconds() }

// BenchmarkAppend compares appends with bare inserts of the same rows, in turns: 16 writers, fsync on,
// each append a transaction of its own. DESIGN §7: at least 50 %.
func BenchmarkAppend(b *testing.B) {
	b.Run("sequencer away", func(b *testing.B) { benchmarkAppend(b, false) })
	b.Run("sequenced", func(b *testing.B) { benchmarkAppend(b, true) })
}

func benchmarkAppend(b *testing.B, sequenced bool) {
	b.Helper()
	d := durable(b)
	if _, err := d.admin.Exec(b.Context(), `create table public.bare (id bigint generated always as identity primary key, tenant text, kind text, stream_key uuid,
		incarnation int, version bigint, type text, subject text, event_id uuid, body bytea, hash bytea); grant all on public.bare to public`); err != nil {
		b.Fatal(err)
	}
	if sequenced {
		d.sequencer(b, "bench")
	}
	versions := make([]int64, benchWriters)
	bare := &kind{name: "inserts/s", one: func(ctx context.Context, w, i int) error { return insertBare(ctx, d.pool, w, i) }}
	inTx := &kind{name: "tx-inserts/s", one: func(ctx context.Context, w, i int) error {
		return d.pool.Tx(ctx, func(tx pgx.Tx) error { return insertBare(ctx, tx, w, i) })
	}}
	appends := &kind{name: "appends/s", one: func(ctx context.Context, w, i int) error {
		a, err := d.append(ctx, fmt.Sprint("bench", w), versions[w], replaced(i))
		versions[w] = a.Version
		return err
	}}
	kinds := []*kind{bare, inTx, appends}
	for b.Loop() {
		for _, k := range kinds {
			k.run(b)
		}
	}
	for _, k := range kinds {
		b.ReportMetric(k.rate(), k.name)
	}
	b.ReportMetric(100*appends.rate()/bare.rate(), "%of-inserts")
	b.ReportMetric(100*appends.rate()/inTx.rate(), "%of-tx-inserts")
	if sequenced {
		var behind float64
		if err := d.admin.QueryRow(b.Context(), "select count(*) from eventlog.appended").Scan(&behind); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(behind, "behind")
	}
}

func insertBare(ctx context.Context, q pg.Querier, w, i int) error {
	s := clusterStream(fmt.Sprint(w))
	e, err := events.Seal(meta(), s, "bare", int64(i), 0, replaced(i))
	if err != nil {
		return err
	}
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	hash := sha256.Sum256(body)
	_, err = q.Exec(ctx, `insert into public.bare (tenant, kind, stream_key, incarnation, version, type, subject, event_id, body, hash)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`, e.Tenant, s.Kind, s.Key, s.Incarnation, e.Version, e.Type, e.Subject, uuid.New(), body, hash[:])
	return err
}

// BenchmarkSequence moves a backlog: at least 10,000 events a second.
func BenchmarkSequence(b *testing.B) {
	d := durable(b)
	term := d.lead(b)
	if _, err := d.admin.Exec(b.Context(), `insert into eventlog.appended (tenant, kind, stream_key, incarnation, version, type, subject, event_id, body, hash)
		select 'default', 'cluster', gen_random_uuid(), 1, 1, 'cluster.registered.v1', 'c', gen_random_uuid(), x.body, sha256(x.body)
		from generate_series(1, $1), lateral (select convert_to(repeat('x', 500), 'UTF8') as body) x`, b.N); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	d.sequenceAll(b, term)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkReadAfter reads and decodes the log, beside reading the bare rows.
func BenchmarkReadAfter(b *testing.B) {
	d := durable(b)
	const n = 50_000
	d.fill(b, n)
	var rows float64
	b.Run("rows", func(b *testing.B) {
		for b.Loop() {
			r, err := d.pool.Query(b.Context(), "select position, epoch, recorded, tenant, kind, stream_key, incarnation, version, type, body, hash from eventlog.events order by position")
			if err != nil {
				b.Fatal(err)
			}
			for r.Next() {
				_ = r.RawValues() // reading is what is measured
			}
			if err := r.Err(); err != nil {
				b.Fatal(err)
			}
		}
		rows = n * float64(b.N) / b.Elapsed().Seconds()
		b.ReportMetric(rows, "events/s")
	})
	b.Run("decoded", func(b *testing.B) {
		for b.Loop() {
			if got := len(d.readAll(b)); got != n {
				b.Fatalf("%d events", got)
			}
		}
		per := n * float64(b.N) / b.Elapsed().Seconds()
		b.ReportMetric(per, "events/s")
		b.ReportMetric(100*per/rows, "%of-rows")
	})
}

// BenchmarkReadYourWrite appends 200 events a second and waits for each position. DESIGN §7: p99 ≤ 50 ms.
func BenchmarkReadYourWrite(b *testing.B) {
	d := durable(b)
	d.sequencer(b, "bench")
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	go func() { _ = d.log.Listen(ctx) }() // returns nil
	took := make([]time.Duration, b.N)
	var wg sync.WaitGroup
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	b.ResetTimer()
	for i := range b.N {
		<-tick.C
		wg.Go(func() {
			name := fmt.Sprintf("c%d", i)
			start := time.Now()
			a, err := d.append(ctx, name, 0, registered(name))
			if err != nil {
				b.Error(err)
				return
			}
			if _, ok, err := d.log.Wait(ctx, a, patience); err != nil || !ok {
				b.Errorf("wait: %v %v", ok, err)
			}
			took[i] = time.Since(start)
		})
	}
	wg.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
