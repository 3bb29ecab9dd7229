package app_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/agentconfig"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/rpc"
	"github.com/chandler-fleet/chandler/services/installer/joiner"
)

// kept is where a spoke keeps who it is. One that fails is killed in the place of its next write.
type kept struct {
	mu   sync.Mutex
	raw  []byte
	fail bool
	t    *testing.T
}

var errKilled = errors.New("killed")

func (k *kept) Load(context.Context) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.raw, nil
}

func (k *kept) Save(_ context.Context, raw []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail {
		return errKilled
	}
	k.raw = raw
	return nil
}

// spokes are clusters that agents serve, on NATS in operator mode.
type spokes struct {
	*env
	gateway interface {
		Call(ctx context.Context, subject string, in, out any) error
	}
}

func setupSpokes(t *testing.T) *spokes {
	t.Helper()
	e := setupOn(t, bustest.StartOperator(t))
	return &spokes{e, e.nats.As(t, natsauth.Gateway, bustest.Speaking(t, e.db, natsauth.Gateway))}
}

// register registers a cluster that an agent serves.
func (e *spokes) register(name string) (clusterID string) {
	e.t.Helper()
	registered := events.ClusterRegistered{Name: name, Access: events.AccessAgent}
	return e.one(events.KindCluster, name, registered).UUID().String()
}

// token issues a join token, as the gateway does.
func (e *spokes) token(cluster, clusterID, accept string) agentconfig.Join {
	e.t.Helper()
	seed, err := natsconn.NewSeed()
	if err != nil {
		e.t.Fatal(err)
	}
	public, err := natsconn.PublicKey(seed)
	if err != nil {
		e.t.Fatal(err)
	}
	ends := time.Now().Add(time.Hour).UTC()
	var made protocol.JoinTokenAnswer
	e.eventually("credentials of a token", func() bool {
		ctx, cancel := context.WithTimeout(e.t.Context(), 2*time.Second)
		defer cancel()
		return e.gateway.Call(ctx, protocol.RPCInstallerJoinToken, protocol.JoinTokenQuestion{
			Tenant: events.DefaultTenant, ClusterID: clusterID, Token: public, Ends: ends,
		}, &made) == nil
	})
	e.one(events.KindCluster, cluster, events.ClusterJoinTokenIssued{Token: public, Ends: ends, Accept: accept})
	return agentconfig.Join{
		Version: agentconfig.JoinVersion, Tenant: events.DefaultTenant, Cluster: cluster, ClusterID: clusterID,
		NATSURL: made.URL, HubKeys: made.HubKeys, Seed: seed, JWT: made.JWT,
	}
}

func (e *spokes) joiner(j agentconfig.Join, uid string, store *kept) joiner.Joiner {
	return joiner.Joiner{
		Join: j, Store: store, Facts: joiner.Facts{ClusterUID: uid, KubernetesVersion: "v1.34.4"},
		Log: bustest.Log(e.t),
	}
}

// types are those of the events of clusters.
func (e *spokes) types() (list []string) {
	for _, f := range e.facts(events.KindCluster) {
		list = append(list, strings.Fields(f)[0])
	}
	return list
}

// recordedTypes waits until these are the events of clusters: the sequencer numbers them a moment after the append.
func (e *spokes) recordedTypes(want ...string) {
	e.t.Helper()
	e.eventually(strings.Join(want, ", "), func() bool { return slices.Equal(e.types(), want) })
}

func (e *spokes) connect(c *joiner.Credentials, clusterID string) (*nats.Conn, <-chan struct{}) {
	e.t.Helper()
	gone := make(chan struct{}, 10)
	name := natsauth.AgentName(clusterID)
	var conn *nats.Conn
	e.eventually("the agent is let in", func() bool {
		s := c.Settings()
		options, err := s.Options()
		if err != nil {
			e.t.Fatal(err)
		}
		conn, err = nats.Connect(s.URL, append(options, nats.CustomInboxPrefix(natsauth.Inbox(name)),
			nats.DisconnectErrHandler(func(*nats.Conn, error) { gone <- struct{}{} }))...)
		return err == nil
	})
	e.t.Cleanup(conn.Close)
	return conn, gone
}

// renewal asks for newer credentials as a process.
func (e *spokes) renewal(conn *nats.Conn, clusterID, process string) error {
	e.t.Helper()
	by := rpc.Asker{Verify: protocol.HubSigned(e.key)}
	ctx, cancel := context.WithTimeout(e.t.Context(), 5*time.Second)
	defer cancel()
	var answer protocol.RenewAnswer
	return by.Ask(ctx, conn, protocol.RPCRenewSubject(events.DefaultTenant, clusterID),
		protocol.RenewQuestion{Process: process}, &answer)
}

