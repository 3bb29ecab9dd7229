package recorder_test

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/internal/holds"
	"github.com/chandler-fleet/chandler/services/installer/internal/recorder"
)

// hubKey signs what the hub tells.
var hubKey = ed25519.NewKeyFromSeed([]byte("thirty-two bytes, only for tests"))

// env is a recorder that is given reports one by one, of one registered cluster.
type env struct {
	t        testing.TB
	db       *pgtest.Database
	own      *pg.Pool
	log      *eventlog.Log
	recorder *recorder.Recorder
	scope    protocol.Scope
	sessions map[int64]*protocol.Session // by the epoch that each registered
	now      time.Time
}

func setup(t testing.TB) *env {
	t.Helper()
	d := pgtest.DB(t)
	gateway, own := d.Pool(t, "gateway"), d.Pool(t, "installer")
	stream := events.StreamID{Kind: events.KindCluster, Key: events.Key(events.DefaultTenant, events.KindCluster,
		"east"), Incarnation: 1}
	id := stream.UUID().String()
	m := events.Meta{Tenant: events.DefaultTenant, Source: events.Gateway, Command: uuid.New(), Time: time.Now()}
	if err := gateway.Tx(t.Context(), func(tx pgx.Tx) error {
		_, err := eventlog.New(gateway).Append(t.Context(), tx, m, stream, "east", 0,
			events.ClusterRegistered{Name: "east", Credential: "c1:none"})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	e := &env{
		t: t, db: d, own: own, log: eventlog.New(own), sessions: map[int64]*protocol.Session{}, now: time.Now().UTC(),
		scope: protocol.Scope{Tenant: events.DefaultTenant, Cluster: "east", ClusterID: id, Namespace: "ns"},
	}
	e.exec(`insert into installer.clusters (tenant, name, cluster_id, stream, credential)
		values ($1, 'east', $2, $3, '')`, events.DefaultTenant, id, stream.String())
	e.recordBy("one", nil)
	return e
}

// recordBy has a new recorder claim the cluster; with a bus it can read what it missed.
func (e *env) recordBy(name string, b *bus.Bus) {
	e.t.Helper()
	e.recorder = recorder.New(recorder.Config{
		Pool: e.own, EventLog: e.log, Bus: b, Name: name, Log: bustest.Log(e.t),
		Key: keys.Accept(hubKey.Public().(ed25519.PublicKey)),
	})
	e.claimCluster()
}

func (e *env) claimCluster() {
	e.t.Helper()
	if err := e.recorder.Claim(e.t.Context(), e.scope.Tenant, e.scope.ClusterID); err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) exec(sql string, args ...any) {
	e.t.Helper()
	if _, err := e.own.Exec(e.t.Context(), sql, args...); err != nil {
		e.t.Fatal(err)
	}
}

// session is the one that registered an epoch; it does so when it is asked for first.
func (e *env) session(epoch int64) *protocol.Session {
	e.t.Helper()
	if s := e.sessions[epoch]; s != nil {
		return s
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		e.t.Fatal(err)
	}
	s := protocol.NewSession(uuid.NewString(), key)
	e.sessions[epoch] = s
	e.register(s, epoch, false)
	return s
}

// register registers a session in an epoch, as the host of executors does.
func (e *env) register(s *protocol.Session, epoch int64, restored bool) {
	e.t.Helper()
	got, err := holds.Registry{Pool: e.own, Log: bustest.Log(e.t)}.Register(e.t.Context(), protocol.Hold{
		Tenant: e.scope.Tenant, ClusterID: e.scope.ClusterID, Epoch: epoch, Holder: "test", Session: s.ID(),
		PublicKey: s.PublicKey(), Restored: restored,
	})
	if err != nil || epoch > 0 && got != epoch {
		e.t.Fatalf("epoch %d is registered as %d: %v", epoch, got, err)
	}
}

// signed is a report as its session sends it.
func (e *env) signed(subject string, data []byte, by *protocol.Session) recorder.Message {
	return recorder.Message{Subject: subject, Session: by.ID(), Signature: by.SignReport(subject, data), Data: data}
}

// message is a report as the session of its epoch sends it.
func (e *env) message(subject string, report any) recorder.Message {
	e.t.Helper()
	var by *protocol.Session
	switch r := report.(type) {
	case protocol.ScopeReport:
		by = e.session(r.Epoch)
		r.Session, r.Sequence = by.ID(), by.Next()
		report = r
	case protocol.ClusterReport:
		by = e.session(r.HolderEpoch)
		r.Session, r.Sequence = by.ID(), by.Next()
		report = r
	default:
		e.t.Fatalf("%T is no report", report)
	}
	data, err := json.Marshal(report)
	if err != nil {
		e.t.Fatal(err)
	}
	return e.signed(subject, data, by)
}

func (e *env) record(subject string, report any) {
	e.t.Helper()
	if err := e.recorder.Record(e.t.Context(), e.message(subject, report)); err != nil {
		e.t.Fatal(err)
	}
}

// replaced is a report in which a text takes the place of a slot.
func (e *env) replaced(subject string, report any, slot, text string) recorder.Message {
	e.t.Helper()
	m := e.message(subject, report)
	by := e.session(1)
	return e.signed(subject, []byte(strings.ReplaceAll(string(m.Data), slot, text)), by)
}

// csvs records a report about CSVs by a holder.
func (e *env) csvs(epoch int64, list ...protocol.CSVReport) {
	e.t.Helper()
	e.record(protocol.ScopeReportSubject(e.scope), protocol.ScopeReport{
		Scope: e.scope, Epoch: epoch, Reported: time.Now().UTC(), CSVs: list,
	})
}

// observed records a report about the cluster.
func (e *env) observed(epoch int64, state string) {
	e.t.Helper()
	e.record(protocol.ClusterReportSubject(e.scope.Tenant, e.scope.ClusterID), protocol.ClusterReport{
		Tenant: e.scope.Tenant, Cluster: e.scope.Cluster, ClusterID: e.scope.ClusterID, State: state,
		HolderEpoch: epoch, Reported: time.Now().UTC(),
	})
}

// facts checks what the last stream of a subject holds.
func (e *env) facts(kind events.Kind, subject string, want ...string) {
	e.t.Helper()
	head, err := e.log.Latest(e.t.Context(), e.own, e.scope.Tenant, kind, subject)
	if err != nil {
		e.t.Fatal(err)
	}
	recs, err := e.log.ReadStream(e.t.Context(), e.own, e.scope.Tenant, head.ID, 0)
	if err != nil {
		e.t.Fatal(err)
	}
	got := make([]string, len(recs))
	for i, r := range recs {
		got[i] = string(r.Type)
		if o, ok := r.Payload.(events.ClusterObserved); ok {
			got[i] += " " + o.State
		}
	}
	if !slices.Equal(got, want) {
		e.t.Errorf("the facts of %s are %q, want %q", subject, got, want)
	}
}

func pending(uid, message string) protocol.CSVReport {
	return protocol.CSVReport{Name: "etcd.v1", UID: uid, History: []protocol.Transition{
		{Phase: "Pending", Reason: "RequirementsUnknown", Message: message, Time: time.Now().UTC()},
	}}
}

// Text from a cluster that Postgres would refuse does not hold up the facts that come with it.
func TestMessagesThatPostgresWouldRefuse(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]string{
		"cut inside a character": "x" + strings.Repeat("é", 1<<12),
		"NUL":                    "a\x00b",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			e.csvs(1, pending("u1", message))
			e.facts(events.KindCSV, "east/ns/etcd.v1", "csv.phase-changed.v1")
			var kept string
			if err := e.own.QueryRow(t.Context(), `select message from installer.messages where kind = 'csv'`).Scan(
				&kept); err != nil {
				t.Fatal(err)
			}
			if kept == "" || len(kept) > 4<<10 || !utf8.ValidString(kept) || strings.Contains(kept, "\x00") {
				t.Errorf("kept %d bytes: %.20q", len(kept), kept)
			}
		})
	}
}

