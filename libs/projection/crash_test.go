package projection_test

import (
	"context"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pglocal"
	"github.com/chandler-fleet/chandler/libs/projection"
)

// crashing is a server of its own that loses what did not wait for the disk.
type crashing struct {
	*env
	options pglocal.Options
	server  *pglocal.Server
	// admin sees the tables on connections that the runners do not have.
	admin *pg.Pool
}

func setupCrashing(t *testing.T) *crashing {
	t.Helper()
	c := &crashing{options: pglocal.Options{
		Dir: t.TempDir() + "/data", Durable: true, Log: slog.New(slog.DiscardHandler),
	}}
	t.Cleanup(func() {
		if err := pglocal.Remove(c.options.Dir); err != nil {
			t.Error(err)
		}
	})
	c.start(t)
	if err := migrate.Up(t.Context(), c.server.AdminURL(), migrate.Options{}); err != nil {
		t.Fatal(err)
	}
	c.admin = c.open(t, c.server.AdminURL())
	for _, sql := range []string{
		tables,
		// As long as it may be: what is outstanding when the server crashes shall still be so.
		`alter system set wal_writer_delay = '10s'`, `select pg_reload_conf()`,
	} {
		if _, err := c.admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	c.env = &env{t: t, pool: c.open(t, c.server.RoleURL("chandler_gateway"))}
	c.log = eventlog.New(c.pool)
	return c
}

func (c *crashing) start(t testing.TB) {
	t.Helper()
	var err error
	if c.server, err = pglocal.Start(t.Context(), c.options); err != nil {
		t.Fatal(err)
	}
}

func (c *crashing) open(t *testing.T, url string) *pg.Pool {
	t.Helper()
	p, err := pg.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// crash ends the server as a power cut does, but for what the kernel has been given, and starts it again.
func (c *crashing) crash() {
	c.t.Helper()
	if err := syscall.Kill(c.server.PID(), syscall.SIGQUIT); err != nil {
		c.t.Fatal(err)
	}
	c.start(c.t)
}

func (c *crashing) has(name string) (there bool) {
	c.t.Helper()
	waitFor(c.t, "the server answers", func() bool {
		err := c.admin.QueryRow(c.t.Context(),
			`select exists (select from gateway_tests_v1.counts where name = $1)`, name).Scan(&there)
		return err == nil
	})
	return there
}

// gate lets a fold go on while it is open.
type gate struct {
	ask chan chan struct{} // answers with a channel that is closed while the gate is open
	set chan bool
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{ask: make(chan chan struct{}), set: make(chan bool)}
	go func() {
		open := make(chan struct{})
		isOpen := false
		for {
			select {
			case g.ask <- open:
			case to := <-g.set:
				if to && !isOpen {
					close(open)
				} else if !to && isOpen {
					open = make(chan struct{})
				}
				isOpen = to
			case <-t.Context().Done():
				if !isOpen {
					close(open)
				}
				return
			}
		}
	}()
	return g
}

// TestWaitAfterCrash proves that a crash of the server which takes back what was folded also takes back the position
// that Wait answers from: no reader is told that its row is there before it is there again.
func TestWaitAfterCrash(t *testing.T) {
	t.Parallel()
	c := setupCrashing(t)
	g := newGate(t)
	p := catalogs(1, 1)
	fold := p.Apply
	p.Apply = func(ctx context.Context, tx pgx.Tx, to projection.Tables, e eventlog.Recorded) error {
		select {
		case open := <-g.ask:
			<-open
		case <-t.Context().Done():
		}
		return fold(ctx, tx, to, e)
	}
	keeper, reader := c.runner(p), c.runner(p)
	c.run(c.log.Listen, keeper.Run)
	const rounds = 10 // another part of the server may have flushed the log just then
	for range rounds {
		name := time.Now().Format("n150405.000000")
		stop := c.run(eventlog.NewSequencer(c.log, eventlog.Options{ID: "a", Log: bustest.Log(t)}).Run)
		pos := c.refresh(name, 1)
		stop() // what it commits would carry the fold to the disk
		g.set <- true
		for _, r := range []*projection.Runner{keeper, reader} {
			if err := r.Wait(t.Context(), pos, patience); err != nil {
				t.Fatal(err)
			}
		}
		g.set <- false
		c.crash()
		if c.has(name) {
			continue
		}
		if err := keeper.Wait(t.Context(), pos, 100*time.Millisecond); !errs.Is(err, errs.Unavailable) {
			t.Errorf("who keeps the read model answers %v while the row is missing", err)
		}
		// A reader has asked for something before: the head of the log, or the position of an event.
		if _, err := c.log.Head(t.Context(), c.pool); err != nil {
			t.Fatal(err)
		}
		if err := reader.Wait(t.Context(), pos, 100*time.Millisecond); !errs.Is(err, errs.Unavailable) {
			t.Errorf("who waits for the read model answers %v while the row is missing", err)
		}
		g.set <- true
		for _, r := range []*projection.Runner{reader, keeper} {
			if err := r.Wait(t.Context(), pos, patience); err != nil || !c.has(name) {
				t.Errorf("after the crash Wait answers %v, and the row is there: %t", err, c.has(name))
			}
		}
		return
	}
	t.Fatalf("no crash of %d lost what was folded", rounds)
}
