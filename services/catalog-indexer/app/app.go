// Package app wires the catalog-indexer: it follows catalog intents, polls each catalog's source,
// stores content and records revisions and failures; and it fetches bundle images that somebody waits for.
//
// What is authoritative: the events of each catalog. The table catalog.catalogs is a fold of them
// with the outcome of the last poll beside. A poll is level-triggered: an intent, a change of the
// files or a failed attempt marks the catalog dirty, a worker reads what is there now. Whatever
// ends the process, the next poll comes to the same end: content first, then the revision, the
// pointer and the event in one transaction.
package app

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/libs/keys/ageplugin"
	"github.com/chandler-fleet/chandler/libs/keys/reseal"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/libs/service/platform"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// App is the service.
type App struct {
	*platform.Platform

	cfg       Config
	store     *store.Store
	cache     *cache
	lanes     *bus.Lanes // catalogs to be polled
	images    *bus.Lanes // catalogs with bundle images to be fetched
	scheduler *scheduler
	poller    *poller
	fetcher   *fetcher
	comparer  *comparer
	collector *collector
	search    *searchFiller
	reseal    *reseal.Runner // nil where no identity is set
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
	keys, err := cfg.Bodies.Of("catalog-indexer").Keys()
	if err != nil {
		return nil, err
	}
	tables, log := store.New(p.Pool, p.Log, keys), p.Telemetry.Log
	a := &App{
		Platform: p, cfg: cfg, store: tables,
		lanes:     bus.NewLanes(p.Pool, store.DirtyTable, log),
		images:    bus.NewLanes(p.Pool, store.FetchTable, log),
		comparer:  newComparer(tables, log),
		collector: &collector{store: tables, retention: cfg.Retention, log: log, now: time.Now},
		search:    &searchFiller{store: tables, log: log},
	}
	read := func(ctx context.Context) ([]telemetry.Sample, error) {
		return store.MetricSamples(ctx, p.Pool, &count.tally)
	}
	if err := p.Telemetry.Table(read, store.Metrics()...); err != nil {
		return nil, err
	}
	identities, err := cfg.identities()
	if err != nil {
		return nil, err
	}
	if len(identities) > 0 {
		a.reseal = &reseal.Runner{
			Pool: p.Pool, Table: reseal.CatalogSecrets(maxSecretBytes), Identities: identities, Log: log,
		}
	}
	open, err := a.openSources(identities)
	if err != nil {
		return nil, err
	}
	a.lanes.Follows, a.images.Follows = store.IntentsConsumer, store.IntentsConsumer
	a.scheduler = &scheduler{
		pool: p.Pool, store: tables, lanes: a.lanes, images: a.images, every: min(cfg.Poll, scheduleTick), log: log,
	}
	a.poller = &poller{
		pool: p.Pool, store: tables, lanes: a.lanes, open: open, poll: cfg.Poll, remotePoll: cfg.RemotePoll,
		loader: &loader{store: tables, workers: cfg.Workers, count: count}, published: a.comparer.wake,
		count: count, log: log, now: time.Now,
	}
	a.fetcher = &fetcher{
		store: tables, open: open, fetched: a.comparer.wake, count: count, log: log, now: time.Now,
	}
	return a, nil
}

// Run works until ctx ends, then stops in order: what takes in work first.
func (a *App) Run(ctx context.Context) error {
	defer a.cache.close()
	defer a.Close()
	intents, clusters := a.intents(), a.clusters()
	g := a.Group(a.checks(intents, clusters)...)
	g.Add("polls", func(ctx context.Context) error { return a.lanes.Work(ctx, pollers, a.poller.pollScope) })
	g.Add("fetches", func(ctx context.Context) error { return a.images.Work(ctx, fetchers, a.fetcher.fetch) })
	g.Add("poll", a.scheduler.run)
	g.Add("upgrades", a.comparer.run)
	g.Add("collect", a.collector.run)
	g.Add("search", a.search.run)
	if a.reseal != nil {
		g.Add("credentials to the active key", a.reseal.Run)
	}
	g.Add("intents", intents.Run)
	g.Add("clusters", clusters.Run)
	g.Add("rebuilds", (&projection.Rebuilder{
		Pool: a.Pool, Log: a.Telemetry.Log, Makings: store.Makings(intents, clusters),
	}).Run)
	return g.Run(ctx)
}

// checks say whether the service can do its work. NATS is none of them: without it consumers go on
// from Postgres.
func (a *App) checks(intents, clusters *bus.Consumer) []httpserver.Check {
	list := []httpserver.Check{
		a.PostgresCheck(),
		{Name: "intents", Check: intents.Check, Note: intents.Note},
		{Name: "clusters", Check: clusters.Check, Note: clusters.Note},
	}
	if a.reseal == nil {
		return list
	}
	for _, i := range a.reseal.Identities { // keys that are elsewhere may be away
		if p, ok := i.Identity.(*ageplugin.Identity); ok {
			list = append(list, httpserver.Check{
				Name: "catalog-credentials-key " + i.Recipient.ID.String(), Check: p.Check,
			})
		}
	}
	return list
}

// intents folds catalog intents and marks what is to be polled.
func (a *App) intents() *bus.Consumer {
	return a.consumer(store.IntentsConsumer, a.store.Intents(a.poll))
}

// clusters follows which Kubernetes versions are in use. It is a consumer of its own, so that one that is new
// in a release begins at the beginning of the log.
func (a *App) clusters() *bus.Consumer {
	return a.consumer("catalog-indexer.clusters", store.Clusters(a.poll))
}

func (a *App) consumer(name string, h bus.Handlers) *bus.Consumer {
	return &bus.Consumer{
		Name: name, Log: a.Log, Pool: a.Pool, Bus: a.Bus, Logger: a.Telemetry.Log, Types: h.Types(), Handle: h.Handle,
		Committed: func(events.Position) { a.lanes.Wake() },
	}
}

// poll marks in the consumer's transaction which catalogs are to be polled because of an event.
func (a *App) poll(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, catalogs []store.Key) error {
	return a.lanes.Mark(ctx, tx, bus.Interactive, scopes(catalogs, e.ID, e.TraceParent)...)
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
