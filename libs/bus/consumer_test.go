package bus_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
)

func TestConsumerTakesEachEventOnceAndGoesOnFromItsCheckpoint(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", nil)
	e.catalog("one").append(300)
	c := e.consumer("c", nil)
	stop := e.run(c.Run)
	e.eventually("all events taken", func() bool { return len(e.effects("c")) == 300 })
	stop()
	e.catalog("two").append(7)
	e.run(e.consumer("c", nil).Run)
	e.eventually("the new events taken", func() bool { return len(e.effects("c")) == 307 })
	e.once("c")
}

func TestReplicasOfAConsumerShareTheWork(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", nil)
	for range 3 {
		c := e.consumer("c", nil)
		c.Batch = 3
		e.run(c.Run)
	}
	one, two := e.catalog("one"), e.catalog("two")
	for range 40 {
		one.append(1)
		two.append(1)
	}
	e.eventually("all events taken", func() bool { return len(e.effects("c")) >= 80 })
	e.once("c")
}

// An event that cannot be taken parks its stream, and nothing else.
func TestConsumerParksAStreamAndOthersGoOn(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", nil)
	bad, good := e.catalog("bad"), e.catalog("good")
	bad.append(2)
	good.append(2)
	bad.append(2)
	good.append(1)
	var fixed atomic.Bool
	c := e.consumer("c", nil)
	c.Handle = func(ctx context.Context, tx pgx.Tx, r eventlog.Recorded) error {
		if err := effect(ctx, tx, "c", r); err != nil {
			return err
		}
		if r.Envelope.Subject == "bad" && r.Version == 2 && !fixed.Load() {
			_, err := tx.Exec(ctx, `select 1/0`) // what it did before must be undone, and the transaction survive
			return err
		}
		return nil
	}
	e.run(c.Run)
	e.eventually("the good stream taken", func() bool { return len(e.effects("c")) == 4 })
	e.eventually("three parked", func() bool { return len(e.parked("c")) == 3 })
	list := e.parked("c")
	for i, want := range []int64{2, 3, 4} {
		if list[i].Version != want || list[i].Stream != bad.id.String() {
			t.Errorf("parked %d: %s@%d, want version %d of the bad stream", i, list[i].Stream, list[i].Version, want)
		}
	}
	if list[0].Attempts < 1 || list[0].Reason == "" || list[0].Type != (events.CatalogRefreshRequested{}).EventType() {
		t.Errorf("the event that failed says %+v", list[0])
	}
	e.eventually("the status tells", func() bool { return c.Status().Parked == 1 })
	if err := c.Check(t.Context()); err != nil {
		t.Errorf("a parked stream makes the service unready: %v", err)
	}

	fixed.Store(true)
	if err := bus.RetryParked(t.Context(), e.pool, events.DefaultTenant, "c", bad.id.String()); err != nil {
		t.Fatal(err)
	}
	e.eventually("the parked stream taken", func() bool { return len(e.effects("c")) == 7 })
	e.eventually("nothing parked", func() bool { return len(e.parked("c")) == 0 })
	bad.append(1)
	e.eventually("the stream goes on", func() bool { return len(e.effects("c")) == 8 })
	e.once("c")
	if err := bus.RetryParked(t.Context(), e.pool, events.DefaultTenant, "c", ""); !errs.Is(err, errs.NotFound) {
		t.Errorf("retry of nothing: %v", err)
	}
}

func (e *env) parked(consumer string) []bus.Parked {
	e.t.Helper()
	list, err := bus.ListParked(e.t.Context(), e.pool, events.DefaultTenant, consumer)
	if err != nil {
		e.t.Fatal(err)
	}
	return list
}

func TestConsumerTriesTransientFailuresAgain(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", nil)
	e.catalog("one").append(5)
	var tries atomic.Int32
	c := e.consumer("c", nil)
	c.Handle = func(ctx context.Context, tx pgx.Tx, r eventlog.Recorded) error {
		if r.Version == 3 && tries.Add(1) < 4 {
			return errs.New(errs.Unavailable, "away for now")
		}
		return effect(ctx, tx, "c", r)
	}
	e.run(c.Run)
	e.eventually("all taken", func() bool { return len(e.effects("c")) == 5 })
	e.once("c")
	if n := len(e.parked("c")); n != 0 {
		t.Errorf("%d events parked", n)
	}
}

