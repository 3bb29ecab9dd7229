package recorder_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

// claim is a report of a cluster that says it has acted on a position.
func (e *env) claim(epoch int64, seen events.Position, proof []byte) error {
	e.t.Helper()
	r := protocol.ScopeReport{
		Scope: e.scope, Epoch: epoch, Seen: seen, Proof: proof, Reported: time.Now().UTC(),
		CSVs: []protocol.CSVReport{pending("u1", "")},
	}
	return e.recorder.Record(e.t.Context(), e.message(protocol.ScopeReportSubject(r.Scope), r))
}

func (e *env) stopped() bool {
	e.t.Helper()
	_, is, err := e.log.EffectsStopped(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	return is
}

// TestSeenIsProved: a cluster stops the fleet only with what the hub told it (DESIGN D1); what it merely claims costs
// it its own reports.
func TestSeenIsProved(t *testing.T) {
	t.Parallel()
	seen := events.Position{Epoch: 1, N: 9000}
	prove := func(cluster string, key ed25519.PrivateKey) []byte {
		proof, err := protocol.ProvePosition(cluster, seen, "", key)
		if err != nil {
			t.Error(err)
		}
		return proof
	}
	of := func(e *env) []byte { return prove(e.scope.ClusterID, hubKey) }
	for name, c := range map[string]struct {
		proof func(e *env) []byte
		seen  events.Position
	}{
		"no proof":            {func(*env) []byte { return nil }, seen},
		"of another position": {of, events.Position{Epoch: 1 << 62, N: 1}},
		"of another cluster": {func(*env) []byte {
			return prove(uuid.NewString(), hubKey)
		}, seen},
		"of a cluster by a message": {func(*env) []byte {
			text, _ := protocol.SignMessage("s", []byte("b"), hubKey)
			signature, _ := base64.StdEncoding.DecodeString(text)
			return signature
		}, seen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			if err := e.claim(1, c.seen, c.proof(e)); !errs.Is(err, errs.Forbidden) {
				t.Errorf("the report is %v, want forbidden", err)
			}
			if e.stopped() {
				t.Error("effects are stopped everywhere")
			}
			e.facts(events.KindCSV, "east/ns/etcd.v1")
			if said := e.text(
				`select message from installer.messages where kind = 'cluster' and subject = 'east'`); !strings.Contains(said, "chandler-seen") {
				t.Errorf("people are told %q", said)
			}
		})
	}
	t.Run("proved", func(t *testing.T) {
		t.Parallel()
		e := setup(t)
		if err := e.claim(1, seen, of(e)); err != nil || !e.stopped() {
			t.Errorf("recorded %v, effects are not stopped", err)
		}
		e.facts(events.KindCSV, "east/ns/etcd.v1", "csv.phase-changed.v1")
	})
	t.Run("not the holder", func(t *testing.T) {
		t.Parallel()
		e := setup(t)
		e.session(6)
		e.observed(7, "Connected")
		if err := e.claim(6, seen, of(e)); err != nil || e.stopped() {
			t.Errorf("recorded %v, effects are stopped by a holder that was replaced", err)
		}
	})
	t.Run("not registered", func(t *testing.T) {
		t.Parallel()
		e := setup(t)
		e.session(1)
		e.scope.ClusterID = uuid.NewString()
		if err := e.claim(1, seen, of(e)); !errs.Is(err, errs.Forbidden) || e.stopped() {
			t.Errorf("recorded %v, effects are stopped by a cluster that nobody knows", err)
		}
	})
}

