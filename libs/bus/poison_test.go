package bus_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
)

// poison is one way in which an event cannot be taken: by its bytes, or by what the handler does with it.
type poison struct {
	name   string
	body   string // what an alteration of the record put in the place of the bytes
	handle func(ctx context.Context, tx pgx.Tx) error
	reason string
}

func poisons() []poison {
	return []poison{
		{name: "bytes that are no envelope", body: "\x00\xff not JSON", reason: "read its bytes"},
		{name: "an envelope cut off", body: `{"specversion":"1.0","id":"x","data":{`, reason: "read its bytes"},
		{name: "data of another shape", body: `{"specversion":"1.0","id":"x","data":["a"]}`, reason: "cannot unmarshal"},
		{name: "no data", body: `{"specversion":"1.0","id":"x"}`, reason: "unexpected end"},
		{
			name: "an error", handle: func(context.Context, pgx.Tx) error { return errors.New("cannot be folded") },
			reason: "cannot be folded",
		},
		{
			name: "a panic", handle: func(context.Context, pgx.Tx) error { panic("index out of range") },
			reason: "panic: index out of range",
		},
		{name: "a statement that breaks the transaction", handle: func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `select 1/0`)
			return err
		}, reason: "division by zero"},
		// 57014: the database is there, and the same statement will take as long again.
		{name: "a statement beyond its time", handle: func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `set local statement_timeout = '20ms'`); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `select pg_sleep(60)`)
			return err
		}, reason: "statement timeout"},
		{name: "something away for good", handle: func(context.Context, pgx.Tx) error {
			return errs.New(errs.Unavailable, "the content is away")
		}, reason: "the content is away"},
	}
}

// DESIGN D4: an event that a handler cannot take parks its stream visibly, with its bytes, and nothing else waits. No
// kind of poison holds up the log, whatever is wrong with it, and each has a way to go on.
func TestPoisonIsParkedAndOthersGoOn(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", nil)
	bad := map[string]*catalog{}
	for _, p := range poisons() {
		c := e.catalog(p.name)
		c.append(3)
		bad[p.name] = c
	}
	good := e.catalog("good")
	good.append(3)
	good.sequenced()
	var cured atomic.Bool
	handles := map[string]func(context.Context, pgx.Tx) error{}
	stored := map[string][]byte{}
	for _, p := range poisons() {
		stored[p.name] = e.bytesOf(bad[p.name], 2)
		if p.handle == nil {
			e.alter(bad[p.name], 2, []byte(p.body))
		} else {
			handles[p.name] = p.handle
		}
	}
	c := e.consumer("c", nil)
	c.Patience = 200 * time.Millisecond
	c.Handle = func(ctx context.Context, tx pgx.Tx, r eventlog.Recorded) error {
		if h := handles[r.Envelope.Subject]; h != nil && r.Version == 2 && !cured.Load() {
			if err := h(ctx, tx); err != nil {
				return err
			}
		}
		return effect(ctx, tx, "c", r)
	}
	e.run(c.Run)
	want := len(poisons()) + 3 // the first of each, and all of the good one
	e.eventually("all others taken", func() bool { return len(e.effects("c")) == want })
	e.eventually("two of each parked", func() bool { return len(e.parked("c")) == 2*len(poisons()) })
	for _, p := range poisons() {
		stream := bad[p.name].id.String()
		got, body, err := bus.ReadParked(t.Context(), e.pool, events.DefaultTenant, "c", stream, 2)
		if err != nil || got.Attempts < 1 || !strings.Contains(got.Reason, p.reason) {
			t.Errorf("%s: %+v %v, want the reason %q", p.name, got, err, p.reason)
		}
		if kept := e.bytesOf(bad[p.name], 2); !bytes.Equal(body, kept) || len(body) == 0 {
			t.Errorf("%s: parked with the bytes %q, the record has %q", p.name, body, kept)
		}
		behind, body, err := bus.ReadParked(t.Context(), e.pool, events.DefaultTenant, "c", stream, 3)
		if err != nil || behind.Attempts != 0 || body != nil {
			t.Errorf("%s: behind it waits %+v with the bytes %q, %v", p.name, behind, body, err)
		}
	}
	note := c.Note(t.Context())
	if !strings.Contains(note, "9 parked streams of consumer c") || c.Check(t.Context()) != nil {
		t.Errorf("readiness notes %q and says %v", note, c.Check(t.Context()))
	}
	if m, err := e.consumer("c", nil).Measure(t.Context()); err != nil || m.Parked != 9 || m.Lag != 0 {
		t.Errorf("another replica measures %+v %v", m, err)
	}

	// The record is mended and the handler corrected: each stream goes on where it stood.
	cured.Store(true)
	for _, p := range poisons() {
		e.alter(bad[p.name], 2, stored[p.name])
	}
	if err := bus.RetryParked(t.Context(), e.pool, events.DefaultTenant, "c", ""); err != nil {
		t.Fatal(err)
	}
	e.eventually("nothing parked", func() bool { return len(e.parked("c")) == 0 })
	e.once("c")
}

