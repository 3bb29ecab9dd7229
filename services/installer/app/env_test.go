package app_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/content"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/installer/app"
	"github.com/chandler-fleet/chandler/services/installer/executor/hubclient"
	"github.com/chandler-fleet/chandler/services/installer/internal/holds"
)

// patience bounds every wait of these tests.
const patience = 60 * time.Second

// env is an installer on real Postgres and NATS. The test plays the other services, each with its own
// database role, and the executor.
type env struct {
	t        *testing.T
	db       *pgtest.Database
	nats     *bustest.Env
	cfg      app.Config
	identity *age.X25519Identity
	key      keys.Accepted
	private  ed25519.PrivateKey
	pools    map[events.Writer]*pg.Pool
	holders  map[string]holding // that the test plays, by cluster id
	stop     func()
}

func setup(t *testing.T) *env {
	t.Helper()
	return setupOn(t, bustest.Start(t))
}

func setupOn(t *testing.T, n *bustest.Env) *env {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	key := ed25519.NewKeyFromSeed([]byte("thirty-two bytes, only for tests"))
	e := &env{
		t: t, db: pgtest.DB(t), nats: n, identity: id, private: key,
		pools: map[events.Writer]*pg.Pool{}, holders: map[string]holding{},
	}
	e.key = keys.Accept(key.Public().(ed25519.PublicKey))
	for _, w := range []events.Writer{events.Gateway, events.Resolver, events.Fleet, events.Installer, events.Indexer} {
		e.pools[w] = e.db.Pool(t, string(w))
	}
	e.cfg = app.Config{
		Config: service.Config{
			DatabaseURL: e.db.URL(string(events.Installer)), NATS: e.nats.Access("installer"), OpsListen: "127.0.0.1:0",
			Drain: patience,
		},
		Identity: id.String(), GrantKey: base64.StdEncoding.EncodeToString(key.Seed()),
		LocalClusters: true, Bodies: bodiestest.Secrets(), NATSAgents: n.Agents,
	}
	e.start()
	return e
}

// start starts the installer; it is stopped with the test, or by e.stop.
func (e *env) start() {
	e.t.Helper()
	ctx, cancel := context.WithCancel(e.t.Context())
	a, err := app.New(ctx, e.cfg, &telemetry.Telemetry{Log: bustest.Log(e.t)})
	if err != nil {
		cancel()
		e.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	e.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			e.t.Errorf("Run = %v", err)
		}
	})
	e.t.Cleanup(e.stop)
}

// append appends as the service that may write the payload.
func (e *env) append(kind events.Kind, natural, subject string, payloads ...events.Payload) events.StreamID {
	e.t.Helper()
	d, ok := events.Lookup(payloads[0].EventType())
	if !ok {
		e.t.Fatalf("no type %s", payloads[0].EventType())
	}
	pool := e.pools[d.Writer]
	log := eventlog.New(pool)
	for {
		head, err := log.Latest(e.t.Context(), pool, events.DefaultTenant, kind, natural)
		if err != nil {
			e.t.Fatal(err)
		}
		stream, version := head.Create(), int64(0)
		if head.Exists() {
			stream, version = head.ID, head.Version
		}
		m := events.Meta{Tenant: events.DefaultTenant, Source: d.Writer, Command: uuid.New(), Time: time.Now()}
		err = pool.Tx(e.t.Context(), func(tx pgx.Tx) error {
			_, err := log.Append(e.t.Context(), tx, m, stream, subject, version, payloads...)
			return err
		})
		if _, conflict := errors.AsType[*eventlog.ConflictError](err); conflict {
			// the recorder wrote in the same moment
			continue
		}
		if err != nil {
			e.t.Fatal(err)
		}
		return stream
	}
}

func (e *env) one(kind events.Kind, natural string, p events.Payload) events.StreamID {
	e.t.Helper()
	return e.append(kind, natural, natural, p)
}

func (e *env) exec(w events.Writer, sql string, args ...any) {
	e.t.Helper()
	if _, err := e.pools[w].Exec(e.t.Context(), sql, args...); err != nil {
		e.t.Fatal(err)
	}
}

// cluster registers a cluster without a kubeconfig and with an operator group in namespace ns.
func (e *env) cluster(name string) protocol.Scope {
	e.t.Helper()
	id := e.one(events.KindCluster, name, events.ClusterRegistered{Name: name, Credential: "c1:none"})
	e.one(events.KindOperatorGroup, name+"/ns/og", events.OperatorGroupCreated{
		Cluster: name, Namespace: "ns", Name: "og",
	})
	return protocol.Scope{Tenant: events.DefaultTenant, Cluster: name, ClusterID: id.UUID().String(), Namespace: "ns"}
}

