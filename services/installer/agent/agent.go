// Package agent is the executor of one cluster as a process of its own, in that cluster: New reads its settings, Run
// serves the cluster until its context ends. It speaks to the hub over NATS alone, to which it connects itself, with
// the same messages as an executor that the installer hosts. While the hub is away it goes on with what it has.
package agent

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/agentconfig"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/installer/executor"
	"github.com/chandler-fleet/chandler/services/installer/executor/hubclient"
)

// reconnectWait is the pause between two attempts to reach NATS: longer than a service's, since thousands of agents
// come back at once, and some of them after weeks.
const reconnectWait = 2 * time.Second

// rememberedBundles is how many bytes of bundles an agent remembers for the time without a hub: a published bundle has
// some 20 to 60 KB, so that this is several hundred operators.
const rememberedBundles = 16 << 20

// Agent serves one cluster.
type Agent struct {
	cfg      Config
	tel      *telemetry.Telemetry
	link     atomic.Pointer[natsconn.Link] // nil until the agent has joined
	ops      net.Listener
	access   httpserver.OpsAccess
	executor atomic.Pointer[executor.Executor] // nil until the agent has joined
}

// New reads the settings and opens what it listens on. It waits for nobody: neither for NATS nor for the cluster.
func New(ctx context.Context, cfg Config, tel *telemetry.Telemetry) (_ *Agent, err error) {
	a := &Agent{cfg: cfg, tel: tel}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	if err := a.listen(ctx); err != nil {
		return nil, err
	}
	if cfg.Join != "" { // what else it is to know comes from the hub
		_, err := agentconfig.ParseJoin([]byte(cfg.Join))
		return a, errs.Wrap(errs.Invalid, err, "CHANDLER_AGENT_JOIN")
	}
	known, err := cfg.known()
	if err != nil {
		return nil, err
	}
	err = a.connect(ctx, known, cfg.NATS)
	return a, err
}

// connect makes the executor from what the agent knows.
func (a *Agent) connect(ctx context.Context, known agentconfig.Config, settings natsconn.Settings) error {
	hub, err := known.Hub()
	if err != nil {
		return err
	}
	configs, err := known.Configs()
	if err != nil {
		return err
	}
	cluster, err := a.cfg.cluster()
	if err != nil {
		return err
	}
	holder, err := a.cfg.holder(a.OpsAddr())
	if err != nil {
		return err
	}
	name := natsauth.AgentName(known.ClusterID)
	link, err := natsconn.Dial(ctx, settings, natsconn.LinkOptions{
		Name: name, Inbox: natsauth.Inbox(name), Log: a.tel.Log, Wait: reconnectWait, Early: true,
		Away: "going on with what is known",
		Back: func() {
			if e := a.executor.Load(); e != nil {
				e.Back()
			}
		},
	})
	if err != nil {
		return err
	}
	a.link.Store(link)
	js, err := jetstream.New(link.Conn())
	if err != nil {
		return errs.Wrap(errs.Internal, err, "open JetStream")
	}
	e, err := executor.New(executor.Config{
		Tenant: known.Tenant, Cluster: known.Cluster, ClusterID: known.ClusterID, REST: cluster,
		JetStream: js, Installation: known.Installation, GrantKey: hub, Configs: configs, Holder: holder,
		RememberedBundles: rememberedBundles, Timing: executor.Timing{Resend: executor.Heartbeat},
		Holds: hubclient.NewHolds(link.Conn(), hub), Now: time.Now, Log: a.tel.Log,
	})
	if err == nil {
		a.executor.Store(e)
	}
	return err
}

func (a *Agent) listen(ctx context.Context) (err error) {
	a.access, err = httpserver.NewOpsAccess(a.cfg.OpsCertificate, a.cfg.OpsKey, a.cfg.OpsToken, func(err error) {
		a.tel.Log.Warn("the renewed certificate of health and metrics cannot be used; going on with the one before",
			"error", err)
	})
	if err != nil {
		return err
	}
	a.ops, err = httpserver.Listen(ctx, a.cfg.OpsListen)
	return err
}

// OpsAddr is where health, readiness and metrics are served.
func (a *Agent) OpsAddr() string { return a.ops.Addr().String() }

// Run serves the cluster until ctx ends.
func (a *Agent) Run(ctx context.Context) error {
	defer a.close()
	a.tel.Log.InfoContext(ctx, "the agent has started", "ops", a.OpsAddr())
	g := &service.Group{Drain: a.cfg.Drain, Log: a.tel.Log}
	g.Add("ops", func(ctx context.Context) error {
		h := httpserver.Ops(a.access, a.tel.Metrics, httpserver.Check{Name: "nats", Check: a.check})
		return httpserver.Serve(ctx, a.access.Listener(a.ops), h, 0)
	})
	g.Add("executor", a.serve)
	return g.Run(ctx)
}

// close lets go of everything that New opened. It may be called twice.
func (a *Agent) close() {
	if a.ops != nil {
		if err := a.ops.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			a.tel.Log.Warn("close the listener of health and metrics", "error", err)
		}
	}
	if link := a.link.Load(); link != nil {
		link.Close()
	}
}