// A cluster was registered again under its name, so that only the log knows the CSV whose end is reported.
func TestRemovalOfACSVThatOnlyTheLogKnows(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.csvs(1, pending("u1", ""))
	e.exec(`delete from installer.csv_lives`) // with the registration
	gone := protocol.CSVReport{Name: "etcd.v1", Removed: true, RemovedReason: "Deleted"}
	e.csvs(1, gone)
	e.facts(events.KindCSV, "east/ns/etcd.v1", "csv.phase-changed.v1", "csv.removed.v1")
	e.csvs(2, gone) // said again
	e.facts(events.KindCSV, "east/ns/etcd.v1", "csv.phase-changed.v1", "csv.removed.v1")
	e.csvs(2, pending("u2", ""))
	e.facts(events.KindCSV, "east/ns/etcd.v1", "csv.phase-changed.v1")
}

// An operator that somebody deleted before anything of it was recorded: who follows the log expects it from the end of
// its plan on, and is told once that it is gone. Of what no plan has brought nothing is recorded.
func TestRemovalOfAnOperatorThatNobodySaw(t *testing.T) {
	t.Parallel()
	e := setup(t)
	gone := protocol.CSVReport{Name: "etcd.v1", Removed: true, RemovedReason: "Deleted"}
	for n := range 2 {
		gone.Plan = uuid.NewString()
		name := fmt.Sprint("install-", n)
		e.fact("resolver", events.Resolver, events.KindInstallPlan, gone.Plan, "east/ns/"+name,
			events.InstallPlanProposed{
				Plan: gone.Plan, Name: name, Cluster: "east", Namespace: "ns", Approval: "Automatic", Steps: 1,
				Bundles: []events.PlannedBundle{{CSV: "etcd.v1", Package: "etcd"}},
			})
		e.granted(gone.Plan, time.Now().Add(time.Minute))
		e.csvs(1, gone) // its plan has not ended
		if got := e.text(removals); got != fmt.Sprint(n) {
			t.Errorf("before plan %d has ended %s removals are recorded", n, got)
		}
		e.record(protocol.ScopeReportSubject(e.scope), protocol.ScopeReport{
			Scope: e.scope, Epoch: 1, Reported: time.Now().UTC(),
			Plans: []protocol.PlanReport{{ID: gone.Plan, Phase: protocol.PlanFinished, Begun: true}},
		})
		other := gone
		other.Name = "other.v1"
		for range 2 { // said again
			e.csvs(1, gone, other)
			e.facts(events.KindCSV, "east/ns/etcd.v1", "csv.removed.v1")
		}
		e.facts(events.KindCSV, "east/ns/other.v1")
		if got := e.text(removals); got != fmt.Sprint(n+1) {
			t.Errorf("after plan %d %s removals are recorded", n, got)
		}
	}
	seen := pending("u1", "")
	seen.Plan = gone.Plan
	e.csvs(1, seen)
	e.facts(events.KindCSV, "east/ns/etcd.v1", "csv.phase-changed.v1")
}

