// Package app is the resolver as a value: New opens what it needs, Run consumes the log, resolves dirty
// scopes and answers questions until its context ends.
package app

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/libs/outbound"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/libs/service/platform"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/resolver/internal/catalogview"
	"github.com/chandler-fleet/chandler/services/resolver/internal/gates"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store"
)

// defaultWorkers resolve at once: resolution is work of the processor, and beside it they wait for Postgres.
const defaultWorkers = 4

// settle is how long what a change of a catalog touches waits for further changes: catalogs are often published
// in quick succession, and one resolution may find several of them changed. Who asked for something does not wait.
const settle = 300 * time.Millisecond

// consumerName is the key of the checkpoint.
const consumerName = store.Consumer

// Config is the resolver's configuration.
type Config struct {
	service.Config
	Workers   int // scopes that are resolved at once
	Retention service.Retention
	Bodies    bodies.Secrets // the keys of configurations
	// GateNetworks are those that gates of rollouts may lead to although only this site reaches them, with commas.
	GateNetworks string
}

// Settings declares the settings.
func (c *Config) Settings(s *service.Settings) {
	c.Config.Settings(s)
	c.Retention.Settings(s)
	c.Bodies.Of("resolver").Declare(s.Secret)
	s.String(&c.GateNetworks, "gate-allowed-networks", "",
		"networks, with commas, that gates of rollouts may lead to although only this site reaches them, such as "+
			"10.1.0.0/16; gates lead to public addresses alone without it")
	s.Int(&c.Workers, "resolve-workers", defaultWorkers, "scopes that are resolved at once")
}

// App is a resolver.
type App struct {
	*platform.Platform

	cfg      Config
	lanes    *bus.Lanes
	consumer *bus.Consumer
	worker   *worker
	rebuilds *projection.Rebuilder
	fleet    *fleetController
	gates    *gateKeeper
}

// New connects to Postgres and NATS, waiting for those that are away, and refuses a schema that does
// not fit this program.
func New(ctx context.Context, cfg Config, tel *telemetry.Telemetry) (*App, error) {
	keys, err := cfg.Bodies.Of("resolver").Keys()
	if err != nil {
		return nil, err
	}
	p, err := platform.Open(ctx, "resolver", cfg.Base(), tel)
	if err != nil {
		return nil, err
	}
	a := &App{Platform: p, cfg: cfg}
	if err := a.wire(keys); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// wire makes the parts from what is open.
func (a *App) wire(keys bodies.Keys) error {
	seen, err := newMetrics(a.Telemetry)
	if err != nil {
		return err
	}
	a.lanes = bus.NewLanes(a.Pool, store.DirtyTable, a.Telemetry.Log)
	a.lanes.Settle, a.lanes.Follows = settle, consumerName
	views := catalogview.New(a.Pool)
	tables := store.New(a.Pool, a.Log, a.lanes, views, time.Now, keys)
	read := func(ctx context.Context) ([]telemetry.Sample, error) {
		return store.MetricSamples(ctx, a.Pool, &seen.syncs)
	}
	if err := a.Telemetry.Table(read, store.Metrics()...); err != nil {
		return err
	}
	a.worker = &worker{
		store: tables, views: views, log: a.Telemetry.Log, changed: a.Log.Changed,
		newIdentity: randomIdentity, metrics: seen, rendering: render.Known,
	}
	a.fleet = newFleetController(tables, views, a.Telemetry.Log)
	allowed, err := outbound.Networks("gate-allowed-networks", a.cfg.GateNetworks)
	if err != nil {
		return err
	}
	a.gates = newGateKeeper(tables.Fleets, gates.New(allowed), a.Telemetry.Log, a.fleet.wake)
	a.fleet.due = a.gates.wake
	a.consumer = &bus.Consumer{
		Name: consumerName, Log: a.Log, Pool: a.Pool, Bus: a.Bus, Types: tables.Projection.Types(),
		Logger: a.Telemetry.Log,
		Handle: func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
			return tables.Projection.Apply(ctx, tx, e)
		},
		Committed: func(events.Position) { a.lanes.Wake(); a.fleet.wake() },
	}
	a.rebuilds = &projection.Rebuilder{
		Pool: a.Pool, Log: a.Telemetry.Log, Makings: []projection.Making{tables.Making(a.consumer)},
	}
	return nil
}

// Run runs the resolver until ctx ends, then stops in order: no new work, what is under way, the log.
func (a *App) Run(ctx context.Context) error {
	defer a.Close()
	g := a.Group(
		a.PostgresCheck(),
		httpserver.Check{Name: "nats", Check: a.Bus.Check},
		httpserver.Check{Name: "consumer", Check: a.consumer.Check, Note: a.consumer.Note},
	)
	g.Add("workers", func(ctx context.Context) error { return a.lanes.Work(ctx, a.workers(), a.worker.bringUpToDate) })
	g.Add("consumer", a.consumer.Run)
	g.Add("rebuilds", a.rebuilds.Run)
	g.Add("fleet", a.fleet.run)
	g.Add("gates", a.gates.run)
	g.Add("renderings", (&renderings{worker: a.worker}).run)
	g.Add("explain", func(ctx context.Context) error { return a.Bus.Serve(ctx, ExplainSubject, a.worker.explain) })
	g.Add("why", func(ctx context.Context) error { return a.Bus.Serve(ctx, WhySubject, a.worker.why) })
	g.Add("collector", (&collector{worker: a.worker, retention: a.cfg.Retention, now: time.Now}).run)
	g.Add("nightly sample", (&sampler{worker: a.worker, now: time.Now}).run)
	previews := &previewer{worker: a.worker, now: time.Now}
	g.Add("preview", func(ctx context.Context) error {
		return a.Bus.Serve(
			ctx, previewapi.PreviewSubject, previews.preview)
	})
	g.Add("preview pages", func(ctx context.Context) error {
		return a.Bus.Serve(
			ctx, previewapi.ReadSubject, previews.read)
	})
	g.Add("preview checks", func(ctx context.Context) error {
		return a.Bus.Serve(
			ctx, previewapi.CheckSubject, previews.check)
	})
	g.Add("preview sweep", previews.sweep)
	g.Add("fleet previews", func(ctx context.Context) error {
		return a.Bus.Serve(
			ctx, previewapi.FleetSubject, fleetPreviewer{previews, a.fleet}.preview)
	})
	g.Add("removal", func(ctx context.Context) error {
		return a.Bus.Serve(
			ctx, previewapi.RemovalSubject, previews.removal)
	})
	g.Add("shadow", func(ctx context.Context) error {
		return a.Bus.Serve(
			ctx, previewapi.ShadowSubject, previews.shadow)
	})
	return g.Run(ctx)
}

func (a *App) workers() int {
	if a.cfg.Workers < 1 {
		return defaultWorkers
	}
	return a.cfg.Workers
}