// bundleNoise is how much randomness a bundle holds: as text it is more than one chunk and less than two,
// packed or not.
const bundleNoise = protocol.ContentChunkBytes * 9 / 8

// store stores a bundle as the indexer does: a recipe and packs.
func (e *env) store(csv string) digest.Digest {
	e.t.Helper()
	text := make([]byte, bundleNoise)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(csv))).Read(text) // never fails
	canonical := []byte(`{"manifests":["` + base64.StdEncoding.EncodeToString(text) + `"]}`)
	index := content.NewChunkIndex()
	recipe := index.Add(canonical, content.Split(canonical))
	var ids []int64
	for _, p := range index.Take() {
		data := content.NewPacker(1).Pack(p.Raw)
		var id int64
		err := e.pools[events.Indexer].QueryRow(e.t.Context(), `insert into catalog.packs as p (tenant, digest, shelf,
			size, data) values ($1, $2, $3, $4, $5)
			on conflict (tenant, digest) do update set shelf = p.shelf returning id`, events.DefaultTenant, digest.Bytes(data), csv, p.Size(), data).Scan(&id)
		if err != nil {
			e.t.Fatal(err)
		}
		ids = append(ids, id)
	}
	d := digest.Bytes(append([]byte(bundle.Type+"\n"), canonical...))
	e.exec(events.Indexer, `insert into catalog.contents (tenant, digest, size, recipe, packs)
		values ($1, $2, $3, $4, $5) on conflict do nothing`,
		events.DefaultTenant, string(d), len(canonical), recipe.Encode(), ids)
	return d
}

// propose stores content and document and proposes a plan for one CSV.
func (e *env) propose(s protocol.Scope, csv, approval string, subscriptions ...string) string {
	e.t.Helper()
	stored := e.store(csv)
	id := uuid.NewString()
	document := []byte(`{"bundles":[],"component":"` + csv + `"}`)
	d := string(digest.Bytes(document))
	e.exec(events.Resolver, `insert into resolver.plan_documents (tenant, plan, digest, document, effect, properties)
		values ($1, $2, $3, $4, '', '{}')`,
		events.DefaultTenant, id, d, document)
	e.append(events.KindInstallPlan, id, fmt.Sprintf("%s/%s/install-%s", s.Cluster, s.Namespace, id[:5]),
		events.InstallPlanProposed{
			Plan: id, Name: "install-" + id[:5], Cluster: s.Cluster, Namespace: s.Namespace, Generation: 1,
			Component: csv, Approval: approval, Digest: d, Document: d, Input: "sha256:in", Semantics: "v1", Steps: 2,
			Rendering: render.Semantics,
			Bundles: []events.PlannedBundle{{
				CSV: csv, Package: csv, Version: "1.0.0", Content: string(stored),
				Reason: "Subscribed", Subscriptions: subscriptions,
			}},
		})
	return id
}

// plans reads what PLANS holds of a scope; ok is false where there is nothing.
func (e *env) plans(s protocol.Scope) (p protocol.ScopePlans, ok bool) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), 5*time.Second)
	defer cancel()
	stream, err := e.nats.Bus.Stream(ctx, protocol.StreamPlans)
	if err != nil {
		return p, false
	}
	m, err := stream.GetLastMsgForSubject(ctx, protocol.PlansSubject(s))
	if err != nil {
		return p, false
	}
	if err := json.Unmarshal(m.Data, &p); err != nil {
		e.t.Fatal(err)
	}
	return p, true
}

// planned waits until PLANS holds exactly these plans of a scope.
func (e *env) planned(s protocol.Scope, ids ...string) protocol.ScopePlans {
	e.t.Helper()
	var p protocol.ScopePlans
	e.eventually(fmt.Sprintf("plans %v in PLANS", ids), func() bool {
		var ok bool
		if p, ok = e.plans(s); !ok || len(p.Plans) != len(ids) {
			return false
		}
		for i, id := range ids {
			if p.Plans[i].ID != id {
				return false
			}
		}
		return true
	})
	return p
}

// holding is the hold of a cluster that the test plays.
type holding struct {
	*protocol.Session
	epoch int64
}

// holder is who holds a cluster, at first in epoch 1.
func (e *env) holder(clusterID string) holding {
	e.t.Helper()
	if h, ok := e.holders[clusterID]; ok {
		return h
	}
	return e.takeOver(clusterID, 1)
}