// removals counts what was recorded.
const removals = `select count(*) from eventlog.appended where type = 'csv.removed.v1'`

// Who cannot reach the cluster and does not hold it is not believed while its holder speaks, and is when
// the holder was not heard any more.
func TestNobodySpeaksBesideTheHolder(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.observed(3, "Connected")
	connected := []string{"cluster.registered.v1", "cluster.observed.v1 Connected"}
	e.observed(0, "Unreachable")
	e.facts(events.KindCluster, "east", connected...)
	e.exec(`update installer.holders set heard = now() - interval '31 seconds'`)
	e.observed(3, "Connected") // the same again: heard
	e.observed(0, "Unreachable")
	e.facts(events.KindCluster, "east", connected...)
	e.csvs(3, pending("u1", ""))
	e.exec(`update installer.holders set heard = now() - interval '31 seconds'`)
	e.observed(0, "Unreachable") // the same as before, which was not believed
	e.facts(events.KindCluster, "east", append(connected, "cluster.observed.v1 Unreachable")...)

	e.csvs(0, pending("u1", ""))
	var epoch int64
	if err := e.own.QueryRow(t.Context(), `select epoch from installer.reports`).Scan(&epoch); err != nil ||
		epoch != 3 {
		t.Errorf("the report's epoch is %d after one without an epoch: %v", epoch, err)
	}
}