// A conflict that does not pass must not hold up the log for ever.
func TestConsumerParksAConflictThatStays(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", nil)
	e.catalog("one").append(1)
	e.catalog("two").append(1)
	c := e.consumer("c", nil)
	c.Handle = func(ctx context.Context, tx pgx.Tx, r eventlog.Recorded) error {
		if r.Envelope.Subject == "one" {
			return errs.New(errs.Conflict, "decided on an old state")
		}
		return effect(ctx, tx, "c", r)
	}
	e.run(c.Run)
	e.eventually("the other stream taken", func() bool { return len(e.effects("c")) == 1 })
	e.eventually("one parked", func() bool { return len(e.parked("c")) == 1 })
}

func TestConsumerSurvivesAPanic(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", nil)
	e.catalog("one").append(1)
	c := e.consumer("c", nil)
	c.Handle = func(context.Context, pgx.Tx, eventlog.Recorded) error { panic("no such thing") }
	e.run(c.Run)
	e.eventually("parked", func() bool {
		list := e.parked("c")
		return len(list) == 1 && list[0].Reason == "panic: no such thing"
	})
}

// A type that this binary does not know stops the reader there, visibly (DESIGN §3).
func TestConsumerStopsAtAnUnknownType(t *testing.T) {
	t.Parallel()
	e := setup(t)
	stop := e.sequence("a", nil)
	e.catalog("one").append(2)
	e.eventually("sequenced", func() bool { return e.head().N == 2 })
	stop()
	e.forge("catalog.renamed.v9", 3)
	e.sequence("b", nil)
	e.catalog("two").append(1)

	c := e.consumer("c", nil)
	c.Types = []events.Type{events.CatalogAdded{}.EventType(), events.CatalogRefreshRequested{}.EventType()}
	other := e.consumer("other", nil)
	other.Types = []events.Type{events.ClusterRegistered{}.EventType()}
	e.run(c.Run, other.Run)
	e.eventually("two taken", func() bool { return len(e.effects("c")) == 2 })
	e.eventually("stopped", func() bool { return c.Status().Stopped != "" })
	if at := c.Status().Position; at.N != 2 {
		t.Errorf("stopped at %s, want before the unknown event", at)
	}
	if err := c.Check(t.Context()); !errs.Is(err, errs.Unavailable) {
		t.Errorf("readiness says %v", err)
	}
	e.eventually("a reader of other kinds goes on", func() bool { return other.Status().Position.N == 4 })
	var unknown *events.UnknownTypeError
	if err := c.CatchUp(t.Context()); !errors.As(err, &unknown) {
		t.Errorf("CatchUp = %v", err)
	}
}

func (e *env) head() events.Position {
	e.t.Helper()
	p, err := e.log.Head(e.t.Context(), e.pool)
	if err != nil {
		e.t.Fatal(err)
	}
	return p
}

