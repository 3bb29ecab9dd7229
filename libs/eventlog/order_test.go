package eventlog_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
)

// begin opens a transaction and appends a create in it, so that it holds its place in the inbox.
func (b bundle) begin(t *testing.T) pgx.Tx {
	t.Helper()
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "select txid_current()"); err != nil { // it has a number from here on
		t.Fatal(err)
	}
	return tx
}

func (b bundle) draw(t *testing.T, tx pgx.Tx, name string) {
	t.Helper()
	if _, err := b.log.Append(t.Context(), tx, meta(), clusterStream(name), name, 0, registered(name)); err != nil {
		t.Fatal(err)
	}
}

func commit(t *testing.T, tx pgx.Tx) {
	t.Helper()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The case that loses events elsewhere (D1): T1 begins before T2, T2 draws first, and either commits
// first while a reader is at the end. Whoever commits later comes later; nobody is missed.
func TestDrawnFirstCommittedLater(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		drawsFirst  string
		commitsLast string
	}{
		{"T2 draws first, T1 commits first", "T2", "T2"},
		{"T2 draws first and commits first", "T2", "T1"},
		{"T1 draws first, T2 commits first", "T1", "T1"},
		{"T1 draws first and commits first", "T1", "T2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t)
			term := b.lead(t)
			open := map[string]pgx.Tx{"T1": b.begin(t), "T2": b.begin(t)}
			other := map[string]string{"T1": "T2", "T2": "T1"}
			b.draw(t, open[c.drawsFirst], c.drawsFirst)
			b.draw(t, open[other[c.drawsFirst]], other[c.drawsFirst])
			if n := b.sequenceAll(t, term); n != 0 {
				t.Errorf("%d events have a position before any commit", n)
			}

			first := other[c.commitsLast]
			commit(t, open[first])
			b.sequenceAll(t, term)
			seen := b.readAll(t)
			if diff := cmp.Diff([]string{first}, subjects(seen)); diff != "" {
				t.Fatalf("after the first commit (-want +got):\n%s", diff)
			}
			commit(t, open[c.commitsLast])
			b.sequenceAll(t, term)
			later, _, err := b.log.ReadAfter(t.Context(), b.pool, seen[0].Position, eventlog.Filter{}, 10)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{c.commitsLast}, subjects(later)); diff != "" {
				t.Errorf("what the reader got behind %s (-want +got):\n%s", seen[0].Position, diff)
			}
		})
	}
}

// An installation may be at rest for a while before anything is written into it: its first event gets a position, too.
func TestFirstEventAfterARest(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	term := b.lead(t)
	for range 4 { // as the leader does while it prolongs its lease
		if _, err := b.admin.Exec(t.Context(), `update eventlog.sequencer set until = '-infinity', settling = '-infinity'`); err != nil {
			t.Fatal(err)
		}
		b.sequenceAll(t, term)
	}
	b.mustAppend(t, "east", 0, registered("east"))
	if n := b.sequenceAll(t, term); n != 1 {
		t.Errorf("%d events got a position, want the first one", n)
	}
}

// A write that is held open in another database of the instance holds nobody up.
func TestOpenWriteInAnotherDatabase(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	elsewhere := pgtest.Empty(t).Pool(t, pgtest.Admin)
	if _, err := elsewhere.Exec(t.Context(), "create table t (n int)"); err != nil {
		t.Fatal(err)
	}
	held, err := elsewhere.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Rollback(context.WithoutCancel(t.Context())) }() // nothing of it is wanted
	if _, err := held.Exec(t.Context(), "insert into t values (1)"); err != nil {
		t.Fatal(err)
	}
	b.sequencer(t, "a")
	a := b.mustAppend(t, "east", 0, registered("east"))
	if p, ok, err := b.log.Wait(t.Context(), a, patience); err != nil || !ok || p.N != 1 {
		t.Errorf("position %s %v %v", p, ok, err)
	}
}

// No reader ever misses or re-orders an event, with writers interleaved, held open, rolled back and killed.
func TestNoReaderMissesAnEvent(t *testing.T) {
	t.Parallel()
	const writers, rounds = 8, 60
	b := newBundle(t)
	b.sequencer(t, "a")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	readers := make([]*follower, 3)
	var reading sync.WaitGroup
	for i := range readers {
		readers[i] = &follower{batch: []int{1, 7, 500}[i]}
		reading.Go(func() { readers[i].run(ctx, t, b) })
	}

	committed := make([]map[string]int64, writers)
	var writing sync.WaitGroup
	for i := range writers {
		w := writer{b: b, random: rand.New(rand.NewPCG(7, uint64(i))), versions: map[string]int64{}}
		committed[i] = w.versions
		writing.Go(func() { w.run(ctx, t, fmt.Sprintf("w%d", i), rounds) })
	}
	writing.Wait()

	want := int64(0)
	for _, versions := range committed {
		for _, v := range versions {
			want += v
		}
	}
	for i, r := range readers {
		eventually(t, fmt.Sprintf("reader %d at %d", i, want), func() bool { return r.at() >= want || t.Failed() })
	}
	cancel()
	reading.Wait()
	for i, r := range readers {
		r.check(t, fmt.Sprintf("reader %d", i), committed)
	}
	var left int
	if err := b.admin.QueryRow(t.Context(), "select count(*) from eventlog.appended").Scan(&left); err != nil ||
		left != 0 {
		t.Errorf("%d events are left in the inbox (%v)", left, err)
	}
}