// TestRemovalIsRecorded is R-UNI-1 and R-UNI-7: a request is followed to its end, in the order of what happened; what
// stayed is kept until the package is installed again; a report that comes twice adds nothing.
func TestRemovalIsRecorded(t *testing.T) {
	t.Parallel()
	e := setup(t)
	installed := pending("u1", "")
	installed.Package = "etcd"
	e.csvs(1, installed)
	e.requested("r1")
	report := func(x protocol.RemovalReport, list ...protocol.CSVReport) {
		for range 2 {
			e.record(protocol.ScopeReportSubject(e.scope), protocol.ScopeReport{
				Scope: e.scope, Epoch: 1, Reported: time.Now().UTC(), CSVs: list, Removals: []protocol.RemovalReport{x},
			})
		}
	}
	x := protocol.RemovalReport{ID: "r1", CSV: "etcd.v1", Phase: protocol.PlanStarted}
	report(x, installed)
	x.Phase, x.Class, x.Reason, x.Message = protocol.PlanBlocked, "transient", "FinalizersPending", "a/b waits"
	report(x, installed)
	if got := e.text(
		`select message from installer.messages where kind = 'removal' and subject = 'east/ns/etcd.v1'`); got != "a/b waits" {
		t.Errorf("the message is %q", got)
	}
	x = protocol.RemovalReport{ID: "r1", CSV: "etcd.v1", Phase: protocol.PlanFinished, Left: []protocol.Leftover{
		{
			ObjectRef: protocol.ObjectRef{Kind: "CustomResourceDefinition", Name: "etcds.example.com"},
			Reason:    protocol.LeftNotAsked,
		},
	}}
	gone := installed
	gone.Removed, gone.RemovedReason, gone.Removal = true, "Uninstalled", "r1"
	report(x, gone)
	e.facts(events.KindCSV, "east/ns/etcd.v1", "csv.phase-changed.v1", "csv.removal-requested.v1",
		"csv.removal-started.v1", "csv.removal-blocked.v1", "csv.removed.v1")
	if got := e.text(`select objects->0->>'name' from installer_api.leftovers
		where package = 'etcd' and cluster = 'east'`); got != "etcds.example.com" {
		t.Errorf("left is %q", got)
	}
	if got := e.text(`select count(*)::text from installer.messages where kind = 'removal'`); got != "0" {
		t.Errorf("%s messages of a removal that is over", got)
	}
	again := pending("u2", "")
	again.Package = "etcd"
	e.csvs(1, again)
	if got := e.text(`select count(*)::text from installer.leftovers`); got != "0" {
		t.Errorf("%s leftovers of a package that is installed again", got)
	}
}

// requested appends the request to uninstall etcd.v1, as the gateway does.
func (e *env) requested(id string) {
	e.t.Helper()
	gateway := e.db.Pool(e.t, "gateway")
	log := eventlog.New(gateway)
	head, err := log.Latest(e.t.Context(), gateway, e.scope.Tenant, events.KindCSV, "east/ns/etcd.v1")
	if err != nil {
		e.t.Fatal(err)
	}
	m := events.Meta{Tenant: events.DefaultTenant, Source: events.Gateway, Command: uuid.New(), Time: time.Now()}
	if err := gateway.Tx(e.t.Context(), func(tx pgx.Tx) error {
		_, err := log.Append(e.t.Context(), tx, m, head.ID, "east/ns/etcd.v1", head.Version,
			events.CSVRemovalRequested{Removal: id})
		return err
	}); err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) text(sql string) (out string) {
	e.t.Helper()
	if err := e.own.QueryRow(e.t.Context(), sql).Scan(&out); err != nil {
		e.t.Fatalf("%s: %v", sql, err)
	}
	return out
}

