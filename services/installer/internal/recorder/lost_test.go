package recorder_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
)

// TestLostFactsAreRecordedAgain: a fact whose commit was lost is recorded again when the executor repeats its report,
// though the same recorder has recorded that report before. Its id is another one once the loss was noticed: who has
// seen the event that was lost does not take the new one for it.
func TestLostFactsAreRecordedAgain(t *testing.T) {
	t.Parallel()
	e := setup(t)
	report := pending("u1", "x")
	e.observed(1, "Reachable")
	e.csvs(1, report)
	e.observed(1, "Reachable")
	const observed = "cluster.observed.v1 Reachable"
	e.facts(events.KindCluster, "east", "cluster.registered.v1", observed)
	lost := e.observedID()

	e.loseFacts()
	e.facts(events.KindCluster, "east", "cluster.registered.v1")
	e.observed(1, "Reachable")
	e.csvs(1, report)
	e.facts(events.KindCluster, "east", "cluster.registered.v1", observed)
	e.facts(events.KindCSV, "east/ns/etcd.v1", "csv.phase-changed.v1")
	if id := e.observedID(); id != lost {
		t.Errorf("within an epoch the same fact has the ids %s and %s", lost, id)
	}

	e.loseFacts()
	if err := e.log.CheckEpoch(t.Context(), events.Position{Epoch: 1, N: 9}, "cluster east"); !errs.Is(err,
		errs.Unavailable) {
		t.Fatalf("a record that lost commits: %v", err)
	}
	e.observed(1, "Reachable")
	e.facts(events.KindCluster, "east", "cluster.registered.v1", observed)
	again := e.observedID()
	if again == lost {
		t.Errorf("the fact has the id of the event that was lost, %s", lost)
	}
	e.observed(1, "Reachable")
	if id := e.observedID(); id != again {
		t.Errorf("a report that is repeated in the next epoch was recorded as %s and %s", again, id)
	}
}

// loseFacts takes what the recorder has recorded back, as a restored backup does.
func (e *env) loseFacts() {
	e.t.Helper()
	admin := e.db.Pool(e.t, "admin")
	for _, sql := range []string{
		`delete from eventlog.appended where kind = 'csv' or type = 'cluster.observed.v1'`,
		`delete from eventlog.streams where kind = 'csv'`,
		`update eventlog.streams set version = 1 where kind = 'cluster'`,
		`delete from installer.csv_lives`, `delete from installer.reports`, `delete from installer.observations`,
	} {
		if _, err := admin.Exec(e.t.Context(), sql); err != nil {
			e.t.Fatal(err)
		}
	}
}

// observedID is the id of what was last observed of the cluster.
func (e *env) observedID() (id string) {
	e.t.Helper()
	err := e.db.Pool(e.t, "admin").QueryRow(e.t.Context(), `select event_id from eventlog.appended
		where type = 'cluster.observed.v1' order by version desc limit 1`).Scan(&id)
	if err != nil {
		e.t.Fatal(err)
	}
	return id
}
