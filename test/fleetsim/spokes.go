package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"filippo.io/age"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/chandler-fleet/chandler/libs/agentconfig"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/services/installer/executor"
	"github.com/chandler-fleet/chandler/services/installer/executor/hubclient"
	"github.com/chandler-fleet/chandler/test/fleetsim/kubesim"
	"github.com/chandler-fleet/chandler/test/stack"
)

// atOnce is how many requests are under way at a time while a fleet is made.
const atOnce = 8

// spokes are the clusters of a fleet, each with the executor of an agent and its own connection to NATS.
type spokes struct {
	names []string
	api   *kubesim.Server
	log   *slog.Logger // of all agents
	// lives ends when the agents are to end: they outlive the scene that starts them.
	lives   context.Context //nolint:containedctx // of all agents
	end     context.CancelFunc
	running sync.WaitGroup
}

func clusterName(n int) string { return fmt.Sprintf("spoke-%04d", n) }

// clusterID is the id that the first registration of a name has.
func clusterID(name string) string {
	key := events.Key(events.DefaultTenant, events.KindCluster, name)
	return events.StreamID{Kind: events.KindCluster, Key: key, Incarnation: 1}.UUID().String()
}

func newSpokes(n int, log *slog.Logger) *spokes {
	s := &spokes{api: kubesim.Start(), log: log}
	s.lives, s.end = context.WithCancel(context.Background())
	for i := range n {
		s.names = append(s.names, clusterName(i))
		s.api.Add(s.names[i])
	}
	return s
}

// stop ends the agents and their clusters.
func (s *spokes) stop() error {
	s.end()
	s.running.Wait()
	return s.api.Close()
}

// ids are the ids that the clusters will have.
func (s *spokes) ids() []string {
	ids := make([]string, len(s.names))
	for i, name := range s.names {
		ids[i] = clusterID(name)
	}
	return ids
}

// register makes the clusters known to the hub, and starts their agents.
func (s *spokes) register(ctx context.Context, hub *stack.Stack) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, name := range s.names {
		g.Go(func() error {
			labels := map[string]string{"ring": "main"}
			if i%100 == 0 {
				labels["ring"] = "canary"
			}
			c := hub.Client()
			body := map[string]any{"name": name, "access": "Agent", "labels": labels}
			err := c.Post(ctx, "/api/v1/clusters", body, nil)
			if err != nil {
				return err
			}
			var known agentconfig.Config
			err = until(ctx, func(ctx context.Context) (string, bool, error) { // the installer is a little behind
				known, err = agentConfig(ctx, c, name)
				return "", err == nil, err
			})
			if err != nil {
				return fmt.Errorf("what the agent of %s is to know: %w", name, err)
			}
			return s.start(hub, name, known)
		})
	}
	return g.Wait()
}

// agentConfig asks the hub for what an agent is to know. It comes encrypted to a key of the asker's.
func agentConfig(ctx context.Context, c stack.Client, name string) (known agentconfig.Config, err error) {
	own, err := age.GenerateX25519Identity()
	if err != nil {
		return known, err
	}
	identity, err := seal.Of(own)
	if err != nil {
		return known, err
	}
	var answer struct{ Sealed []byte }
	err = c.Post(ctx, "/api/v1/clusters/"+name+"/agent-config",
		map[string]any{"recipient": identity.Recipient.String()}, &answer)
	if err != nil {
		return known, err
	}
	text, err := seal.Identities{identity}.Open(answer.Sealed, agentconfig.MaxBytes)
	if err != nil {
		return known, err
	}
	return agentconfig.Parse(text)
}

// start runs the agent of a cluster, as services/installer/agent does in a process of its own.
func (s *spokes) start(hub *stack.Stack, name string, known agentconfig.Config) error {
	keys, err := known.Hub()
	if err != nil {
		return err
	}
	configs, err := known.Configs()
	if err != nil {
		return err
	}
	user := natsauth.AgentName(known.ClusterID)
	access := natsconn.Settings{URL: hub.NATSURL(), NKeySeed: hub.AgentSeed(known.ClusterID)}
	var running atomic.Pointer[executor.Executor]
	link, err := natsconn.Dial(s.lives, access, natsconn.LinkOptions{
		Name: user, Inbox: natsauth.Inbox(user), Log: s.log, Wait: 2 * time.Second, Early: true, Away: "going on",
		Back: func() {
			if e := running.Load(); e != nil {
				e.Back()
			}
		},
	})
	if err != nil {
		return err
	}
	js, err := jetstream.New(link.Conn())
	if err != nil {
		return err
	}
	e, err := executor.New(executor.Config{
		Tenant: known.Tenant, Cluster: known.Cluster, ClusterID: known.ClusterID, REST: s.api.REST(name),
		JetStream: js, Installation: known.Installation, GrantKey: keys, Configs: configs, Holder: "fleetsim/" + name,
		Holds: hubclient.NewHolds(link.Conn(), keys), Now: time.Now, Log: s.log,
		Timing: executor.Timing{Resend: executor.Heartbeat},
	})
	if err != nil {
		return err
	}
	running.Store(e)
	s.running.Go(func() {
		defer link.Close()
		if err := e.Run(s.lives); err != nil {
			panic(fmt.Sprintf("executor of %s: %v", name, err)) // nothing crashes it on purpose
		}
	})
	return nil
}
