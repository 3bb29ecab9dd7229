// Package app is the installer as a value: New opens what it needs, Run tells executors what is wanted
// (hub), records what they report (recorder) and runs one for each cluster whose kubeconfig is stored
// (host), until its context ends.
package app

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"time"

	"filippo.io/age"
	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/installer/executor"
	"github.com/chandler-fleet/chandler/services/installer/internal/host"
	"github.com/chandler-fleet/chandler/services/installer/internal/hub"
	"github.com/chandler-fleet/chandler/services/installer/internal/questions"
	"github.com/chandler-fleet/chandler/services/installer/internal/recorder"
)

// binaryVersion is compared with the oldest binary that the schema serves; a build from source is the newest.
const binaryVersion = "dev"

// name is the service's name in connections and the sequencer.
const name = "installer"

// App is an installer.
type App struct {
	cfg      Config
	tel      *telemetry.Telemetry
	pool     *pg.Pool
	bus      *bus.Bus
	log      *eventlog.Log
	ops      net.Listener
	hub      *hub.Hub
	recorder *recorder.Recorder
	host     *host.Host
}

// New connects to Postgres and NATS, waiting for those that are away, and refuses secrets that cannot be
// read and a schema that does not fit this program.
func New(ctx context.Context, cfg Config, tel *telemetry.Telemetry) (_ *App, err error) {
	identity, key, err := cfg.keys()
	if err != nil {
		return nil, err
	}
	a := &App{cfg: cfg, tel: tel}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	if a.pool, err = pg.Open(ctx, cfg.DatabaseURL, pg.WithLog(tel.Log), pg.WithName(name)); err != nil {
		return nil, err
	}
	if err := migrate.Check(ctx, a.pool, binaryVersion); err != nil {
		return nil, err
	}
	if a.bus, err = bus.Connect(ctx, cfg.NATSURL, bus.WithLog(tel.Log), bus.WithName(name)); err != nil {
		return nil, err
	}
	if a.ops, err = httpserver.Listen(ctx, cfg.OpsListen); err != nil {
		return nil, err
	}
	if err := a.wire(identity, key); err != nil {
		return nil, err
	}
	return a, nil
}

// wire makes the parts from what is open.
func (a *App) wire(identity age.Identity, key ed25519.PrivateKey) error {
	holder, err := a.cfg.holder(a.OpsAddr())
	if err != nil {
		return err
	}
	public, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		return errors.New("an Ed25519 key without a public half")
	}
	a.log = eventlog.New(a.pool)
	a.host = host.New(host.Config{
		Pool: a.pool, Bus: a.bus, Identity: identity, Log: a.tel.Log,
		Execute: func(ctx context.Context, t host.Target) error { return a.execute(ctx, t, public, holder) },
		LetGo: func(ctx context.Context, t host.Target) error {
			return executor.LetGo(ctx, t.REST, t.Tenant, t.ClusterID)
		},
	})
	a.hub = hub.New(hub.Config{Pool: a.pool, EventLog: a.log, Bus: a.bus, Key: key, Log: a.tel.Log, Changed: a.host.Wake})
	read := func(ctx context.Context) ([]telemetry.Sample, error) { return hub.Samples(ctx, a.pool) }
	if err := a.tel.Table(read, hub.Metrics()...); err != nil {
		return err
	}
	a.recorder = recorder.New(recorder.Config{Pool: a.pool, EventLog: a.log, Bus: a.bus, Log: a.tel.Log, Key: public})
	return nil
}

// execute serves one cluster.
func (a *App) execute(ctx context.Context, t host.Target, key ed25519.PublicKey, holder string) error {
	e, err := executor.New(executor.Config{
		Tenant: t.Tenant, Cluster: t.Cluster, ClusterID: t.ClusterID, REST: t.REST,
		JetStream: a.bus.JetStream(), GrantKey: key, Holder: holder, Now: time.Now, Log: a.tel.Log,
	})
	if err != nil {
		return err
	}
	return e.Run(ctx)
}

// OpsAddr is where health, readiness and metrics are served.
func (a *App) OpsAddr() string { return a.ops.Addr().String() }

// Run runs the installer until ctx ends, then stops in order: executors, what is published, what is
// recorded, the log.
func (a *App) Run(ctx context.Context) error {
	defer a.close()
	sequencer := eventlog.NewSequencer(a.log, eventlog.Options{
		ID: name + "-" + uuid.NewString(), Log: a.tel.Log, Lead: a.bus.Publisher(a.log, a.pool).Lead,
	})
	checks := []httpserver.Check{
		{Name: "postgres", Check: a.reachable},
		{Name: "nats", Check: a.bus.Check},
		{Name: "consumer", Check: a.hub.Consumer().Check},
	}
	g := service.Group{Drain: a.cfg.Drain, Log: a.tel.Log}
	g.Add("ops", func(ctx context.Context) error {
		return httpserver.Serve(ctx, a.ops, httpserver.Ops(a.tel.Metrics, checks...), 0)
	})
	g.Add("log", a.log.Listen)
	g.Add("sequencer", sequencer.Run)
	g.Add("recorder", a.recorder.Run)
	g.Add("streams", a.hub.Guard)
	g.Add("publisher", a.hub.Work)
	g.Add("consumer", a.hub.Consumer().Run)
	g.Add("executors", a.host.Run)
	asked := questions.Questions{Pool: a.pool, Bus: a.bus, Plans: a.hub}
	g.Add("questions about removals", asked.Removals)
	g.Add("questions about plans", asked.Checks)
	return g.Run(ctx)
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
