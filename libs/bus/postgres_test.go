package bus_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pglocal"
)

// Postgres goes and comes in mid-run: consumers, lanes and the publisher wait, say so once, and go on.
func TestPostgresAwayInMidRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func() *pglocal.Server {
		t.Helper()
		s, err := pglocal.Start(t.Context(), pglocal.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := start()
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := migrate.Up(t.Context(), s.AdminURL(), migrate.Options{}); err != nil {
		t.Fatal(err)
	}
	open := func(role string) *pg.Pool {
		p, err := pg.Open(t.Context(), s.RoleURL(role))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return p
	}
	e := &env{t: t, pool: open("chandler_gateway"), nats: bustest.Start(t)}
	e.log = eventlog.New(e.pool)
	installer := open("chandler_installer")

	lines := &lineCounter{}
	var mu sync.Mutex
	taken := map[string]int{}
	lanes := bus.NewLanes(installer, dirty, lines.logger())
	worked := make(chan bus.Scope, 10)
	c := &bus.Consumer{
		Name: "c", Log: e.log, Pool: installer, Bus: e.nats.Bus, Logger: lines.logger(),
		Handle: func(ctx context.Context, tx pgx.Tx, r eventlog.Recorded) error {
			mu.Lock()
			taken[r.ID]++
			mu.Unlock()
			return lanes.Mark(ctx, tx, bus.Interactive, scope("t", "c", r.ID))
		},
	}
	e.run(c.Run, func(ctx context.Context) error {
		return lanes.Work(ctx, 2, func(_ context.Context, s bus.Scope) error { worked <- s; return nil })
	})
	e.sequence("a", e.nats.Bus.Publisher(e.log, e.pool).Lead)
	one := e.catalog("one")
	one.append(1)
	get(t, worked)

	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	lines.wait(t, "consumer waits")
	lines.wait(t, "cannot claim dirty scopes")
	s = start()
	e.eventually("the database answers", func() bool { return e.pool.Ping(t.Context()) == nil })
	for { // connections that were lost are noticed one by one
		err := e.tryAppend(one)
		if err == nil {
			break
		}
		if !errs.Is(err, errs.Unavailable) && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	get(t, worked)
	one.sequenced()
	e.eventually("hints follow", e.full)
	mu.Lock()
	defer mu.Unlock()
	if len(taken) != 2 {
		t.Errorf("%d events taken", len(taken))
	}
	if n := lines.count("consumer waits"); n > 3 {
		t.Errorf("said %d times that Postgres is away", n)
	}
}