// forge puts an event of a later version of Chandler at a position.
func (e *env) forge(typ string, position int64) {
	e.t.Helper()
	admin := e.db.Pool(e.t, "admin")
	_, err := admin.Exec(e.t.Context(), `insert into eventlog.events (position, epoch, recorded, tenant, kind,
		stream_key, incarnation, version, type, subject, event_id, body, hash)
		select $1, epoch, recorded, tenant, kind, gen_random_uuid(), 1, 1, $2, 'x', gen_random_uuid(), body, hash
		from eventlog.events limit 1`, position, typ)
	if err == nil {
		_, err = admin.Exec(e.t.Context(), `update eventlog.sequencer set position = $1`, position)
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

// A failover that lost commits takes the checkpoint back, and the log may have come to the same head again
// before the consumer looks: what the memory of the process says is not believed (DESIGN D1).
func TestConsumerBelievesTheStoredCheckpoint(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", nil)
	c := e.consumer("c", nil)
	e.run(c.Run)
	e.catalog("one").append(10)
	e.eventually("all taken", func() bool { return len(e.effects("c")) == 10 })
	if _, err := e.db.Pool(t, "admin").Exec(t.Context(),
		`update eventlog.checkpoints set position = 6 where consumer = 'c'`); err != nil {
		t.Fatal(err)
	}
	e.eventually("taken again from the stored checkpoint", func() bool { return len(e.effects("c")) == 14 })
}

// Events that a consumer does not take are passed without a transaction (issue 13, section 5); the stored checkpoint
// follows, what the consumer takes is taken behind them, and a checkpoint that is taken back is believed.
func TestConsumerPassesWhatItDoesNotTake(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", nil)
	var passed, transactions atomic.Int64
	c := e.consumer("c", nil)
	c.Types = []events.Type{events.CatalogAdded{}.EventType()}
	c.Passing = func() func(events.Position) {
		return func(at events.Position) { passed.Store(at.N) }
	}
	c.Begin = func(context.Context, pgx.Tx) error { transactions.Add(1); return nil }
	e.run(c.Run)
	stored := func() (n int64) {
		if err := e.pool.QueryRow(t.Context(), `select coalesce(max(position), 0) from eventlog.checkpoint('c')`).
			Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	one := e.catalog("one")
	one.append(1)
	e.eventually("the first taken", func() bool { return stored() == 1 })
	before := transactions.Load()
	const others = 30
	for n := range int64(others) {
		one.append(1)
		e.eventually("passed", func() bool { return passed.Load() == n+2 || stored() == n+2 })
	}
	if n := transactions.Load() - before; n >= others || passed.Load() == 0 {
		t.Errorf("%d events that it does not take, passed up to %d, cost %d transactions", others,
			passed.Load(), n)
	}
	e.eventually("the checkpoint follows", func() bool { return stored() == others+1 })
	e.catalog("two").append(2)
	e.eventually("the next taken", func() bool { return len(e.effects("c")) == 2 })
	e.eventually("the last passed", func() bool { return c.Status().Position.N == others+3 })
	if _, err := e.db.Pool(t, "admin").Exec(t.Context(),
		`update eventlog.checkpoints set position = $1 where consumer = 'c'`, others+1); err != nil {
		t.Fatal(err)
	}
	e.eventually("taken again from the stored checkpoint", func() bool { return len(e.effects("c")) == 3 })
}

// Stopping finishes the transaction that has begun.
func TestConsumerDrains(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", nil)
	e.catalog("one").append(1)
	inside, release := make(chan struct{}), make(chan struct{})
	c := e.consumer("c", nil)
	c.Handle = func(ctx context.Context, tx pgx.Tx, r eventlog.Recorded) error {
		close(inside)
		<-release
		return effect(ctx, tx, "c", r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	<-inside
	cancel()
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	e.once("c")
}

// TestCatchUpWaitsForAnotherReplica: while another replica has the checkpoint, a reader waits; that is no error.
func TestCatchUpWaitsForAnotherReplica(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", nil)
	c := e.consumer("c", nil)
	c.Types = []events.Type{events.CatalogAdded{}.EventType()}
	if err := c.CatchUp(t.Context()); err != nil { // so that there is a checkpoint
		t.Fatal(err)
	}
	one := e.catalog("one")
	one.append(1)
	one.sequenced()
	tx, err := e.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var held bool
	if err := tx.QueryRow(t.Context(), `select held from eventlog.take_checkpoint('c')`).Scan(&held); err != nil || held {
		t.Fatalf("held by somebody else: %v, %v", held, err)
	}
	caught := make(chan error, 1)
	go func() { caught <- c.CatchUp(t.Context()) }()
	select {
	case err := <-caught:
		t.Errorf("while another has the checkpoint: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-caught; err != nil || len(e.effects("c")) != 1 {
		t.Errorf("afterwards: %v, %v", err, e.effects("c"))
	}
}