// TestRecordWasReplaced: a record that was restored from a backup and has gone on is as long as what a cluster has
// acted on, or longer. The hash of the event there tells that it is another one: effects stop, whatever the cluster has
// heard since.
func TestRecordWasReplaced(t *testing.T) {
	t.Parallel()
	before, e := setup(t), setup(t) // two records; what differs is what happened in them
	e.bounded(&e.now, record.RateLimit{}, record.RateLimit{})
	told := before.lastEvent()
	for range 3 { // the restored one has gone on
		e.gotOn()
	}
	now := e.lastEvent()
	if !told.Position.Less(now.Position) || told.Position.Epoch != now.Position.Epoch {
		t.Fatalf("the record stands at %s, want it beyond %s", now.Position, told.Position)
	}
	report := func(acted, seen eventlog.Recorded, withHash bool) {
		t.Helper()
		prove := func(r eventlog.Recorded) []byte {
			if !withHash {
				r.Hash = ""
			}
			proof, err := protocol.ProvePosition(e.scope.ClusterID, r.Position, r.Hash, hubKey)
			if err != nil {
				t.Fatal(err)
			}
			return proof
		}
		e.record(protocol.ClusterReportSubject(e.scope.Tenant, e.scope.ClusterID), protocol.ClusterReport{
			Tenant: e.scope.Tenant, Cluster: e.scope.Cluster, ClusterID: e.scope.ClusterID, State: "Connected",
			HolderEpoch: 1, Reported: e.now, Seen: seen.Position, Proof: prove(seen), Acted: acted.Position,
			ActedProof: prove(acted),
		})
		e.now = e.now.Add(time.Hour)
	}
	report(now, now, true)
	report(told, now, false) // as an older release proved it: nothing is known of the event
	if e.stopped() {
		t.Fatal("effects are stopped by what the record holds")
	}
	report(told, now, true)
	stop, stopped, err := e.log.EffectsStopped(t.Context())
	if err != nil || !stopped || stop.Seen != told.Position || stop.Source != "cluster east" {
		t.Fatalf("stopped %v: %+v %v", stopped, stop, err)
	}
	if err := eventlog.New(e.db.Pool(t, "gateway")).Resume(t.Context(), stop.Epoch, "person"); err != nil {
		t.Fatal(err)
	}
	report(told, now, true) // a person has accepted the loss
	if e.stopped() {
		t.Error("a loss that was accepted stops effects again")
	}
}

// TestRecordIsReplacedMeanwhile: a cluster at rest reports the same thing again and again; the record is compared with
// it all the same.
func TestRecordIsReplacedMeanwhile(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.bounded(&e.now, record.RateLimit{}, record.RateLimit{})
	last := e.lastEvent()
	proof, err := protocol.ProvePosition(e.scope.ClusterID, last.Position, last.Hash, hubKey)
	if err != nil {
		t.Fatal(err)
	}
	report := func() {
		t.Helper()
		e.record(protocol.ClusterReportSubject(e.scope.Tenant, e.scope.ClusterID), protocol.ClusterReport{
			Tenant: e.scope.Tenant, Cluster: e.scope.Cluster, ClusterID: e.scope.ClusterID, State: "Connected",
			HolderEpoch: 1, Acted: last.Position, ActedProof: proof,
		})
	}
	report()
	report()
	if e.stopped() {
		t.Fatal("effects are stopped by what the record holds")
	}
	// The event is another one from now on, as after a restore; only a test can do that.
	admin := e.db.Pool(t, "admin")
	if _, err := admin.Exec(t.Context(), `alter table eventlog.events disable trigger user;
		update eventlog.events set hash = sha256('another')`); err != nil {
		t.Fatal(err)
	}
	report()
	if e.stopped() {
		t.Fatal("the record is compared at every report")
	}
	e.now = e.now.Add(time.Minute)
	report()
	if !e.stopped() {
		t.Error("effects go on by a record that was replaced")
	}
}

// gotOn appends an event to the stream of the cluster.
func (e *env) gotOn() {
	e.t.Helper()
	gateway := e.db.Pool(e.t, "gateway")
	stream := events.StreamID{Kind: events.KindCluster, Key: events.Key(events.DefaultTenant, events.KindCluster,
		"east"), Incarnation: 1}
	m := events.Meta{Tenant: events.DefaultTenant, Source: events.Gateway, Command: uuid.New(), Time: time.Now()}
	must(e.t, gateway.Tx(e.t.Context(), func(tx pgx.Tx) error {
		head, err := e.log.Latest(e.t.Context(), tx, events.DefaultTenant, events.KindCluster, "east")
		if err != nil {
			return err
		}
		_, err = eventlog.New(gateway).Append(e.t.Context(), tx, m, stream, "east", head.Version,
			events.ClusterCredentialReplaced{Credential: "c1:" + uuid.NewString()})
		return err
	}))
}

// lastEvent gives positions to what was appended, and returns the newest event.
func (e *env) lastEvent() eventlog.Recorded {
	e.t.Helper()
	var term int64
	own := e.db.Pool(e.t, "installer")
	must(e.t, own.QueryRow(e.t.Context(), `select eventlog.lead('test', interval '10 s')`).Scan(&term))
	_, err := own.Exec(e.t.Context(), `select eventlog.sequence($1, 1000, '2 s', null)`, term)
	must(e.t, err)
	_, err = own.Exec(e.t.Context(), `select eventlog.resign($1)`, term)
	must(e.t, err)
	head, err := e.log.Latest(e.t.Context(), e.own, events.DefaultTenant, events.KindCluster, "east")
	must(e.t, err)
	list, err := e.log.ReadStream(e.t.Context(), e.own, events.DefaultTenant, head.ID, 0)
	must(e.t, err)
	return list[len(list)-1]
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
