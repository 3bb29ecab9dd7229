// Package hubtest plays the hub's part of the protocol for tests of executors: it publishes plans and content,
// and reads reports (DESIGN D8). The bus is a real NATS server inside the process.
package hubtest

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/configseal"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor"
)

// Tenant is the only one.
const Tenant = "default"

// Hub is the hub as one cluster's executor sees it.
type Hub struct {
	JetStream jetstream.JetStream
	Key       ed25519.PrivateKey // signs messages and grants
	ClusterID string

	tb     testing.TB
	nats   *bustest.Env
	ensure func(testing.TB) // makes the streams that are missing
	record *record
	// rendering is what plans are rendered by from now on.
	rendering *render.Versions
	holds     *Holds
	// answers are what executors are told that ask whether effects are allowed.
	answers *answers
}

// record is what the hub has said.
type record struct {
	mu     sync.Mutex
	name   string
	n      int64 // position
	scopes map[string]protocol.ScopePlans
}

// New starts a NATS server that ends with the test, and is the hub of one cluster.
func New(tb testing.TB) *Hub {
	tb.Helper()
	env := bustest.Start(tb)
	b := env.Connect(tb, bus.WithName(natsauth.Installer)) // it asks in the name of the installer
	ensure := func(tb testing.TB) {
		tb.Helper()
		_, err := b.Ensure(tb.Context())
		must(tb, err)
	}
	ensure(tb)
	_, key, err := ed25519.GenerateKey(nil)
	must(tb, err)
	answers := &answers{}
	answers.serve(tb, b.Conn(), key)
	h := &Hub{
		JetStream: b.JetStream(), Key: key, tb: tb, nats: env, ensure: ensure, rendering: render.Known,
		answers: answers,
	}
	return h.Another()
}

// Another is the same hub for one more cluster.
func (h *Hub) Another() *Hub {
	id := uuid.NewString()
	h.nats.AddAgent(h.tb, Tenant, id)
	return &Hub{
		JetStream: h.JetStream, Key: h.Key, ClusterID: id, tb: h.tb, nats: h.nats, ensure: h.ensure,
		record: &record{scopes: map[string]protocol.ScopePlans{}}, rendering: h.rendering,
		holds: &Holds{}, answers: h.answers,
	}
}

// For is the same hub for a subtest: what is missed fails the subtest, and ends it alone.
func (h *Hub) For(tb testing.TB) *Hub {
	other := *h
	other.tb = tb
	return &other
}

// Rendering is the same hub with plans by the newest rules of v, as another release makes them.
func (h *Hub) Rendering(v *render.Versions) *Hub {
	other := *h
	other.rendering = v
	return &other
}

// Ensure makes the streams that are missing.
func (h *Hub) Ensure(tb testing.TB) { tb.Helper(); h.ensure(tb) }

// Public is the key that grants are checked with.
func (h *Hub) Public() ed25519.PublicKey {
	return h.Key.Public().(ed25519.PublicKey)
}

// Stream is the hub's stream of a kind.
func (h *Hub) Stream(ctx context.Context, kind string) (jetstream.Stream, error) {
	return h.JetStream.Stream(ctx, protocol.StreamName(bustest.Installation, kind))
}

// AgentURL is where the agent of the cluster connects, as whom.
func (h *Hub) AgentURL() string { return h.nats.URL(natsauth.AgentName(h.ClusterID)) }

// Config is that of an executor for this hub. It connects as the agent of its cluster, and may do no more (D10).
func (h *Hub) Config(config *rest.Config, holder string) executor.Config {
	agent := h.nats.As(h.tb, natsauth.AgentName(h.ClusterID))
	return executor.Config{
		Tenant: Tenant, Cluster: "test", ClusterID: h.ClusterID, REST: config, JetStream: agent.JetStream(),
		Installation: bustest.Installation, GrantKey: keys.Accept(h.Public()), Holder: holder, Holds: h.holds,
		Now: time.Now, Log: bustest.Log(h.tb), Timing: Quick(), Configs: Configs(h.ClusterID),
	}
}

// Configs seals and opens the configurations of a cluster.
func Configs(clusterID string) configseal.Key {
	root, err := configseal.NewRoot([]byte("the hub of tests has no secret to keep"))
	if err != nil {
		panic(err)
	}
	key, err := root.For(Tenant, clusterID)
	if err != nil {
		panic(err)
	}
	return key
}

