package bus_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
)

// Nothing is decided behind the head: while a consumer reads the log again, nobody claims work that goes by its tables,
// whoever took its checkpoint back and how; readiness says so, and ends to say so when it has come where it was.
func TestNoWorkWhileTheLogIsReadAgain(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", nil)
	one := e.catalog("one")
	one.append(5)
	one.sequenced()
	installer := e.db.Pool(t, "installer")
	lanes := bus.NewLanes(installer, dirty, bustest.Log(t))
	lanes.Follows = "c"
	worked := make(chan bus.Scope, 10)
	e.run(func(ctx context.Context) error {
		return lanes.Work(ctx, 2, func(_ context.Context, s bus.Scope) error { worked <- s; return nil })
	})
	mark := func(name string) {
		if err := installer.Tx(t.Context(), func(tx pgx.Tx) error {
			return lanes.Mark(t.Context(), tx, bus.Interactive, scope("t", "c", name))
		}); err != nil {
			t.Fatal(err)
		}
		lanes.Wake()
	}
	none := func(when string) {
		t.Helper()
		if n, err := lanes.Claimable(t.Context()); err != nil || n > 0 || len(worked) > 0 {
			t.Errorf("%s: %d clusters may be claimed, %d scopes were worked on (%v)", when, n, len(worked), err)
		}
	}
	// A new consumer of an old log is behind it.
	mark("first")
	none("before the consumer has begun")
	release := make(chan struct{})
	c := e.consumer("c", nil)
	c.Batch = 1
	c.Handle = func(ctx context.Context, tx pgx.Tx, r eventlog.Recorded) error {
		if r.Version == 4 {
			<-release
		}
		return effect(ctx, tx, "c", r)
	}
	e.run(c.Run)
	e.eventually("three taken", func() bool { return len(e.effects("c")) == 3 })
	none("while it is behind")
	if err := c.Check(t.Context()); !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), "at 3 of 5") {
		t.Errorf("readiness says %v", err)
	}
	close(release)
	if s := get(t, worked); s.Namespace != "first" {
		t.Errorf("worked on %v", s)
	}
	if err := c.Check(t.Context()); err != nil {
		t.Errorf("at the head readiness says %v", err)
	}

	// Somebody takes the checkpoint back by hand.
	admin := e.db.Pool(t, "admin")
	back, err := admin.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	goBack := func(sql string) {
		_, err := back.Exec(t.Context(), `update eventlog.checkpoints set `+sql+` where consumer = 'c'`)
		if err != nil {
			t.Fatal(err)
		}
	}
	goBack(`position = 0`)
	// Who decides by the tables now is waited for, and who comes later waits: both orders are safe.
	held := make(chan bool, 1)
	e.run(func(ctx context.Context) error {
		var atWork bool
		err := installer.QueryRow(ctx, `select eventlog.hold_work('c')`).Scan(&atWork)
		held <- atWork
		return err
	})
	e.eventually("a decision waits", func() bool {
		var n int
		err := admin.QueryRow(t.Context(),
			`select count(*) from pg_locks where locktype = 'advisory' and not granted`).Scan(&n)
		return err == nil && n >= 1
	})
	goBack(`replay_to = 1000`) // so that it stays behind
	if err := back.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if atWork := <-held; atWork {
		t.Error("a decision was let through behind the head")
	}
	mark("second")
	none("after the checkpoint was taken back")
}
