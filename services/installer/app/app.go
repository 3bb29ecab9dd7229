// Package app is the installer service: New opens its connections; Run publishes plans to executors (hub), records
// their reports (recorder), answers questions about clusters (queries) and runs an executor for each cluster whose
// kubeconfig is stored (executorhost), until its context ends.
package app

import (
	"context"
	"crypto"
	"time"

	"github.com/chandler-fleet/chandler/libs/agentconfig"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/configseal"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/keys/ageplugin"
	"github.com/chandler-fleet/chandler/libs/keys/reseal"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
	"github.com/chandler-fleet/chandler/libs/keys/sshagent"
	"github.com/chandler-fleet/chandler/libs/kubeconfig"
	"github.com/chandler-fleet/chandler/libs/natsjwt"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/rpc"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/libs/service/platform"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/installer/executor"
	"github.com/chandler-fleet/chandler/services/installer/executor/access"
	"github.com/chandler-fleet/chandler/services/installer/executor/address"
	"github.com/chandler-fleet/chandler/services/installer/executor/hubclient"
	"github.com/chandler-fleet/chandler/services/installer/internal/executorhost"
	"github.com/chandler-fleet/chandler/services/installer/internal/holds"
	"github.com/chandler-fleet/chandler/services/installer/internal/hub"
	"github.com/chandler-fleet/chandler/services/installer/internal/joins"
	"github.com/chandler-fleet/chandler/services/installer/internal/queries"
	"github.com/chandler-fleet/chandler/services/installer/internal/recorder"
)

// App is an installer.
type App struct {
	*platform.Platform

	cfg      Config
	hub      *hub.Hub
	signer   crypto.Signer // the hub's active key
	accepted keys.Accepted // its public keys
	configs  configseal.Root
	recorder *recorder.Recorder
	reseal   *reseal.Runner
	host     *executorhost.Host
	holds    holds.Registry
	goAheads *hubclient.GoAheads // of all hosted executors
	joins    joins.Server
	pusher   *natsjwt.Pusher // nil where NATS is not in operator mode
}

// New connects to Postgres and NATS, and waits for them if they are down. It refuses invalid secrets and a schema that
// does not match this program.
func New(ctx context.Context, cfg Config, tel *telemetry.Telemetry) (*App, error) {
	if err := cfg.Retention.Check(); err != nil {
		return nil, err
	}
	if err := cfg.checkAway(); err != nil {
		return nil, err
	}
	identity, signing, err := cfg.keys()
	if err != nil {
		return nil, err
	}
	streams, err := bus.ParseStreamSettings(cfg.Streams)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "CHANDLER_NATS_STREAMS")
	}
	p, err := platform.Open(ctx, "installer", cfg.Base(), tel, platform.WithStreams(streams))
	if err != nil {
		return nil, err
	}
	a := &App{Platform: p, cfg: cfg}
	if err := a.wire(identity, signing); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// wire makes the parts from what is open.
func (a *App) wire(identity seal.Identities, signing keys.Signing) error {
	holder, err := a.cfg.holder(a.OpsAddr())
	if err != nil {
		return err
	}
	configs, err := a.cfg.sealing()
	if err != nil {
		return err
	}
	opening, err := a.cfg.Bodies.Of("installer").Keys()
	if err != nil {
		return err
	}
	a.holds = holds.Registry{Pool: a.Pool, Log: a.Telemetry.Log}
	a.goAheads = hubclient.NewGoAheads(a.Bus.Conn(), protocol.GoAheadAll, signing.Accepted, a.Telemetry.Log, time.Now)
	own, err := executor.NewSession()
	if err != nil {
		return err
	}
	a.reseal = &reseal.Runner{
		Pool: a.Pool, Table: reseal.ClusterCredentials(kubeconfig.MaxBytes), Identities: identity,
		Log: a.Telemetry.Log,
	}
	a.recorder = recorder.New(recorder.Config{
		Pool: a.Pool, EventLog: a.Log, Bus: a.Bus, Name: holder, Log: a.Telemetry.Log, Key: signing.Accepted,
	})
	a.host = executorhost.New(executorhost.Config{
		Live: a.recorder.Place, Recorded: a.recorder.Clusters, Name: holder, Capacity: a.cfg.Capacity,
		Dial: address.Dial(a.cfg.LocalClusters),
		Pool: a.Pool, Bus: a.Bus, Identity: identity, Log: a.Telemetry.Log, Register: a.holds.Register, Session: own,
		EventLog: a.Log, Request: access.Request, Follows: hub.Consumer,
		Execute: func(ctx context.Context, t executorhost.Target) error {
			return a.execute(ctx, t, signing.Accepted, configs, holder)
		},
		Release: func(ctx context.Context, t executorhost.Target) error {
			return executor.LetGo(ctx, t.REST, t.Tenant, t.ClusterID)
		},
	})
	a.signer, a.accepted, a.configs = signing.Active, signing.Accepted, configs
	if err := a.wireJoins(); err != nil {
		return err
	}
	a.hub = hub.New(hub.Config{
		Pool: a.Pool, EventLog: a.Log, Bus: a.Bus, Configs: configs, Bodies: opening, Key: signing.Active,
		Log: a.Telemetry.Log, AgentAway: a.cfg.AgentAway,
		Changed: a.host.Wake,
	})
	read := func(ctx context.Context) ([]telemetry.Sample, error) { return hub.Samples(ctx, a.Pool) }
	if err := a.Telemetry.Table(read, hub.Metrics()...); err != nil {
		return err
	}
	placed := func(ctx context.Context) ([]telemetry.Sample, error) { return executorhost.Samples(ctx, a.Pool) }
	if err := a.Telemetry.Table(placed, executorhost.Metrics()...); err != nil {
		return err
	}
	return nil
}