// Quick makes takeovers and retries fit for a test. Waits are bounded tightly: they double as long as a failure lasts,
// and on a slow machine everything lasts longer.
func Quick() executor.Timing {
	return executor.Timing{
		Lease: 3 * time.Second, Renew: 500 * time.Millisecond, Resend: time.Second, Reread: time.Second,
		Resync: 5 * time.Second, Backoff: 100 * time.Millisecond, Longest: 2 * time.Second,
		Grace: 200 * time.Millisecond, Pause: time.Second, Refused: 2 * time.Second, Roles: 2 * time.Second,
	}
}

// Scope returns what is wanted of a namespace: at first one operator group with the namespace itself as its target.
func (h *Hub) Scope(ns string) protocol.ScopePlans {
	h.record.mu.Lock()
	defer h.record.mu.Unlock()
	if s, ok := h.record.scopes[ns]; ok {
		return s
	}
	return protocol.ScopePlans{
		Scope:          protocol.Scope{Tenant: Tenant, Cluster: "test", ClusterID: h.ClusterID, Namespace: ns},
		OperatorGroups: 1,
		OperatorGroup: protocol.OperatorGroup{
			ID: uuid.NewSHA1(uuid.MustParse(h.ClusterID), []byte(ns)).String(), Name: "group",
			Spec: events.OperatorGroupSpec{TargetNamespaces: []string{ns}},
		},
	}
}

// Publish writes a scope at the next position.
func (h *Hub) Publish(s protocol.ScopePlans) {
	h.tb.Helper()
	h.record.mu.Lock()
	h.record.n++
	s.Position = events.Position{Epoch: 1, N: h.record.n}
	h.record.mu.Unlock()
	h.PublishAt(s)
}

// PublishAt writes a scope at the position that it has.
func (h *Hub) PublishAt(s protocol.ScopePlans) {
	h.tb.Helper()
	h.record.mu.Lock()
	h.record.scopes[s.Scope.Namespace] = s
	h.record.mu.Unlock()
	var err error
	s.Proof, err = protocol.ProvePosition(s.Scope.ClusterID, s.Position, h.EventAt(s.Position), h.Key)
	must(h.tb, err)
	m := nats.NewMsg(protocol.PlansSubject(s.Scope))
	m.Data, err = json.Marshal(s)
	must(h.tb, err)
	signature, err := protocol.SignMessage(m.Subject, m.Data, h.Key)
	must(h.tb, err)
	m.Header.Set(protocol.HeaderSignature, signature)
	_, err = h.JetStream.PublishMsg(h.tb.Context(), m)
	must(h.tb, err)
}

// EventAt is the hash of the event at a position of the hub's record.
func (h *Hub) EventAt(p events.Position) digest.Digest {
	h.record.mu.Lock()
	defer h.record.mu.Unlock()
	return digest.Bytes([]byte(h.record.name + p.String()))
}

// ReplaceRecord has the hub's record hold other events, as after a restore from a backup; positions go on.
func (h *Hub) ReplaceRecord(name string) {
	h.record.mu.Lock()
	defer h.record.mu.Unlock()
	h.record.name = name
}

// Want publishes a scope with exactly these plans.
func (h *Hub) Want(ns string, plans ...protocol.Plan) {
	h.tb.Helper()
	s := h.Scope(ns)
	s.Plans = plans
	h.Publish(s)
}

// Forget takes back what was said of a namespace: an executor that starts does not look at it.
func (h *Hub) Forget(ns string) {
	h.tb.Helper()
	s, err := h.Stream(h.tb.Context(), protocol.StreamPlans)
	must(h.tb, err)
	must(h.tb, s.Purge(h.tb.Context(), jetstream.WithPurgeSubject(protocol.PlansSubject(h.Scope(ns).Scope))))
}

// Store puts a bundle into the content subjects.
func (h *Hub) Store(c bundle.Content) digest.Digest {
	h.tb.Helper()
	canonical, d, err := c.Canonical()
	must(h.tb, err)
	pack := bundle.Pack(canonical)
	chunks := (len(pack) + protocol.ContentChunkBytes - 1) / protocol.ContentChunkBytes
	for n := range chunks {
		m := &nats.Msg{Subject: protocol.ContentSubject(Tenant, d, n), Header: nats.Header{}}
		m.Data = pack[n*protocol.ContentChunkBytes : min((n+1)*protocol.ContentChunkBytes, len(pack))]
		m.Header.Set(protocol.HeaderChunks, strconv.Itoa(chunks))
		m.Header.Set(protocol.HeaderDigest, string(d))
		_, err := h.JetStream.PublishMsg(h.tb.Context(), m)
		must(h.tb, err)
	}
	return d
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