// takeOver has another executor hold a cluster from now on.
func (e *env) takeOver(clusterID string, epoch int64) holding {
	e.t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		e.t.Fatal(err)
	}
	h := holding{protocol.NewSession(uuid.NewString(), key), epoch}
	e.holders[clusterID] = h
	registry := holds.Registry{Pool: e.pools[events.Installer], Log: bustest.Log(e.t)}
	e.eventually("the cluster is known", func() bool {
		_, err := registry.Register(e.t.Context(), protocol.Hold{
			Tenant: events.DefaultTenant, ClusterID: clusterID, Epoch: epoch, Holder: "test", Session: h.ID(),
			PublicKey: h.PublicKey(),
		})
		return err == nil
	})
	return h
}

// report writes a report as an executor does.
func (e *env) report(s protocol.Scope, r protocol.ScopeReport) {
	e.t.Helper()
	e.send(e.signed(s, r))
}

// signed is the message of a report.
func (e *env) signed(s protocol.Scope, r protocol.ScopeReport) *nats.Msg {
	e.t.Helper()
	own := e.holder(s.ClusterID)
	r.Scope, r.Epoch, r.Session, r.Sequence = s, own.epoch, own.ID(), own.Next()
	body, err := json.Marshal(r)
	if err != nil {
		e.t.Fatal(err)
	}
	return hubclient.SignedReport(protocol.ScopeReportSubject(s), body, own.Session)
}

// reportCluster writes a report about a cluster as a whole.
func (e *env) reportCluster(r protocol.ClusterReport) {
	e.t.Helper()
	own := e.holder(r.ClusterID)
	r.HolderEpoch, r.Session, r.Sequence = own.epoch, own.ID(), own.Next()
	body, err := json.Marshal(r)
	if err != nil {
		e.t.Fatal(err)
	}
	e.send(hubclient.SignedReport(protocol.ClusterReportSubject(r.Tenant, r.ClusterID), body, own.Session))
}

func (e *env) send(m *nats.Msg) {
	e.t.Helper()
	e.eventually("report taken", func() bool {
		ctx, cancel := context.WithTimeout(e.t.Context(), 2*time.Second)
		defer cancel()
		_, err := e.nats.Bus.JetStream().PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
		return err == nil
	})
}

// facts are the events of a kind as "subject type outcome", in the log's order within the kind.
func (e *env) facts(kind events.Kind) []string {
	e.t.Helper()
	log := eventlog.New(e.pools[events.Gateway])
	recs, _, err := log.ReadAfter(e.t.Context(), e.pools[events.Gateway], events.Position{},
		eventlog.Filter{Kinds: []events.Kind{kind}}, 10_000)
	if err != nil {
		e.t.Fatal(err)
	}
	list := make([]string, 0, len(recs))
	for _, r := range recs {
		list = append(list, strings.TrimSpace(string(r.Type)+" "+outcome(r.Payload)))
	}
	return list
}

func outcome(p events.Payload) string {
	switch p := p.(type) {
	case events.CSVPhaseChanged:
		return p.Name + " " + p.Phase + "/" + p.Reason
	case events.CSVRemoved:
		return p.Reason
	case events.ClusterObserved:
		return p.State + " " + p.Reason
	case events.InstallPlanBlocked:
		return p.Class + "/" + p.Reason
	case events.InstallPlanFailed:
		return fmt.Sprint(p.Step, " ", p.Reason)
	}
	return ""
}

// recorded waits until the facts of a kind are these.
func (e *env) recorded(kind events.Kind, want ...string) {
	e.t.Helper()
	var got []string
	ok := func() bool {
		got = e.facts(kind)
		return strings.Join(got, "\n") == strings.Join(want, "\n")
	}
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			e.t.Fatalf("facts of kind %s are\n  %s\nwant\n  %s", kind, strings.Join(got, "\n  "),
				strings.Join(want, "\n  "))
		}
	}
}

func (e *env) eventually(what string, ok func() bool) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			e.t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// history is a CSV's way to Succeeded, or the first n steps of it.
func history(n int) []protocol.Transition {
	all := []protocol.Transition{
		{Phase: "Pending", Reason: "RequirementsUnknown"},
		{Phase: "InstallReady", Reason: "AllRequirementsMet"},
		{Phase: "Installing", Reason: "InstallSucceeded"},
		{Phase: "Succeeded", Reason: "InstallSucceeded"},
	}
	for i := range all {
		all[i].Time = time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC)
	}
	return all[:n]
}
