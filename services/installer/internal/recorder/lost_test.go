package recorder_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
)

// TestLostFactsAreRecordedAgain: a fact whose commit was lost is recorded again when the executor repeats its report,
// though the same recorder has recorded that report before.
func TestLostFactsAreRecordedAgain(t *testing.T) {
	t.Parallel()
	e := setup(t)
	report := pending("u1", "x")
	e.observed(1, "Reachable")
	e.csvs(1, report)
	e.observed(1, "Reachable")
	const observed = "cluster.observed.v1 Reachable"
	e.facts(events.KindCluster, "east", "cluster.registered.v1", observed)
	admin := e.db.Pool(t, "admin")
	for _, sql := range []string{
		`delete from eventlog.appended where kind = 'csv' or type = 'cluster.observed.v1'`,
		`delete from eventlog.streams where kind = 'csv'`,
		`update eventlog.streams set version = 1 where kind = 'cluster'`,
		`delete from installer.csv_lives`, `delete from installer.reports`, `delete from installer.observations`,
	} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	e.facts(events.KindCluster, "east", "cluster.registered.v1")
	e.observed(1, "Reachable")
	e.csvs(1, report)
	e.facts(events.KindCluster, "east", "cluster.registered.v1", observed)
	e.facts(events.KindCSV, "east/ns/etcd.v1", "csv.phase-changed.v1")
}
