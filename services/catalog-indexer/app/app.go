// Package app wires the catalog-indexer: it follows catalog intents, looks at each catalog's source,
// stores content and records revisions and failures.
//
// What is authoritative: the events of each catalog. The table catalog.catalogs is a fold of them
// with the outcome of the last look beside. A look is level-triggered: an intent, a change of the
// files or a failed attempt marks the catalog dirty, a worker looks at what is there now. Whatever
// ends the process, the next look comes to the same end: content first, then the revision, the
// pointer and the event in one transaction.
package app

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/source"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

const (
	// looks is how many catalogs are read side by side: each decodes on all processors, so that more
	// would only add memory, and a small catalog does not wait for a large one.
	looks = 2
	// defaultPoll is how often directories are compared by name, size and time.
	defaultPoll = 30 * time.Second
)

// Config is the configuration of the catalog-indexer.
type Config struct {
	service.Config
	CatalogRoot string        // where all catalog directories must lie; "" allows every absolute path
	Poll        time.Duration // how often sources are compared
	Workers     int           // documents decoded in parallel; 0 is one per processor
}

// Settings declares the settings of the service.
func (c *Config) Settings(s *service.Settings) {
	c.Config.Settings(s)
	s.String(&c.CatalogRoot, "catalog-root", "", "directory that all catalog directories must lie in; empty allows every absolute path")
	s.Duration(&c.Poll, "poll", defaultPoll, "how often catalog directories are looked at for changes")
	s.Int(&c.Workers, "decode-workers", 0, "documents decoded in parallel; 0 is one per processor")
}

// App is the service.
type App struct {
	cfg    Config
	tel    *telemetry.Telemetry
	pool   *pg.Pool
	log    *eventlog.Log
	bus    *bus.Bus
	store  *store.Store
	lanes  *bus.Lanes
	opener source.Opener
	count  *metrics
	now    func() time.Time
}

// New connects to Postgres and NATS, waiting for either while it is away.
func New(ctx context.Context, cfg Config, tel *telemetry.Telemetry) (*App, error) {
	pool, err := pg.Open(ctx, cfg.DatabaseURL, pg.WithLog(tel.Log), pg.WithName("catalog-indexer"))
	if err != nil {
		return nil, err
	}
	b, err := bus.Connect(ctx, cfg.NATSURL, bus.WithLog(tel.Log), bus.WithName("catalog-indexer"))
	if err != nil {
		pool.Close()
		return nil, err
	}
	a, err := assemble(cfg, tel, pool, b)
	if err != nil {
		b.Close()
		pool.Close()
	}
	return a, err
}

func assemble(cfg Config, tel *telemetry.Telemetry, pool *pg.Pool, b *bus.Bus) (*App, error) {
	count, err := newMetrics()
	if err != nil {
		return nil, err
	}
	log := eventlog.New(pool)
	if cfg.Poll <= 0 {
		cfg.Poll = defaultPoll
	}
	return &App{
		cfg: cfg, tel: tel, pool: pool, log: log, bus: b,
		store:  store.New(pool, log),
		lanes:  bus.NewLanes(pool, store.DirtyTable, tel.Log),
		opener: source.Opener{Root: cfg.CatalogRoot},
		count:  count,
		now:    time.Now,
	}, nil
}

// Run works until ctx ends, then stops in order: what takes in work first.
func (a *App) Run(ctx context.Context) error {
	defer a.pool.Close()
	if a.bus != nil {
		defer a.bus.Close()
	}
	consumer := a.consumer()
	g := service.Group{Drain: a.cfg.Drain, Log: a.tel.Log}
	g.Add("ops", func(ctx context.Context) error {
		ln, err := httpserver.Listen(ctx, a.cfg.OpsListen)
		if err != nil {
			return err
		}
		return httpserver.Serve(ctx, ln, httpserver.Ops(a.tel.Metrics, a.checks(consumer)...), 0)
	})
	g.Add("notices", a.log.Listen)
	g.Add("sequencer", a.sequencer().Run)
	g.Add("looks", func(ctx context.Context) error { return a.lanes.Work(ctx, looks, a.look) })
	g.Add("poll", a.poll)
	g.Add("intents", consumer.Run)
	return g.Run(ctx)
}

// sequencer is this service's candidate for giving positions and publishing hints.
func (a *App) sequencer() *eventlog.Sequencer {
	o := eventlog.Options{ID: "catalog-indexer/" + uuid.NewString(), Log: a.tel.Log}
	if a.bus != nil {
		o.Lead = a.bus.Publisher(a.log, a.pool).Lead
	}
	return eventlog.NewSequencer(a.log, o)
}

// consumer folds catalog intents and marks what is to be looked at.
func (a *App) consumer() *bus.Consumer {
	return &bus.Consumer{
		Name: "catalog-indexer.intents", Log: a.log, Pool: a.pool, Bus: a.bus, Logger: a.tel.Log,
		Types: []events.Type{
			events.CatalogAdded{}.EventType(), events.CatalogChanged{}.EventType(),
			events.CatalogRefreshRequested{}.EventType(), events.CatalogRemoved{}.EventType(),
		},
		Handle: func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
			look, err := a.store.Apply(ctx, tx, e)
			if err != nil || !look {
				return err
			}
			return a.lanes.Mark(ctx, tx, bus.Interactive, bus.Scope{Tenant: e.Tenant, Cluster: e.StreamID.String(), Cause: e.ID, TraceParent: e.TraceParent})
		},
		Committed: func(events.Position) { a.lanes.Wake() },
	}
}

// poll compares every directory with what the last look saw, and marks those that differ.
func (a *App) poll(ctx context.Context) error {
	tick := time.NewTicker(a.cfg.Poll)
	defer tick.Stop()
	for {
		if err := a.compare(ctx); err != nil && ctx.Err() == nil {
			a.tel.Log.WarnContext(ctx, "cannot compare catalog directories; trying again at the next turn", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// compare marks catalogs whose files are not those of the last look. One that is dirty already will be
// looked at anyway, and another mark would forget how often that was tried in vain.
func (a *App) compare(ctx context.Context) error {
	live, err := a.store.Live(ctx)
	if err != nil {
		return err
	}
	dirty, err := a.store.Dirty(ctx)
	if err != nil {
		return err
	}
	var changed []bus.Scope
	for _, c := range live {
		if dirty[[2]string{c.Tenant, c.Stream}] {
			continue
		}
		now, err := a.fingerprint(ctx, c)
		if err != nil {
			return err
		}
		if now != c.Fingerprint {
			changed = append(changed, bus.Scope{Tenant: c.Tenant, Cluster: c.Stream})
		}
	}
	if len(changed) == 0 {
		return nil
	}
	defer a.lanes.Wake()
	return a.pool.Tx(ctx, func(tx pgx.Tx) error { return a.lanes.Mark(ctx, tx, bus.FanOut, changed...) })
}
