// Package spokes plays the clusters of a fleet for a hub that runs: for each of them the executor of an agent with its
// own identity and connection to NATS, and a Kubernetes API in memory (kubesim). Each joins by a token, as agents of
// real clusters do. NATS has to be in operator mode.
package spokes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/chandler-fleet/chandler/libs/agentconfig"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/installer/executor"
	"github.com/chandler-fleet/chandler/services/installer/executor/hubclient"
	"github.com/chandler-fleet/chandler/services/installer/joiner"
	"github.com/chandler-fleet/chandler/test/fleetsim/kubesim"
	"github.com/chandler-fleet/chandler/test/internal/api"
)

// atOnce is how many clusters are registered at a time. All of them join at once.
const atOnce = 8

// lookEvery is how often Until looks.
const lookEvery = 200 * time.Millisecond

// Fleet are clusters with their agents.
type Fleet struct {
	names []string
	api   *kubesim.Server
	log   *slog.Logger // of all agents
	// lives ends when the agents are to end: they outlive the call that starts them.
	lives   context.Context //nolint:containedctx // of all agents
	end     context.CancelFunc
	running sync.WaitGroup
}

// New returns clusters with these names, DNS labels, which no hub knows yet. Stop ends them.
func New(names []string, log *slog.Logger) *Fleet {
	f := &Fleet{names: names, api: kubesim.Start(), log: log}
	f.lives, f.end = context.WithCancel(context.Background())
	for _, name := range names {
		f.api.Add(name)
	}
	return f
}

// Stop ends the agents and their clusters.
func (f *Fleet) Stop() error {
	f.end()
	f.running.Wait()
	return f.api.Close()
}

// Join registers the clusters with the hub, and returns when all agents have joined and work.
func (f *Fleet) Join(ctx context.Context, hub api.Client, labels func(name string) map[string]string) error {
	joining, ctx := errgroup.WithContext(ctx)
	registering, asking := errgroup.WithContext(ctx) // ends with the last registration, where others still join
	registering.SetLimit(atOnce)
	for _, name := range f.names {
		registering.Go(func() error {
			join, err := register(asking, hub, name, labels(name))
			if err == nil {
				joining.Go(func() error { return f.join(ctx, name, join) })
			}
			return err
		})
	}
	err := registering.Wait()
	return errors.Join(err, joining.Wait())
}

// register makes a cluster known, and asks for a token that accepts who uses it.
func register(ctx context.Context, hub api.Client, name string, labels map[string]string) (
	join agentconfig.Join, err error,
) {
	hub = api.New(hub.URL, hub.Token) // each reads what it has written itself
	err = hub.Post(ctx, "/api/v1/clusters", map[string]any{
		"name": name, "access": events.AccessAgent, "labels": labels,
	}, nil)
	if err != nil {
		return join, err
	}
	seed, err := natsconn.NewSeed()
	if err != nil {
		return join, err
	}
	in := model.IssueJoinToken{Accept: events.JoinAutomatic}
	if in.Key, err = natsconn.PublicKey(seed); err != nil {
		return join, err
	}
	var made model.IssuedJoinToken
	err = Until(ctx, func(ctx context.Context) (string, bool, error) { // the installer is a little behind
		err := hub.Post(ctx, "/api/v1/clusters/"+name+"/join-tokens", in, &made)
		return "the join token of " + name, err == nil, err
	})
	return agentconfig.Join{
		Version: agentconfig.JoinVersion, Tenant: made.Tenant, Cluster: made.Cluster, ClusterID: made.ClusterID,
		NATSURL: made.NATSURL, NATSCA: made.NATSCA, HubKeys: made.HubKeys, Seed: seed, JWT: made.JWT,
	}, err
}

// join makes the agent of a cluster that of the hub, and has it serve the cluster.
func (f *Fleet) join(ctx context.Context, name string, join agentconfig.Join) error {
	client, err := kubernetes.NewForConfig(f.api.REST(name))
	if err != nil {
		return err
	}
	system, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return err
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	j := joiner.Joiner{
		Join: join, Store: &kept{}, Log: f.log,
		Facts: joiner.Facts{ClusterUID: string(system.UID), KubernetesVersion: version.GitVersion},
	}
	own, err := j.Run(ctx)
	if err != nil {
		return fmt.Errorf("the agent of cluster %s: %w", name, err)
	}
	return f.serve(name, j, own)
}

// serve runs the agent of a cluster, as services/installer/agent does in a process of its own.
func (f *Fleet) serve(name string, j joiner.Joiner, own joiner.Identity) error {
	known, err := agentconfig.Parse([]byte(own.Config))
	if err != nil {
		return err
	}
	keys, err := known.Hub()
	if err != nil {
		return err
	}
	configs, err := known.Configs()
	if err != nil {
		return err
	}
	user := natsauth.AgentName(known.ClusterID)
	credentials := j.NewCredentials(own)
	var running atomic.Pointer[executor.Executor]
	link, err := natsconn.Dial(f.lives, credentials.Settings(), natsconn.LinkOptions{
		Name: user, Inbox: natsauth.Inbox(user), Log: f.log, Wait: 2 * time.Second, Early: true, Away: "going on",
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
		Tenant: known.Tenant, Cluster: known.Cluster, ClusterID: known.ClusterID, REST: f.api.REST(name),
		JetStream: js, Installation: known.Installation, GrantKey: keys, Configs: configs, Holder: "fleetsim/" + name,
		Holds: hubclient.NewHolds(link.Conn(), keys), Now: time.Now, Log: f.log,
		Timing: executor.Timing{Resend: executor.Heartbeat},
	})
	if err != nil {
		return err
	}
	running.Store(e)
	f.running.Go(func() {
		if err := credentials.Keep(f.lives, link.Conn(), keys); err != nil {
			f.log.Error("the agent is let in no more", "cluster", name, "error", err)
		}
	})
	f.running.Go(func() {
		defer link.Close()
		if err := e.Run(f.lives); err != nil {
			panic(fmt.Sprintf("executor of %s: %v", name, err)) // nothing crashes it on purpose
		}
	})
	return nil
}

// kept is who an agent is, for as long as its cluster lives: as long as this process.
type kept struct {
	mu       sync.Mutex
	identity []byte
}

// Load implements joiner.Store.
func (k *kept) Load(context.Context) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.identity, nil
}

// Save implements joiner.Store.
func (k *kept) Save(_ context.Context, identity []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.identity = identity
	return nil
}

// Until waits until look says that all is there. What it saw last stands in the error.
func Until(ctx context.Context, look func(context.Context) (state string, ok bool, err error)) error {
	state := "nothing was seen yet"
	for {
		now, ok, err := look(ctx)
		if err == nil && ok {
			return nil
		}
		if err != nil {
			now = err.Error()
		}
		if ctx.Err() == nil {
			state = now
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last seen: %s", context.Cause(ctx), state)
		case <-time.After(lookEvery):
		}
	}
}