// A poisoned stream that is tried again must not stop the consumer either.
func TestRetryOfWhatStaysUnreadable(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", nil)
	bad := e.catalog("bad")
	bad.append(2)
	bad.sequenced()
	e.alter(bad, 1, []byte("garbage"))
	c := e.consumer("c", nil)
	e.run(c.Run)
	e.eventually("parked", func() bool { return len(e.parked("c")) == 2 })
	if err := bus.RetryParked(t.Context(), e.pool, events.DefaultTenant, "c", bad.id.String()); err != nil {
		t.Fatal(err)
	}
	e.eventually("tried again", func() bool { return e.parked("c")[0].Attempts == 2 })
	good := e.catalog("good")
	good.append(1)
	e.eventually("others go on", func() bool { return len(e.effects("c")) == 1 })
}

// A person goes on without one event, and says why; what was decided is kept, and holds when the log is read again.
func TestSkipParked(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", nil)
	bad := e.catalog("bad")
	bad.append(4)
	bad.sequenced()
	e.alter(bad, 2, []byte("garbage"))
	c := e.consumer("c", nil)
	e.run(c.Run)
	e.eventually("parked", func() bool { return len(e.parked("c")) == 3 })
	skip := func(version int64) error {
		return bus.SkipParked(t.Context(), e.pool, events.DefaultTenant, "c", bad.id.String(), version, "person-1",
			"written by a broken disk")
	}
	if err := skip(3); !errs.Is(err, errs.Conflict) {
		t.Errorf("skip of an event that waits: %v", err)
	}
	resolver := e.db.Pool(t, "resolver")
	err := bus.SkipParked(t.Context(), resolver, events.DefaultTenant, "c", bad.id.String(), 2, "person-1", "x")
	if !errs.Is(err, errs.Forbidden) {
		t.Errorf("skip with the role of another service: %v", err)
	}
	err = e.pool.TenantTx(t.Context(), "blue", func(tx pgx.Tx) error {
		return bus.SkipParked(t.Context(), tx, events.DefaultTenant, "c", bad.id.String(), 2, "person-1", "x")
	})
	if !errs.Is(err, errs.Forbidden) {
		t.Errorf("skip of another tenant's event: %v", err)
	}
	if err := skip(2); err != nil {
		t.Fatal(err)
	}
	e.eventually("the rest taken", func() bool { return len(e.effects("c")) == 3 && len(e.parked("c")) == 0 })
	list, err := bus.ListSkipped(t.Context(), e.pool, events.DefaultTenant, "c")
	if err != nil || len(list) != 1 || list[0].Version != 2 || list[0].SkippedBy != "person-1" ||
		list[0].Why != "written by a broken disk" || !strings.Contains(list[0].Reason, "read its bytes") {
		t.Errorf("skipped: %+v %v", list, err)
	}
	if _, err := e.db.Pool(t, "admin").Exec(t.Context(), `update eventlog.checkpoints set position = 0`); err != nil {
		t.Fatal(err)
	}
	e.eventually("read again without it", func() bool { return len(e.effects("c")) == 6 })
	if n := len(e.parked("c")); n != 0 {
		t.Errorf("%d events parked again", n)
	}
}

// Who cannot reach something for long says so in readiness, and not before.
func TestLongFailureMakesUnready(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", nil)
	e.catalog("one").append(1)
	c := e.consumer("c", nil)
	c.Begin = func(context.Context, pgx.Tx) error { return errs.New(errs.Unavailable, "away") }
	e.run(c.Run)
	e.eventually("failing", func() bool { return c.Status().Failing != "" })
	if err := c.Check(t.Context()); err != nil {
		t.Errorf("at once: %v", err)
	}
	c.FailedSince(time.Now().Add(-2 * time.Minute))
	if err := c.Check(t.Context()); !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), "away") {
		t.Errorf("after two minutes: %v", err)
	}
}

// bytesOf are the bytes of an event in the record.
func (e *env) bytesOf(c *catalog, version int64) (b []byte) {
	e.t.Helper()
	c.sequenced()
	if err := e.pool.QueryRow(e.t.Context(), `select body from eventlog.events where stream_key = $1 and version = $2`,
		c.id.Key, version).Scan(&b); err != nil {
		e.t.Fatal(err)
	}
	return b
}

// alter puts other bytes in the place of an event's, as nobody but a superuser or a broken disk can.
func (e *env) alter(c *catalog, version int64, body []byte) {
	e.t.Helper()
	if _, err := e.db.Pool(e.t, "admin").Exec(e.t.Context(),
		`update eventlog.events set body = $3 where stream_key = $1 and version = $2`, c.id.Key, version, body); err != nil {
		e.t.Fatal(err)
	}
}
