// Package platform opens what every service works with, in one order: Postgres (waited for), the schema (refused where
// it does not fit this program), NATS (waited for), the listener of health and metrics.
package platform

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/libs/servicekeys"
	"github.com/chandler-fleet/chandler/libs/telemetry"
)

// Platform is what a service runs on. Open makes it; a test may fill in less.
type Platform struct {
	Name      string // of the service
	Config    *service.Config
	Telemetry *telemetry.Telemetry
	Pool      *pg.Pool
	Log       *eventlog.Log
	Bus       *bus.Bus // nil in tests without NATS

	ops    net.Listener
	access httpserver.OpsAccess
	ring   *servicekeys.Ring // nil where a test filled in less
	reader *eventlog.Reader  // nil where a test filled in less
}

// Option changes what Open opens.
type Option func(*options)

type options struct {
	pool []pg.Option
	bus  []bus.Option
}

// WithPool adds options of the pool.
func WithPool(list ...pg.Option) Option { return func(o *options) { o.pool = append(o.pool, list...) } }

// WithStreams lets this service make and shape the streams of NATS (bus.WithStreams): the installer's part.
func WithStreams(s bus.StreamSettings) Option {
	return func(o *options) { o.bus = append(o.bus, bus.WithStreams(s)) }
}

// Open connects to Postgres and NATS, waiting for either while it is away, and listens for health and metrics. It
// refuses a schema that does not fit this program.
func Open(ctx context.Context, name string, cfg *service.Config, tel *telemetry.Telemetry, list ...Option) (
	_ *Platform, err error,
) {
	p := &Platform{Name: name, Config: cfg, Telemetry: tel}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	// Before Postgres is waited for: a wrong setting is told at once.
	p.access, err = httpserver.NewOpsAccess(cfg.OpsCertificate, cfg.OpsKey, cfg.OpsToken, func(err error) {
		tel.Log.Warn("the renewed certificate of health and metrics cannot be used; going on with the one before",
			"error", err)
	})
	if err != nil {
		return nil, err
	}
	o := options{pool: []pg.Option{pg.WithLog(tel.Log), pg.WithName(name)}}
	for _, f := range list {
		f(&o)
	}
	if p.Pool, err = pg.Open(ctx, cfg.DatabaseURL, o.pool...); err != nil {
		return nil, err
	}
	if err := migrate.Check(ctx, p.Pool, service.Version()); err != nil {
		return nil, err
	}
	p.Log = eventlog.New(p.Pool)
	p.reader = &eventlog.Reader{Pool: p.Pool, Service: name, Version: service.Version(), Log: tel.Log}
	if err := p.reader.Begin(ctx); err != nil {
		return nil, err
	}
	if p.ring, err = servicekeys.Open(ctx, p.Pool, name, tel.Log); err != nil {
		return nil, err
	}
	installation, err := p.Log.Installation(ctx)
	if err != nil {
		return nil, err
	}
	o.bus = append(o.bus, bus.WithLog(tel.Log), bus.WithName(name), bus.WithInstallation(installation.ID),
		bus.WithIdentity(p.ring))
	if p.Bus, err = bus.Connect(ctx, cfg.NATS, o.bus...); err != nil {
		return nil, err
	}
	if p.ops, err = httpserver.Listen(ctx, cfg.OpsListen); err != nil {
		return nil, err
	}
	return p, nil
}

// OpsAddr is where health, readiness and metrics are served.
func (p *Platform) OpsAddr() string { return p.ops.Addr().String() }

// Group holds the parts that every service runs: health and metrics, the notices of the log, and a candidate for the
// sequencer. The checks say whether the service is ready. The caller adds its own parts, which stop before these.
func (p *Platform) Group(checks ...httpserver.Check) *service.Group {
	g := &service.Group{Drain: p.Config.Drain, Log: p.Telemetry.Log}
	g.Add("ops", func(ctx context.Context) error {
		h := httpserver.Ops(p.access, p.Telemetry.Metrics, checks...)
		return httpserver.Serve(ctx, p.access.Listener(p.ops), h, 0)
	})
	if p.reader != nil { // first, so that it ends last: who reads the log is known until then
		g.Add("reader", p.reader.Run)
	}
	if p.ring != nil {
		g.Add("keys of services", p.ring.Run)
	}
	g.Add("log", p.Log.Listen)
	g.Add("sequencer", p.sequencer().Run)
	return g
}

// Keeps says to others which read models this process keeps, each as its checkpoint is named. It is called once, before
// they run.
func (p *Platform) Keeps(ctx context.Context, models []string) error {
	if p.reader == nil {
		return nil
	}
	p.reader.Keeps = models
	return p.reader.Begin(ctx)
}

func (p *Platform) sequencer() *eventlog.Sequencer {
	hints := p.Bus.Publisher(p.Log, p.Pool)
	return eventlog.NewSequencer(p.Log, eventlog.Options{
		ID: p.Name + "/" + uuid.NewString(), Log: p.Telemetry.Log, Lead: hints.Lead, Compare: hints.Compare,
	})
}

// PostgresCheck says whether Postgres answers.
func (p *Platform) PostgresCheck() httpserver.Check {
	return httpserver.Check{Name: "postgres", Check: func(ctx context.Context) error {
		if err := p.Pool.Ping(ctx); err != nil {
			return fmt.Errorf("postgres does not answer: %w", pg.Err(err))
		}
		return nil
	}}
}

// Close lets go of everything that Open opened. It may be called twice.
func (p *Platform) Close() {
	if p.ops != nil {
		if err := p.ops.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			p.Telemetry.Log.Warn("close the listener of health and metrics", "error", err)
		}
	}
	if p.Bus != nil {
		p.Bus.Close()
	}
	if p.Pool != nil {
		p.Pool.Close()
	}
}
