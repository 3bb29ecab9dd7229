package eventlog_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
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

// BenchmarkAppend compares appends with bare inserts of the same rows, in turns: 16 writers, fsync on, each append a
// transaction of its own. DESIGN §7: an append that is sent in one round trip, at least 50 % of an insert that commits
// by itself; and one in a transaction, at least 50 % of an insert in a transaction.
func BenchmarkAppend(b *testing.B) {
	b.Run("sequencer away", func(b *testing.B) { benchmarkAppend(b, false) })
	b.Run("sequenced", func(b *testing.B) { benchmarkAppend(b, true) })
}

func benchmarkAppend(b *testing.B, sequenced bool) {
	b.Helper()
	d := durable(b)
	d.makeBare(b)
	if sequenced {
		d.sequencer(b, "bench")
	}
	inTxVersions, sentVersions := make([]int64, benchWriters), make([]int64, benchWriters)
	bare := &kind{name: "inserts/s", one: func(ctx context.Context, w, i int) error {
		return insertBare(
			ctx, d.pool, w, i)
	}}
	bareTx := &kind{name: "tx-inserts/s", one: func(ctx context.Context, w, i int) error {
		return d.pool.Tx(ctx, func(tx pgx.Tx) error { return insertBare(ctx, tx, w, i) })
	}}
	sent := &kind{name: "appends/s", one: func(ctx context.Context, w, i int) (err error) {
		sentVersions[w], err = d.send(ctx, fmt.Sprint("sent", w), sentVersions[w], replaced(i))
		return err
	}}
	inTx := &kind{name: "tx-appends/s", one: func(ctx context.Context, w, i int) error {
		a, err := d.append(ctx, fmt.Sprint("tx", w), inTxVersions[w], replaced(i))
		inTxVersions[w] = a.Version
		return err
	}}
	kinds := []*kind{bare, bareTx, sent, inTx}
	for b.Loop() {
		for _, k := range kinds {
			k.run(b)
		}
	}
	for _, k := range kinds {
		b.ReportMetric(k.rate(), k.name)
	}
	b.ReportMetric(100*sent.rate()/bare.rate(), "%of-inserts")
	b.ReportMetric(100*inTx.rate()/bareTx.rate(), "%of-tx-inserts")
	if sequenced {
		var behind float64
		if err := d.admin.QueryRow(b.Context(), "select count(*) from eventlog.appended").Scan(&behind); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(behind, "behind")
	}
}

// send appends to the stream of a cluster in a batch that is a transaction of its own.
func (b bundle) send(ctx context.Context, name string, expected int64, payloads ...events.Payload) (int64, error) {
	var batch pgx.Batch
	version, err := b.log.Queue(&batch, meta(), clusterStream(name), name, expected, payloads...)
	if err != nil {
		return 0, err
	}
	return version, b.pool.Send(ctx, &batch)
}

