// Package app wires the catalog-indexer: it follows catalog intents, looks at each catalog's source,
// stores content and records revisions and failures; and it fetches bundle images that somebody waits for.
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
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/opener"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// App is the service.
type App struct {
	cfg    Config
	tel    *telemetry.Telemetry
	pool   *pg.Pool
	log    *eventlog.Log
	bus    *bus.Bus
	store  *store.Store
	lanes  *bus.Lanes // catalogs to be looked at
	images *bus.Lanes // catalogs with bundle images to be fetched
	open   func(tenant string) sources
	cache  *cache
	count  *metrics
	now    func() time.Time
	// published has a word in it after a revision was published: there are upgrades to compare.
	published chan struct{}
}

// sources is the door to what catalogs are read from, for one tenant; *opener.Opener is one.
type sources interface {
	Probe(ctx context.Context, t source.Type, s source.Settings) (opener.Probe, error)
	Open(ctx context.Context, t source.Type, s source.Settings) (*opener.Tree, error)
	Bundle(ctx context.Context, image string, s source.Settings) (*opener.Tree, error)
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
	cfg.defaults()
	a := &App{
		cfg: cfg, tel: tel, pool: pool, log: log, bus: b,
		store:  store.New(pool, log),
		lanes:  bus.NewLanes(pool, store.DirtyTable, tel.Log),
		images: bus.NewLanes(pool, store.FetchTable, tel.Log),
		count:  count,
		now:    time.Now,

		published: make(chan struct{}, 1),
	}
	read := func(ctx context.Context) ([]telemetry.Sample, error) { return a.store.Samples(ctx, &a.count.tally) }
	if err := tel.Table(read, store.Metrics()...); err != nil {
		return nil, err
	}
	a.open, err = a.door()
	return a, err
}

// Run works until ctx ends, then stops in order: what takes in work first.
func (a *App) Run(ctx context.Context) error {
	defer a.cache.close()
	defer a.pool.Close()
	if a.bus != nil {
		defer a.bus.Close()
	}
	intents, clusters := a.intents(), a.clusters()
	g := service.Group{Drain: a.cfg.Drain, Log: a.tel.Log}
	g.Add("ops", func(ctx context.Context) error {
		ln, err := httpserver.Listen(ctx, a.cfg.OpsListen)
		if err != nil {
			return err
		}
		return httpserver.Serve(ctx, ln, httpserver.Ops(a.tel.Metrics, a.checks(intents, clusters)...), 0)
	})
	g.Add("notices", a.log.Listen)
	g.Add("sequencer", a.sequencer().Run)
	g.Add("looks", func(ctx context.Context) error { return a.lanes.Work(ctx, looks, a.look) })
	g.Add("fetches", func(ctx context.Context) error { return a.images.Work(ctx, fetchers, a.fetch) })
	g.Add("poll", a.poll)
	g.Add("upgrades", a.compareUpgrades)
	g.Add("collect", a.collect)
	g.Add("search", a.fillSearch)
	g.Add("intents", intents.Run)
	g.Add("clusters", clusters.Run)
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

// intents folds catalog intents and marks what is to be looked at.
func (a *App) intents() *bus.Consumer {
	return &bus.Consumer{
		Name: "catalog-indexer.intents", Log: a.log, Pool: a.pool, Bus: a.bus, Logger: a.tel.Log,
		Types: []events.Type{
			events.CatalogAdded{}.EventType(), events.CatalogChanged{}.EventType(),
			events.CatalogRefreshRequested{}.EventType(), events.CatalogRemoved{}.EventType(),
			events.CatalogSecretSet{}.EventType(), events.CatalogSecretDeleted{}.EventType(),
		},
		Handle: a.handle(a.store.Apply), Committed: func(events.Position) { a.lanes.Wake() },
	}
}

// clusters follows which Kubernetes versions are in use. It is a consumer of its own, so that one that is new
// in a release begins at the beginning of the log.
func (a *App) clusters() *bus.Consumer {
	return &bus.Consumer{
		Name: "catalog-indexer.clusters", Log: a.log, Pool: a.pool, Bus: a.bus, Logger: a.tel.Log,
		Types: []events.Type{
			events.ClusterRegistered{}.EventType(), events.ClusterObserved{}.EventType(), events.ClusterRemoved{}.EventType(),
		},
		Handle: a.handle(a.store.ApplyCluster), Committed: func(events.Position) { a.lanes.Wake() },
	}
}

// handle marks in the consumer's transaction what an event makes worth a look.
func (a *App) handle(apply func(context.Context, pgx.Tx, eventlog.Recorded) ([]store.Key, error)) func(context.Context, pgx.Tx, eventlog.Recorded) error {
	return func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
		keys, err := apply(ctx, tx, e)
		if err != nil {
			return err
		}
		return a.lanes.Mark(ctx, tx, bus.Interactive, scopes(keys, e.ID, e.TraceParent)...)
	}
}

// scopes are keys as lanes take them: the stream in the place of a cluster, the variant in that of a namespace.
func scopes(keys []store.Key, cause, traceparent string) []bus.Scope {
	out := make([]bus.Scope, 0, len(keys))
	for _, k := range keys {
		out = append(out, bus.Scope{Tenant: k.Tenant, Cluster: k.Stream, Namespace: k.Variant, Cause: cause, TraceParent: traceparent})
	}
	return out
}

func keyOf(s bus.Scope) store.Key {
	return store.Key{Tenant: s.Tenant, Stream: s.Cluster, Variant: s.Namespace}
}