// An agent gets in with a token that a person accepts, whenever it or the installer is killed, as one instance; it is
// cut off when a person revokes it, and comes back with another token alone. The same API server does not become a
// second cluster.
func TestAnAgentJoins(t *testing.T) {
	t.Parallel()
	e := setupSpokes(t)
	id := e.register("field")
	uid := uuid.NewString()
	join := e.token("field", id, events.JoinManual)
	store := &kept{t: t}
	spoke := e.joiner(join, uid, store)
	joined := make(chan error, 1)
	run := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, err := spoke.Run(ctx); joined <- err }()
		return cancel
	}
	asked := []string{"cluster.registered.v1", "cluster.join-token-issued.v1", "cluster.join-requested.v1"}
	stop := run()
	e.eventually("it asks", func() bool { return slices.Equal(e.types(), asked) })
	stop() // killed while it waits
	if err := <-joined; !errs.Is(err, errs.Unavailable) {
		t.Fatal(err)
	}
	e.stop() // and so is the installer
	e.start()
	store.mu.Lock()
	first := string(store.raw)
	store.fail = true // killed between the answer and its own note of it
	store.mu.Unlock()
	if _, err := e.joiner(join, uid, &kept{t: t}).Run(t.Context()); !errs.Is(err, errs.Conflict) {
		t.Errorf("somebody else with the token: %v", err)
	}
	instance := e.instance()
	e.one(events.KindCluster, "field", events.ClusterJoinAccepted{Instance: instance})
	run()
	if err := <-joined; !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	store.mu.Lock()
	if string(store.raw) != first {
		t.Error("it became another one")
	}
	store.fail = false
	store.mu.Unlock()
	own, err := spoke.Run(t.Context())
	if err != nil || own.Instance != instance {
		t.Fatalf("%v, %v", own.Instance, err)
	}
	e.recordedTypes(append(asked, "cluster.join-accepted.v1")...)
	conn, gone := e.connect(spoke.NewCredentials(own), id)
	e.eventually("newer credentials", func() bool { return e.renewal(conn, id, uuid.NewString()) == nil })

	twin := e.register("twin")
	_, err = e.joiner(e.token("twin", twin, events.JoinAutomatic), uid, &kept{t: t}).Run(t.Context())
	if !errs.Is(err, errs.Conflict) || !strings.Contains(err.Error(), `"twin"`) ||
		!strings.Contains(err.Error(), `"field"`) {
		t.Errorf("the same API server as a second cluster: %v", err)
	}

	e.one(events.KindCluster, "field", events.ClusterAgentRevoked{})
	began := time.Now()
	select {
	case <-gone:
		t.Logf("cut off %s after it was revoked", time.Since(began))
	case <-time.After(patience):
		t.Fatal("a revoked agent keeps its connection")
	}
	s := spoke.NewCredentials(own).Settings()
	options, err := s.Options()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := nats.Connect(s.URL, options...); err == nil {
		again.Close()
		t.Error("a revoked agent comes back")
	}
	spoke.Join = e.token("field", id, events.JoinAutomatic)
	renewedOwn, err := spoke.Run(t.Context())
	if err != nil || renewedOwn.Instance == own.Instance || renewedOwn.Seed == own.Seed {
		t.Fatalf("with another token it becomes %s, %v", renewedOwn.Instance, err)
	}
	e.connect(spoke.NewCredentials(renewedOwn), id)
}

// instance is who asked last.
func (e *spokes) instance() (id string) {
	e.t.Helper()
	e.eventually("the installer knows who asks", func() bool {
		err := e.pools[events.Installer].QueryRow(e.t.Context(),
			`select coalesce(max(state -> 'asked' ->> 'instance'), '') from installer.agents`).Scan(&id)
		if err != nil {
			e.t.Fatal(err)
		}
		return id != ""
	})
	return id
}

// An agent believes the hub by the key that its token names, and nobody else, whoever answers on NATS.
func TestAnAgentBelievesItsHubAlone(t *testing.T) {
	t.Parallel()
	e := setupSpokes(t)
	id := e.register("field")
	join := e.token("field", id, events.JoinAutomatic)
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	join.HubKeys = []string{keys.PublicEntry(public)}
	store := &kept{t: t}
	ctx, stop := context.WithCancel(t.Context())
	joined := make(chan error, 1)
	go func() { _, err := e.joiner(join, uuid.NewString(), store).Run(ctx); joined <- err }()
	e.eventually("the hub has answered", func() bool { return slices.Contains(e.types(), "cluster.join-requested.v1") })
	select {
	case err := <-joined:
		t.Fatalf("it believes another hub: %v", err)
	case <-time.After(time.Second): // the answer is there
	}
	stop()
	if err := <-joined; err == nil {
		t.Error("it was let in")
	}
	if strings.Contains(string(store.raw), "configsKey") {
		t.Error("it keeps what another hub says")
	}
}

// Two live processes with one agent's credentials are noticed, and neither is let in any more; a process that follows
// another one is not mistaken for that.
func TestAClonedAgentIsStopped(t *testing.T) {
	t.Parallel()
	e := setupSpokes(t)
	id := e.register("field")
	spoke := e.joiner(e.token("field", id, events.JoinAutomatic), uuid.NewString(), &kept{t: t})
	own, err := spoke.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn, gone := e.connect(spoke.NewCredentials(own), id)
	first, second := uuid.NewString(), uuid.NewString()
	for _, process := range []string{first, first, second, first} { // the last one may have been under way
		e.eventually("an answer", func() bool { return e.renewal(conn, id, process) == nil })
	}
	e.exec(events.Installer, `update installer.agent_processes set first = first - interval '2 minutes'`)
	e.eventually("the process that follows goes on", func() bool { return e.renewal(conn, id, second) == nil })
	var said error
	e.eventually("two live processes are noticed", func() bool {
		said = e.renewal(conn, id, first)
		return said != nil && (errs.Is(said, errs.Forbidden) || !conn.IsConnected())
	})
	select {
	case <-gone:
	case <-time.After(patience):
		t.Fatalf("a cloned agent keeps its connection; the hub said %v", said)
	}
	e.recordedTypes("cluster.registered.v1", "cluster.join-token-issued.v1", "cluster.join-requested.v1",
		"cluster.agent-cloned.v1")
}