// writer appends to streams of its own in transactions of which some are long, some rolled back, some killed.
type writer struct {
	b        bundle
	random   *rand.Rand
	versions map[string]int64 // what has been committed
}

func (w *writer) run(ctx context.Context, t *testing.T, name string, rounds int) {
	t.Helper()
	for i := range rounds {
		stream := fmt.Sprintf("%s-%d", name, w.random.IntN(4))
		payloads := []events.Payload{replaced(i), replaced(i)}[:1+w.random.IntN(2)]
		if w.versions[stream] == 0 {
			payloads[0] = registered(stream)
		}
		done, err := w.transaction(ctx, stream, payloads)
		if err != nil {
			t.Errorf("writer %s: %v", stream, err)
			return
		}
		if done {
			w.versions[stream] += int64(len(payloads))
		}
	}
}

// transaction appends once and reports whether that was committed.
func (w *writer) transaction(ctx context.Context, stream string, payloads []events.Payload) (bool, error) {
	tx, err := w.b.pool.Begin(ctx)
	if err != nil {
		return false, err
	}
	if _, err := w.b.log.Append(ctx, tx, meta(), clusterStream(stream), stream, w.versions[stream],
		payloads...); err != nil {
		return false, err
	}
	switch w.random.IntN(10) {
	case 0:
		return false, tx.Rollback(ctx)
	case 1:
		_, err := w.b.admin.Exec(ctx, "select pg_terminate_backend($1)", tx.Conn().PgConn().PID())
		_ = tx.Rollback(ctx) // the connection is gone
		return false, err
	case 2, 3:
		if _, err := tx.Exec(ctx, "select pg_sleep($1)", w.random.Float64()/20); err != nil { // held open
			return false, err
		}
	}
	return true, tx.Commit(ctx)
}

// follower reads the log as it grows.
type follower struct {
	batch int
	mu    sync.Mutex
	seen  []eventlog.Recorded
}

func (f *follower) at() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(len(f.seen))
}

func (f *follower) run(ctx context.Context, t *testing.T, b bundle) {
	t.Helper()
	var at events.Position
	for ctx.Err() == nil {
		list, next, err := b.log.ReadAfter(ctx, b.pool, at, eventlog.Filter{}, f.batch)
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("read after %s: %v", at, err)
			}
			return
		}
		for _, e := range list {
			if e.Position.N != at.N+1 {
				t.Errorf("behind %s came %s", at, e.Position)
			}
			at = e.Position
		}
		if next != at && !next.IsZero() {
			t.Errorf("scanned up to %s, the last event is at %s", next, at)
		}
		f.mu.Lock()
		f.seen = append(f.seen, list...)
		f.mu.Unlock()
	}
}

// check compares what was read with what was committed.
func (f *follower) check(t *testing.T, who string, committed []map[string]int64) {
	t.Helper()
	versions := map[string]int64{}
	var last eventlog.Recorded
	for _, e := range f.seen {
		versions[e.Subject]++
		if e.Version != versions[e.Subject] {
			t.Errorf("%s: version %d of %s came at place %d", who, e.Version, e.Subject, versions[e.Subject])
		}
		if e.Recorded.Before(last.Recorded) {
			t.Errorf("%s: time went back from %s to %s at %s", who, last.Recorded, e.Recorded, e.Position)
		}
		last = e
	}
	want := map[string]int64{}
	for _, m := range committed {
		maps.Copy(want, m)
	}
	if diff := cmp.Diff(want, versions); diff != "" {
		t.Errorf("%s: events of each stream (-committed +read):\n%s", who, diff)
	}
}

// A decision that lost a race leaves its transaction unusable: it cannot be committed by mistake.
func TestConflictEndsTheTransaction(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.mustAppend(t, "east", 0, registered("east"))
	err := b.pool.Tx(t.Context(), func(tx pgx.Tx) error {
		if _, err := b.log.Append(t.Context(), tx, meta(), clusterStream("east"), "east", 0,
			registered("east")); !errs.Is(err, errs.AlreadyExists) {
			t.Errorf("duplicate: %v", err)
		}
		return nil // as if the error had been overlooked
	})
	if err == nil {
		t.Error("the transaction was committed")
	}
}

// Time is monotone even if the clock of the database goes back.
func TestTimeNeverGoesBack(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	term := b.lead(t)
	b.mustAppend(t, "east", 0, registered("east"))
	b.sequenceAll(t, term)
	// The log has been written by a clock that was an hour ahead.
	if _, err := b.admin.Exec(t.Context(),
		"update eventlog.sequencer set recorded = recorded + interval '1 hour'"); err != nil {
		t.Fatal(err)
	}
	b.mustAppend(t, "east", 1, replaced(1))
	b.sequenceAll(t, term)
	b.mustAppend(t, "east", 2, replaced(2))
	b.sequenceAll(t, term)
	all := b.readAll(t)
	if !all[0].Recorded.Before(all[1].Recorded) || all[2].Recorded.Before(all[1].Recorded) {
		t.Errorf("recorded %s, %s, %s", all[0].Recorded, all[1].Recorded, all[2].Recorded)
	}
}