// TestDetailsAreKept: what a report says of an operator beside its phases is kept for people, as it is, told to the log
// where it says something new, and forgotten with the operator (R-CSV-5, R-CSV-24, R-COND-3, R-CSV-62).
func TestDetailsAreKept(t *testing.T) {
	t.Parallel()
	e := setup(t)
	r := pending("u1", "one or more requirements couldn't be found")
	r.Requirements = json.RawMessage(`[{"kind":"CustomResourceDefinition","name":"a\u0000b","status":"NotPresent"}]`)
	r.Condition = &protocol.OperatorCondition{Reason: "Reindexing"}
	r.Components = []protocol.Component{
		{ObjectRef: protocol.ObjectRef{Kind: "Deployment", Namespace: "ns", Name: "etcd"}, Status: "InProgress"},
	}
	r.Drift = []protocol.Drift{{ObjectRef: r.Components[0].ObjectRef, Missing: true, Since: time.Now()}}
	r.NotReady = []protocol.NotReady{{
		Deployment: "etcd", Reason: "ImagePullFailed",
		Message: "image x cannot be pulled",
	}, {Deployment: "no name", Reason: "x"}}
	r.Conditions = []protocol.Condition{{
		Type: "OptionalKindsNotServed", Status: "True", Reason: "APINotServed",
		Message: "without monitors", Since: time.Now(),
	}}
	r.Message = "installing: image x cannot be pulled"
	e.csvs(1, r)
	e.csvs(1, r)
	e.facts(events.KindCSV, "east/ns/etcd.v1", "csv.phase-changed.v1", "operatorcondition.changed.v1",
		"csv.readiness-changed.v1", "csv.drifted.v1")
	kept := e.text(`select requirements::text || condition::text || drift::text || components::text || not_ready::text
		|| conditions::text from installer.operator_details`)
	for _, want := range []string{
		"a\uFFFDb", "Reindexing", `"missing":true`, "InProgress",
		`[{"deployment":"etcd","reason":"ImagePullFailed","message":"image x cannot be pulled"}]`,
		"OptionalKindsNotServed",
	} {
		if !strings.Contains(kept, want) {
			t.Errorf("kept %s, without %s", kept, want)
		}
	}
	if body := e.text(`select document::text from installer_api.drifts`); !strings.Contains(body, `"etcd"`) {
		t.Errorf("the differences of the event are %s", body)
	}
	if said := e.text(`select message from installer.messages where kind = 'csv'`); said != r.Message {
		t.Errorf("of the phase is told %q, want what holds now", said)
	}
	r.Condition, r.Drift, r.NotReady = &protocol.OperatorCondition{Upgradeable: true}, nil, nil
	e.csvs(1, r)
	r.Removed, r.RemovedReason = true, "Replaced"
	e.csvs(1, r)
	e.facts(events.KindCSV, "east/ns/etcd.v1", "csv.phase-changed.v1", "operatorcondition.changed.v1",
		"csv.readiness-changed.v1", "csv.drifted.v1",
		"operatorcondition.changed.v1", "csv.readiness-changed.v1", "csv.drift-ended.v1", "csv.removed.v1")
	if n := e.text(`select count(*)::text from installer.operator_details`); n != "0" {
		t.Errorf("%s operators have details after their removal", n)
	}
}

// TestRequirementsAreRows: what a report calls requirements and is none is not kept, and holds up nothing.
func TestRequirementsAreRows(t *testing.T) {
	t.Parallel()
	e := setup(t)
	for raw, want := range map[string]string{
		`{"a":1}`: "", `[{"kind":"ServiceAccount","more":{}}]`: `"kind":"ServiceAccount"`,
		"[{\"name\":\"\xff\"}]": "\uFFFD",
	} {
		r := pending("u1", "")
		r.Requirements = json.RawMessage(`"SLOT"`)
		m := e.replaced(protocol.ScopeReportSubject(e.scope), protocol.ScopeReport{
			Scope: e.scope, Epoch: 1, Reported: time.Now().UTC(),
			CSVs: []protocol.CSVReport{r},
		}, `"SLOT"`, raw)
		if err := e.recorder.Record(t.Context(), m); err != nil {
			t.Errorf("%q: %v", raw, err)
		}
		kept := e.text(`select coalesce(requirements::text, '') from installer.operator_details`)
		if (kept == "") != (want == "") || !strings.Contains(kept, want) || strings.Contains(kept, "more") {
			t.Errorf("%q: kept %s", raw, kept)
		}
	}
}
