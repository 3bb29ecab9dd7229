package queries_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/rpc"
	"github.com/chandler-fleet/chandler/services/installer/internal/holds"
	"github.com/chandler-fleet/chandler/services/installer/internal/queries"
	"github.com/chandler-fleet/chandler/services/installer/removal"
)

const registration = "11111111-1111-5111-8111-111111111111"

// fixture is an installer service that answers questions, with cluster east registered.
type fixture struct {
	t       *testing.T
	nats    *bustest.Env
	gateway *bus.Bus // asks
	holds   holds.Registry
	hub     ed25519.PrivateKey
	queries.Server
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	db, n := pgtest.DB(t), bustest.Start(t)
	pool := db.Pool(t, "installer")
	if _, err := pool.Exec(t.Context(), `insert into installer.clusters (tenant, name, cluster_id, stream, credential)
		values ($1, 'east', $2, '', '')`,
		events.DefaultTenant, registration); err != nil {
		t.Fatal(err)
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	own := n.As(t, natsauth.Installer, bustest.Speaking(t, db, natsauth.Installer))
	registry := holds.Registry{Pool: pool, Log: bustest.Log(t)}
	return &fixture{
		t: t, nats: n, gateway: n.As(t, natsauth.Gateway, bustest.Speaking(t, db, natsauth.Gateway)),
		holds: registry, hub: key,
		Server: queries.Server{
			Pool: pool, Bus: own, Plans: plans{}, Shares: queries.NewShares(), Key: key, SessionKey: registry.Key,
		},
	}
}

// serving serves until the test ends.
func (d *fixture) serving(serve func(context.Context) error) {
	d.t.Helper()
	ctx, stop := context.WithCancel(d.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx) }()
	d.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			d.t.Error(err)
		}
	})
}

// executor answers a question to the executor of cluster east, which it holds. Somebody else who hears the question,
// and may do everything on NATS, answers first.
func executor[Q any](d *fixture, question string, answer func(Q) (any, error)) {
	d.t.Helper()
	subject := protocol.RPCSubject(events.DefaultTenant, registration, question)
	session := newSession(d.t)
	if _, err := d.holds.Register(d.t.Context(), protocol.Hold{
		Tenant: events.DefaultTenant, ClusterID: registration, Epoch: 1, Holder: "h", Session: session.ID(),
		PublicKey: session.PublicKey(),
	}); err != nil {
		d.t.Fatal(err)
	}
	conn := d.nats.Connect(d.t).Conn()
	forger, stolen := newSession(d.t), `{"account":"forged","csv":"forged"}`
	if _, err := conn.Subscribe(subject, func(m *nats.Msg) {
		signature, err := forger.SignAnswer(m.Data)
		if err != nil {
			d.t.Error(err)
		}
		for _, signature := range []string{"", signature} {
			answer := nats.NewMsg(m.Reply)
			answer.Data = []byte(stolen)
			answer.Header.Set("Chandler-Signature", signature)
			if err := conn.PublishMsg(answer); err != nil {
				d.t.Error(err)
			}
		}
	}); err != nil {
		d.t.Fatal(err)
	}
	by := rpc.Answerer{
		Verify: protocol.HubSigned(keys.Accept(d.hub.Public().(ed25519.PublicKey))), Sign: session.SignAnswer,
	}
	d.serving(func(ctx context.Context) error {
		handle := func(_ context.Context, raw json.RawMessage) (any, error) {
			var q Q
			if err := json.Unmarshal(raw, &q); err != nil {
				return nil, err
			}
			return answer(q)
		}
		return by.Serve(ctx, conn, bustest.Log(d.t), subject, handle)
	})
}

func newSession(t *testing.T) *protocol.Session {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return protocol.NewSession(uuid.NewString(), key)
}

// put asks until the service answers.
func put[A any](d *fixture, subject string, question any) (out A, err error) {
	d.t.Helper()
	for {
		if err = d.gateway.Call(d.t.Context(), subject, question, &out); err == nil ||
			!strings.Contains(err.Error(), "nobody serves") {
			return out, err
		}
	}
}

// patient asks until the executor answers, too.
func patient[A any](d *fixture, subject string, question any) A {
	d.t.Helper()
	for {
		out, err := put[A](d, subject, question)
		if err == nil {
			return out
		}
		if !errs.Is(err, errs.Unavailable) {
			d.t.Fatal(err)
		}
	}
}

// TestRemovals: the executor of the cluster is asked, by the id of its registration; what it says comes back with its
// digest, whatever another said before, and who cannot be asked is named.
func TestRemovals(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.serving(d.ServeRemovalPreviews)
	about := func(cluster string) protocol.OperatorQuestion {
		return protocol.OperatorQuestion{
			Tenant: events.DefaultTenant, Cluster: cluster,
			RemovalQuestion: protocol.RemovalQuestion{Namespace: "ports", CSV: "tidegauge.v1", CRDs: []string{"*"}},
		}
	}
	if _, err := put[protocol.RemovalPreview](d, protocol.RPCInstallerRemoval, about("west")); !errs.Is(
		err, errs.NotFound) {
		t.Errorf("a cluster that is not registered: %v", err)
	}
	if _, err := put[protocol.RemovalPreview](d, protocol.RPCInstallerRemoval, about("east")); !errs.Is(
		err, errs.Unavailable) {
		t.Errorf("a cluster that nobody holds: %v", err)
	}
	plan := protocol.RemovalPlan{
		CSV: "tidegauge.v1", Steps: []protocol.RemovalStep{}, Stays: []protocol.Leftover{},
		Needed: []string{"coast/harbor.v1"},
	}
	executor(d, protocol.RPCRemoval, func(q protocol.RemovalQuestion) (any, error) {
		if q.Namespace != "ports" || q.CSV != "tidegauge.v1" || len(q.CRDs) != 1 {
			return nil, errs.New(errs.Invalid, "asked %+v", q)
		}
		return plan, nil
	})
	digest, err := removal.Digest(plan)
	if err != nil {
		t.Fatal(err)
	}
	got := patient[protocol.RemovalPreview](d, protocol.RPCInstallerRemoval, about("east"))
	if diff := cmp.Diff(protocol.RemovalPreview{RemovalPlan: plan, Digest: string(digest)}, got); diff != "" {
		t.Error(diff)
	}
}
