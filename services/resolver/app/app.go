// Package app is the resolver as a value: New opens what it needs, Run consumes the log, resolves dirty
// scopes and answers questions until its context ends.
package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/libs/whatif"
	"github.com/chandler-fleet/chandler/services/resolver/internal/catalogview"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store"
)

// defaultWorkers resolve at once: resolution is work of the processor, and beside it they wait for Postgres.
const defaultWorkers = 4

// settle is how long what a change of a catalog touches waits for further changes: catalogs are often published
// in quick succession, and each look may find several of them changed. Who asked for something does not wait.
const settle = 300 * time.Millisecond

// binaryVersion is compared with the oldest binary that the schema serves; a build from source is the newest.
const binaryVersion = "dev"

// consumerName is the key of the checkpoint.
const consumerName = "resolver.scopes"

// Config is the resolver's configuration.
type Config struct {
	service.Config
	Workers int // scopes that are resolved at once
}

// Settings declares the settings.
func (c *Config) Settings(s *service.Settings) {
	c.Config.Settings(s)
	s.Int(&c.Workers, "resolve-workers", defaultWorkers, "scopes that are resolved at once")
}

// App is a resolver.
type App struct {
	cfg      Config
	tel      *telemetry.Telemetry
	pool     *pg.Pool
	bus      *bus.Bus
	log      *eventlog.Log
	lanes    *bus.Lanes
	consumer *bus.Consumer
	worker   *worker
	ops      net.Listener
}

// New connects to Postgres and NATS, waiting for those that are away, and refuses a schema that does
// not fit this program.
func New(ctx context.Context, cfg Config, tel *telemetry.Telemetry) (_ *App, err error) {
	a := &App{cfg: cfg, tel: tel}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	if a.pool, err = pg.Open(ctx, cfg.DatabaseURL, pg.WithLog(tel.Log), pg.WithName("resolver")); err != nil {
		return nil, err
	}
	if err := migrate.Check(ctx, a.pool, binaryVersion); err != nil {
		return nil, err
	}
	if a.bus, err = bus.Connect(ctx, cfg.NATSURL, bus.WithLog(tel.Log), bus.WithName("resolver")); err != nil {
		return nil, err
	}
	if a.ops, err = httpserver.Listen(ctx, cfg.OpsListen); err != nil {
		return nil, err
	}
	if err := a.wire(); err != nil {
		return nil, err
	}
	return a, nil
}

// wire makes the parts from what is open.
func (a *App) wire() error {
	seen, err := newMetrics(a.tel)
	if err != nil {
		return err
	}
	a.log = eventlog.New(a.pool)
	a.lanes = bus.NewLanes(a.pool, store.DirtyTable, a.tel.Log)
	a.lanes.Settle = settle
	views := catalogview.New(a.pool)
	tables := store.New(a.pool, a.log, a.lanes, views, time.Now)
	read := func(ctx context.Context) ([]telemetry.Sample, error) { return tables.Samples(ctx, &seen.syncs) }
	if err := a.tel.Table(read, store.Metrics()...); err != nil {
		return err
	}
	a.worker = &worker{store: tables, views: views, log: a.tel.Log, changed: a.log.Changed, draw: drawIdentity, seen: seen}
	a.consumer = &bus.Consumer{
		Name: consumerName, Log: a.log, Pool: a.pool, Bus: a.bus, Types: store.Types(), Logger: a.tel.Log,
		Handle:    func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error { return tables.Apply(ctx, tx, e) },
		Committed: func(events.Position) { a.lanes.Wake() },
	}
	return nil
}

// OpsAddr is where health, readiness and metrics are served.
func (a *App) OpsAddr() string { return a.ops.Addr().String() }

// Run runs the resolver until ctx ends, then stops in order: no new work, what is under way, the log.
func (a *App) Run(ctx context.Context) error {
	defer a.close()
	sequencer := eventlog.NewSequencer(a.log, eventlog.Options{
		ID: "resolver-" + uuid.NewString(), Log: a.tel.Log, Lead: a.bus.Publisher(a.log, a.pool).Lead,
	})
	checks := []httpserver.Check{
		{Name: "postgres", Check: a.reachable},
		{Name: "nats", Check: a.bus.Check},
		{Name: "consumer", Check: a.consumer.Check},
	}
	g := service.Group{Drain: a.cfg.Drain, Log: a.tel.Log}
	g.Add("ops", func(ctx context.Context) error {
		return httpserver.Serve(ctx, a.ops, httpserver.Ops(a.tel.Metrics, checks...), 0)
	})
	g.Add("log", a.log.Listen)
	g.Add("sequencer", sequencer.Run)
	g.Add("workers", func(ctx context.Context) error { return a.lanes.Work(ctx, a.workers(), a.worker.work) })
	g.Add("consumer", a.consumer.Run)
	g.Add("explain", func(ctx context.Context) error { return a.bus.Serve(ctx, ExplainSubject, a.worker.explain) })
	g.Add("why", func(ctx context.Context) error { return a.bus.Serve(ctx, WhySubject, a.worker.why) })
	g.Add("collector", (&collector{worker: a.worker, now: time.Now}).run)
	g.Add("nightly sample", (&sampler{worker: a.worker, now: time.Now}).run)
	previews := &previewer{worker: a.worker, now: time.Now}
	g.Add("preview", func(ctx context.Context) error { return a.bus.Serve(ctx, whatif.PreviewSubject, previews.preview) })
	g.Add("preview pages", func(ctx context.Context) error { return a.bus.Serve(ctx, whatif.ReadSubject, previews.read) })
	g.Add("preview checks", func(ctx context.Context) error { return a.bus.Serve(ctx, whatif.CheckSubject, previews.check) })
	g.Add("preview sweep", previews.sweep)
	g.Add("removal", func(ctx context.Context) error { return a.bus.Serve(ctx, whatif.RemovalSubject, previews.removal) })
	g.Add("shadow", func(ctx context.Context) error { return a.bus.Serve(ctx, whatif.ShadowSubject, previews.shadow) })
	return g.Run(ctx)
}

func (a *App) workers() int {
	if a.cfg.Workers < 1 {
		return defaultWorkers
	}
	return a.cfg.Workers
}

func (a *App) reachable(ctx context.Context) error {
	if err := a.pool.Ping(ctx); err != nil {
		return fmt.Errorf("postgres does not answer: %w", pg.Err(err))
	}
	return nil
}

// close lets go of everything that New opened.
func (a *App) close() {
	if a.ops != nil {
		if err := a.ops.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			a.tel.Log.Warn("close the listener", "error", err)
		}
	}
	if a.bus != nil {
		a.bus.Close()
	}
	if a.pool != nil {
		a.pool.Close()
	}
}
