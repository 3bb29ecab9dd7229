package recorder_test

import (
	"crypto/ed25519"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/internal/recorder"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

// bounded has the recorder bound facts by these, at a time that the test sets.
func (e *env) bounded(now *time.Time, scope, cluster record.RateLimit) {
	e.recorder = recorder.New(recorder.Config{
		Pool: e.own, EventLog: e.log, Log: bustest.Log(e.t), Key: keys.Accept(hubKey.Public().(ed25519.PublicKey)),
		Now: func() time.Time { return *now }, Scope: scope, Cluster: cluster,
	})
	e.claimCluster()
}

func (e *env) count(sql string) (n int) {
	e.t.Helper()
	if err := e.own.QueryRow(e.t.Context(), sql).Scan(&n); err != nil {
		e.t.Fatal(err)
	}
	return n
}

const csvFacts = `select count(*) from eventlog.appended where type like 'csv.%'`

// invented are operators that a cluster makes up.
func invented(n int, uid string) []protocol.CSVReport {
	list := make([]protocol.CSVReport, n)
	for i := range list {
		list[i] = pending(uid, "")
		list[i].Name = fmt.Sprintf("tide%02d.v1", i)
	}
	return list
}

// TestFloodIsBounded: DESIGN D2: however many operators or lives of operators a cluster invents, what its reports begin
// is bounded in each namespace and in the cluster, over restarts of the recorder; outcomes of plans are recorded in any
// case; and when it is calm again, the record says what holds then.
func TestFloodIsBounded(t *testing.T) {
	t.Parallel()
	e := setup(t)
	now := time.Now()
	scope, cluster := record.RateLimit{Burst: 10, Every: time.Second}, record.RateLimit{Burst: 15, Every: time.Second}
	e.bounded(&now, scope, cluster)
	for n := range 5 {
		e.csvs(1, invented(30, fmt.Sprint("u", n))...)
		e.bounded(&now, scope, cluster)
	}
	if got := e.count(csvFacts); got < 10 || got > 12 { // the last life may bring the end of the one before
		t.Fatalf("%d facts of a namespace, want 10", got)
	}
	plan := uuid.NewString()
	e.fact("resolver", events.Resolver, events.KindInstallPlan, plan, "east/ns/install-x", events.InstallPlanProposed{
		Plan: plan, Name: "install-x", Cluster: "east", Namespace: "ns", Approval: "Automatic", Steps: 1,
	})
	e.granted(plan, time.Now().Add(time.Minute))
	report := func(p protocol.PlanReport) {
		p.ID, p.Begun = plan, true
		e.record(protocol.ScopeReportSubject(e.scope), protocol.ScopeReport{
			Scope: e.scope, Epoch: 1, Reported: time.Now().UTC(), Plans: []protocol.PlanReport{p},
		})
	}
	report(protocol.PlanReport{
		Phase: protocol.PlanBlocked, Class: "transient", Reason: "Timeout",
		Message: "the API server is slow",
	})
	e.facts(events.KindInstallPlan, plan, "installplan.proposed.v1", "installplan.started.v1")
	if got := e.text(
		`select message from installer.messages where kind = 'installplan'`); got != "the API server is slow" {
		t.Errorf("people are told %q", got)
	}
	report(protocol.PlanReport{Phase: protocol.PlanFinished})
	e.facts(events.KindInstallPlan, plan, "installplan.proposed.v1", "installplan.started.v1",
		"installplan.finished.v1")

	home := e.scope
	e.scope.Namespace = "web"
	e.csvs(1, invented(30, "u")...)
	if got := e.count(csvFacts + ` and subject like 'east/web/%'`); got > 5 {
		t.Errorf("%d facts of another namespace of a cluster that has had its 15", got)
	}
	e.scope = home
	for range 40 { // calm: the same is said again and again, while the budgets fill
		now = now.Add(10 * time.Second)
		e.csvs(1, invented(30, "last")...)
	}
	if got := e.count(
		`select count(*) from installer.csv_lives where uid = 'last' and not removed and namespace = 'ns'`); got != 30 {
		t.Errorf("%d of 30 operators are recorded in the end", got)
	}
	if got := e.count(
		`select count(*) from installer.csv_lives where uid <> 'last' and not removed and namespace = 'ns'`); got != 0 {
		t.Errorf("%d former lives have not ended", got)
	}
}

// TestNobodyIsStarved: while the first operators of a namespace use up its budget again and again, the last one has its
// turn.
func TestNobodyIsStarved(t *testing.T) {
	t.Parallel()
	e := setup(t)
	now := time.Now()
	e.bounded(&now, record.RateLimit{Burst: 10, Every: time.Second}, record.ClusterRateLimit)
	for n := range 15 {
		e.csvs(1, invented(30, fmt.Sprint("u", n))...)
		now = now.Add(5 * time.Second)
	}
	e.facts(events.KindCSV, "east/ns/tide29.v1", "csv.phase-changed.v1")
}

// TestClockOfTheCluster: a clock that is years ahead neither ends the windows of the bounds nor makes the reports that
// come when it is right count as older.
func TestClockOfTheCluster(t *testing.T) {
	t.Parallel()
	e := setup(t)
	condition := func(i int, at time.Time) {
		r := pending("u1", "")
		r.Condition = &protocol.OperatorCondition{Reason: fmt.Sprint("Reason", i)}
		e.record(protocol.ScopeReportSubject(e.scope), protocol.ScopeReport{
			Scope: e.scope, Epoch: 1, Reported: at,
			CSVs: []protocol.CSVReport{r},
		})
	}
	for i := range 3 * record.HealthLimit {
		condition(i, time.Now().Add(time.Duration(i+1)*24*time.Hour).UTC())
	}
	if got := e.count(
		`select count(*) from eventlog.appended where type = 'operatorcondition.changed.v1'`); got != record.HealthLimit {
		t.Errorf("%d changes are recorded, want %d", got, record.HealthLimit)
	}
	e.record(protocol.ScopeReportSubject(e.scope), protocol.ScopeReport{
		Scope: e.scope, Epoch: 1, Reported: time.Now().UTC(),
		CSVs: []protocol.CSVReport{{Name: "etcd.v1", UID: "u1", Removed: true}},
	})
	if got := e.count(`select count(*) from eventlog.appended where type = 'csv.removed.v1'`); got != 1 {
		t.Error("a report that was made when the clock was right is taken for an older one")
	}
}

// TestMoreThanTenThousandNamespaces: every namespace that the hub has published to may be reported of, however many
// there are; of others a cluster cannot make up any number.
func TestMoreThanTenThousandNamespaces(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.exec(`insert into installer.published (tenant, cluster_id, namespace, cluster, digest, stopped, published)
		select $1, $2, 'ns-' || n, 'east', 'x', false, now() from generate_series(1, 12000) n`,
		events.DefaultTenant, e.scope.ClusterID)
	e.exec(`insert into installer.reports (tenant, cluster_id, namespace, epoch, reported, digest)
		select $1, $2, 'ns-' || n, 1, now(), 'x' from generate_series(1, 11999) n`,
		events.DefaultTenant, e.scope.ClusterID)
	e.scope.Namespace = "ns-12000"
	e.csvs(1, pending("u1", ""))
	if got := e.count(`select count(*) from installer.csv_lives where namespace = 'ns-12000'`); got != 1 {
		t.Errorf("%d operators are recorded of one more namespace", got)
	}
	e.exec(`insert into installer.reports (tenant, cluster_id, namespace, epoch, reported, digest)
		select $1, $2, 'made-up-' || n, 1, now(), 'x' from generate_series(1, 1000) n`,
		events.DefaultTenant, e.scope.ClusterID)
	e.scope.Namespace = "made-up-1001"
	err := e.recorder.Record(t.Context(), e.message(protocol.ScopeReportSubject(e.scope), protocol.ScopeReport{
		Scope: e.scope, Epoch: 1, Reported: time.Now().UTC(), CSVs: invented(1, "u"),
	}))
	if !errs.Is(err, errs.TooLarge) {
		t.Errorf("a namespace that nobody asked for gives %v", err)
	}
}
