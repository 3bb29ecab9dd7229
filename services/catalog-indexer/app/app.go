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

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/service/platform"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/fetch"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// App is the service.
type App struct {
	*platform.Platform

	cfg    Config
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

// sources is the door to what catalogs are read from, for one tenant; *fetch.Fetcher is one.
type sources interface {
	Probe(ctx context.Context, t source.Type, s source.Settings) (fetch.Probe, error)
	Open(ctx context.Context, t source.Type, s source.Settings) (*fetch.Tree, error)
	Bundle(ctx context.Context, image string, s source.Settings) (*fetch.Tree, error)
}

// New connects to Postgres and NATS, waiting for either while it is away, and refuses a schema that does not fit this
// program.
func New(ctx context.Context, cfg Config, tel *telemetry.Telemetry) (*App, error) {
	p, err := platform.Open(ctx, "catalog-indexer", cfg.Base(), tel)
	if err != nil {
		return nil, err
	}
	a, err := assemble(cfg, p)
	if err != nil {
		p.Close()
	}
	return a, err
}

func assemble(cfg Config, p *platform.Platform) (*App, error) {
	count, err := newMetrics()
	if err != nil {
		return nil, err
	}
	cfg.defaults()
	a := &App{
		Platform: p, cfg: cfg,
		store:  store.New(p.Pool, p.Log),
		lanes:  bus.NewLanes(p.Pool, store.DirtyTable, p.Telemetry.Log),
		images: bus.NewLanes(p.Pool, store.FetchTable, p.Telemetry.Log),
		count:  count,
		now:    time.Now,

		published: make(chan struct{}, 1),
	}
	read := func(ctx context.Context) ([]telemetry.Sample, error) { return a.store.Samples(ctx, &a.count.tally) }
	if err := p.Telemetry.Table(read, store.Metrics()...); err != nil {
		return nil, err
	}
	a.open, err = a.door()
	return a, err
}

// Run works until ctx ends, then stops in order: what takes in work first.
func (a *App) Run(ctx context.Context) error {
	defer a.cache.close()
	defer a.Close()
	intents, clusters := a.intents(), a.clusters()
	g := a.Group(a.checks(intents, clusters)...)
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

// intents folds catalog intents and marks what is to be looked at.
func (a *App) intents() *bus.Consumer {
	return &bus.Consumer{
		Name: "catalog-indexer.intents", Log: a.Log, Pool: a.Pool, Bus: a.Bus, Logger: a.Telemetry.Log,
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
		Name: "catalog-indexer.clusters", Log: a.Log, Pool: a.Pool, Bus: a.Bus, Logger: a.Telemetry.Log,
		Types: []events.Type{
			events.ClusterRegistered{}.EventType(), events.ClusterObserved{}.EventType(),
			events.ClusterRemoved{}.EventType(),
		},
		Handle: a.handle(a.store.ApplyCluster), Committed: func(events.Position) { a.lanes.Wake() },
	}
}

// handle marks in the consumer's transaction what an event makes worth a look.
func (a *App) handle(apply func(context.Context, pgx.Tx, eventlog.Recorded) ([]store.Key, error)) func(
	context.Context, pgx.Tx, eventlog.Recorded) error {
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
		out = append(out, bus.Scope{
			Tenant: k.Tenant, Cluster: k.Stream, Namespace: k.Variant, Cause: cause,
			TraceParent: traceparent,
		})
	}
	return out
}

func keyOf(s bus.Scope) store.Key {
	return store.Key{Tenant: s.Tenant, Stream: s.Cluster, Variant: s.Namespace}
}