// makeBare makes a table for bare inserts.
func (b bundle) makeBare(tb testing.TB) {
	tb.Helper()
	if _, err := b.admin.Exec(tb.Context(),
		`create table public.bare (id bigint generated always as identity primary key, tenant text, kind text, stream_key uuid,
		incarnation int, version bigint, type text, subject text, event_id uuid, body bytea, hash bytea); grant all on public.bare to public`); err != nil {
		tb.Fatal(err)
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
	_, err = q.Exec(ctx, `insert into public.bare (tenant, kind, stream_key, incarnation, version, type, subject,
		event_id, body, hash)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`, e.Tenant, s.Kind, s.Key, s.Incarnation, e.Version, e.Type, e.Subject, uuid.New(), body, hash[:])
	return err
}

// BenchmarkSequence moves a backlog: at least 10,000 events a second.
func BenchmarkSequence(b *testing.B) {
	d := durable(b)
	term := d.lead(b)
	if _, err := d.admin.Exec(b.Context(), `insert into eventlog.appended (tenant, kind, stream_key, incarnation,
		version, type, subject, event_id, body, hash)
		select 'default', 'cluster', gen_random_uuid(), 1, 1, 'cluster.registered.v1', 'c', gen_random_uuid(), x.body,
		sha256(x.body)
		from generate_series(1, $1), lateral (select convert_to(repeat('x', 500), 'UTF8') as body) x`, b.N); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	d.sequenceAll(b, term)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkReadAfter folds the log, beside reading the bare rows: one event of each type in turn, as Append writes
// them. DESIGN §7: at least 40 %.
func BenchmarkReadAfter(b *testing.B) {
	d := durable(b)
	const n = 50_000
	d.fillWithExamples(b, n)
	rows := &kind{name: "rows/s"}
	decoded := &kind{name: "events/s"}
	for b.Loop() {
		rows.all(b, n, func() int { return d.readRows(b) })
		decoded.all(b, n, func() int { return d.replay(b) })
	}
	b.ReportMetric(rows.rate(), rows.name)
	b.ReportMetric(decoded.rate(), decoded.name)
	b.ReportMetric(100*decoded.rate()/rows.rate(), "%of-rows")
}

// all counts one pass over the whole log.
func (k *kind) all(b *testing.B, want int, pass func() int) {
	b.Helper()
	start := time.Now()
	got := pass()
	k.spent += time.Since(start)
	if got != want {
		b.Fatalf("%d of %d events", got, want)
	}
	k.count.Add(int64(got))
}

// readRows reads the rows of the log and does nothing with them.
func (b bundle) readRows(tb testing.TB) int {
	tb.Helper()
	r, err := b.pool.Query(tb.Context(), `select position, epoch, recorded, tenant, kind, stream_key, incarnation,
		version, type, body, hash
		from eventlog.events order by position`)
	if err != nil {
		tb.Fatal(err)
	}
	n := 0
	for ; r.Next(); n++ {
		_ = r.RawValues() // reading is what is measured
	}
	if err := r.Err(); err != nil {
		tb.Fatal(err)
	}
	return n
}

// replay reads and decodes the log in batches, as a fold does, and keeps nothing.
func (b bundle) replay(tb testing.TB) int {
	tb.Helper()
	n := 0
	var at events.Position
	for {
		list, next, err := b.log.ReadAfter(tb.Context(), b.pool, at, eventlog.Filter{}, 2000)
		if err != nil {
			tb.Fatalf("read after %s: %v", at, err)
		}
		if len(list) == 0 {
			return n
		}
		n, at = n+len(list), next
	}
}

// fillWithExamples gives a log n events: the stored example of each type in turn, each in a stream of its own.
func (b bundle) fillWithExamples(tb testing.TB, n int) {
	tb.Helper()
	examples := examplePayloads(tb)
	_, err := b.admin.CopyFrom(tb.Context(), pgx.Identifier{"eventlog", "appended"},
		[]string{
			"tenant", "kind", "stream_key", "incarnation", "version", "type", "subject", "event_id", "body",
			"hash",
		},
		pgx.CopyFromSlice(n, func(i int) ([]any, error) {
			p := examples[i%len(examples)]
			d, _ := events.Lookup(p.EventType())
			subject := fmt.Sprintf("east-1/ports/harbor-master-%d", i)
			s := events.StreamID{Kind: d.Kind, Key: events.Key(events.DefaultTenant, d.Kind, subject), Incarnation: 1}
			m := meta()
			m.Correlation, m.Causation, m.TraceParent = uuid.NewString(), uuid.NewString(),
				"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
			e, err := events.Seal(m, s, subject, 1, 0, p)
			if err != nil {
				return nil, err
			}
			body, err := json.Marshal(e)
			hash := sha256.Sum256(body)
			return []any{
				e.Tenant, string(s.Kind), s.Key, s.Incarnation, e.Version, string(e.Type), e.Subject,
				uuid.MustParse(e.ID), body, hash[:],
			}, err
		}))
	if err != nil {
		tb.Fatal(err)
	}
	b.sequenceAll(tb, b.lead(tb))
	if _, err := b.admin.Exec(tb.Context(), "analyze eventlog.events"); err != nil { // as autovacuum does after a while
		tb.Fatal(err)
	}
}

// examplePayloads are the stored examples of all event types, in the order of the registry.
func examplePayloads(tb testing.TB) []events.Payload {
	tb.Helper()
	var list []events.Payload
	for _, d := range events.All() {
		raw, err := os.ReadFile(filepath.Join("..", "events", "testdata", string(d.Type)+".json"))
		if err != nil {
			tb.Fatal(err)
		}
		var e events.Envelope
		if err := json.Unmarshal(raw, &e); err != nil {
			tb.Fatal(err)
		}
		p, err := events.Decode(e)
		if err != nil {
			tb.Fatal(err)
		}
		list = append(list, p)
	}
	return list
}

// BenchmarkReadYourWrite appends and waits for the position, beside a floor: two bare inserts one after the other,
// since the event and its position must each be on the disk. 200 writes a second, and one every 50 ms, between which
// the sequencer comes to rest. DESIGN §7: p99 ≤ 20 ms.
func BenchmarkReadYourWrite(b *testing.B) {
	b.Run("busy", func(b *testing.B) { benchmarkReadYourWrite(b, 2500*time.Microsecond) })
	b.Run("at rest", func(b *testing.B) { benchmarkReadYourWrite(b, 50*time.Millisecond) })
}

func benchmarkReadYourWrite(b *testing.B, every time.Duration) {
	b.Helper()
	d := durable(b)
	d.makeBare(b)
	d.sequencer(b, "bench")
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	go func() { _ = d.log.Listen(ctx) }() // returns nil
	floor, written := &waits{}, &waits{}
	kinds := []struct {
		*waits
		one func(i int) error
	}{
		{floor, func(i int) error {
			if err := insertBare(ctx, d.pool, 0, i); err != nil {
				return err
			}
			return insertBare(ctx, d.pool, 0, i)
		}},
		{written, func(i int) error {
			name := fmt.Sprintf("c%d", i)
			a, err := d.append(ctx, name, 0, registered(name))
			if err != nil {
				return err
			}
			_, ok, err := d.log.Wait(ctx, a, patience)
			if err == nil && !ok {
				err = errs.New(errs.Unavailable, "no position for %s", name)
			}
			return err
		}},
	}
	var wg sync.WaitGroup
	tick := time.NewTicker(every)
	defer tick.Stop()
	run := func(i int, counts bool) {
		k := kinds[i%len(kinds)]
		wg.Go(func() {
			start := time.Now()
			if err := k.one(i); err != nil {
				b.Error(err)
			}
			if counts {
				k.add(time.Since(start))
			}
		})
	}
	for i := range 10 * benchWriters { // all connections are there, and have met every statement, before it counts
		run(i, false)
	}
	wg.Wait()
	i := 10 * benchWriters
	for b.Loop() {
		for range kinds {
			<-tick.C
			run(i, true)
			i++
		}
	}
	wg.Wait()
	b.ReportMetric(written.percentile(50), "p50-ms")
	b.ReportMetric(written.percentile(99), "p99-ms")
	b.ReportMetric(floor.percentile(50), "floor-p50-ms")
	b.ReportMetric(floor.percentile(99), "floor-p99-ms")
}

// waits are how long something took each time.
type waits struct {
	mu  sync.Mutex
	all []time.Duration
}

func (w *waits) add(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, d)
}

// percentile is in milliseconds.
func (w *waits) percentile(p int) float64 {
	slices.Sort(w.all)
	return float64(w.all[len(w.all)*p/100].Microseconds()) / 1000
}