// wireJoins makes what lets agents in.
func (a *App) wireJoins() error {
	a.joins = joins.Server{
		Pool: a.Pool, EventLog: a.Log, Conn: a.Bus.Conn(), Log: a.Telemetry.Log, Now: time.Now, Key: a.signer,
		Hub: a.accepted, URL: a.cfg.agentURL(), CA: a.cfg.NATS.CA.Text, Config: a.agentConfig,
	}
	if a.cfg.NATSAgents == "" {
		return nil
	}
	authority, err := natsjwt.ParseAuthority(a.cfg.NATSAgents)
	if err != nil {
		return errs.New(errs.Invalid, "CHANDLER_NATS_AGENTS: %v", err).At("nats-agents", "")
	}
	a.joins.Authority = authority
	a.pusher, err = authority.Connect(a.cfg.NATS)
	return err
}

// joining lets agents in where NATS is in operator mode, and says that it is not where it is not.
func (a *App) joining(g *service.Group) {
	g.Add("join tokens", func(ctx context.Context) error {
		return a.Bus.ServeWith(ctx, protocol.RPCInstallerJoinToken, rpc.Limits{}, a.joins.JoinToken)
	})
	if a.pusher == nil {
		return
	}
	g.Add("requests to join", a.joins.Serve)
	g.Add("credentials of agents", a.joins.ServeRenewals)
	g.Add("accounts of agents", func(ctx context.Context) error {
		defer a.pusher.Close()
		return a.joins.Keep(ctx, a.pusher.Push)
	})
}

// execute serves one cluster.
func (a *App) execute(ctx context.Context, t executorhost.Target, hub keys.Accepted, configs configseal.Root,
	holder string,
) error {
	opener, err := configs.For(t.Tenant, t.ClusterID)
	if err != nil {
		return err
	}
	e, err := executor.New(executor.Config{
		Tenant: t.Tenant, Cluster: t.Cluster, ClusterID: t.ClusterID, REST: t.REST,
		JetStream: a.Bus.JetStream(), Installation: a.Bus.Installation(), GrantKey: hub, Configs: opener,
		Holder: holder, Holds: a.holds, GoAheads: a.goAheads, Now: time.Now,
		Log: a.Telemetry.Log,
	})
	if err != nil {
		return err
	}
	return e.Run(ctx)
}

// agentConfig is what the agent of a cluster is to know.
func (a *App) agentConfig(tenant, cluster, clusterID string) (agentconfig.Config, error) {
	return agentconfig.New(tenant, cluster, clusterID, a.Bus.Installation(), a.accepted, a.configs)
}

// Run runs the installer until ctx ends, then stops in order: executors, what is published, what is
// recorded, the log.
func (a *App) Run(ctx context.Context) error {
	defer a.Close()
	g := a.Group(append([]httpserver.Check{
		a.PostgresCheck(),
		{Name: "nats", Check: a.Bus.Check},
		{Name: "streams", Check: a.Bus.CheckStreams, Note: a.Bus.NoteStreams},
		{Name: "consumer", Check: a.hub.Consumer().Check, Note: a.hub.Consumer().Note},
	}, keyChecks(a.signer, a.reseal.Identities)...)...)
	g.Add("recorder", a.recorder.Run)
	g.Add("streams", a.hub.Guard)
	g.Add("requests for bundles", func(ctx context.Context) error { return hub.ServeContents(ctx, a.hub) })
	g.Add("hints", a.Bus.Publisher(a.Log, a.Pool).Keep)
	g.Add("publisher", a.hub.Work)
	g.Add("stop switches", func(ctx context.Context) error { return hub.ServeGoAheads(ctx, a.hub) })
	g.Add("holds of agents", func(ctx context.Context) error {
		return a.holds.Serve(ctx, a.Bus.Conn(), a.signer, a.Telemetry.Log)
	})
	g.Add("consumer", a.hub.Consumer().Run)
	g.Add("rebuilds", (&projection.Rebuilder{
		Pool: a.Pool, Log: a.Telemetry.Log, Makings: []projection.Making{hub.Making(a.hub)},
	}).Run)
	g.Add("executors", a.host.Run)
	g.Add("collector", (&recorder.DriftCollector{
		Pool: a.Pool, EventLog: a.Log, Log: a.Telemetry.Log, Now: time.Now, Keep: a.cfg.Retention.Period(),
	}).Run)
	g.Add("kubeconfigs to the active key", a.reseal.Run)
	asked := queries.Server{
		Pool: a.Pool, Bus: a.Bus, Plans: a.hub, Shares: queries.NewShares(), Agent: a.agentConfig, Key: a.signer,
		SessionKey: a.holds.Key,
	}
	g.Add("questions about removals", asked.ServeRemovalPreviews)
	g.Add("questions about plans", asked.ServePlanChecks)
	g.Add("questions about logs", asked.ServeLogs)
	g.Add("configurations of agents", asked.ServeAgentConfigs)
	a.joining(g)
	return g.Run(ctx)
}

// keyChecks say whether keys that are elsewhere can be used.
func keyChecks(signer crypto.Signer, identities seal.Identities) (list []httpserver.Check) {
	if s, ok := signer.(*sshagent.Signer); ok {
		list = append(list, httpserver.Check{Name: "grant-key", Check: s.Check})
	}
	for _, i := range identities {
		if p, ok := i.Identity.(*ageplugin.Identity); ok {
			list = append(list, httpserver.Check{Name: "credentials-key " + i.Recipient.ID.String(), Check: p.Check})
		}
	}
	return list
}
