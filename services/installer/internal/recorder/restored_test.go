package recorder_test

import (
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestRestoredCluster: after etcd of a cluster was restored from a backup, epochs begin again below those that were
// seen. The cluster is believed again when its former holder is silent and the new one is not; then each operator goes
// on from where its history is, and what was reported before says nothing any more.
func TestRestoredCluster(t *testing.T) {
	t.Parallel()
	e := setup(t)
	start := time.Now().Add(-time.Hour).UTC()
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	connected := func(epoch int64, second int) {
		e.record(protocol.ClusterReportSubject(e.scope.Tenant, e.scope.ClusterID), protocol.ClusterReport{
			Tenant: e.scope.Tenant, Cluster: "east", ClusterID: e.scope.ClusterID, State: "Connected",
			HolderEpoch: epoch, Reported: at(second),
		})
	}
	operator := func(name, uid string, phases ...string) protocol.CSVReport {
		r := protocol.CSVReport{Name: name, UID: uid, Package: name}
		for i, p := range phases {
			r.History = append(r.History, protocol.Transition{Phase: p, Reason: p, Time: at(i)})
		}
		return r
	}
	scope := func(epoch int64, second int, list ...protocol.CSVReport) {
		e.record(protocol.ScopeReportSubject(e.scope), protocol.ScopeReport{
			Scope: e.scope, Epoch: epoch, Reported: at(second), CSVs: list,
		})
	}
	connected(7, 0)
	gone := operator("gone.v1", "u2", "Succeeded")
	gone.Removed, gone.RemovedReason = true, "Uninstalled"
	scope(7, 1, operator("tide.v1", "u1", "Pending", "Installing", "Succeeded", "Failed", "Pending", "Succeeded"), gone,
		operator("late.v1", "u3", "Pending", "Failed"))
	tide := []string{
		"csv.phase-changed.v1", "csv.phase-changed.v1", "csv.phase-changed.v1", "csv.phase-changed.v1",
		"csv.phase-changed.v1", "csv.phase-changed.v1",
	}
	e.facts(events.KindCSV, "east/ns/tide.v1", tide...)

	// The backup is from before tide failed, gone was uninstalled and late failed.
	after := []protocol.CSVReport{
		operator("tide.v1", "u1", "Pending", "Installing", "Succeeded", "Failed"),
		operator("gone.v1", "u2", "Succeeded"), operator("late.v1", "u3", "Pending", "Succeeded"),
	}
	connected(3, 100)
	scope(3, 101, after...)
	e.facts(events.KindCSV, "east/ns/tide.v1", tide...) // the holder was heard a moment ago
	e.exec(`update installer.holders set heard = now() - interval '31 seconds'`)
	for second := 110; second <= 230; second += 15 {
		scope(3, second-1, after...)
		connected(3, second)
	}
	e.facts(events.KindCSV, "east/ns/tide.v1", tide...)
	connected(3, 235)
	e.facts(events.KindCluster, "east", "cluster.registered.v1", "cluster.observed.v1 Connected",
		"cluster.observed.v1 Connected")
	scope(3, 236, after...)
	e.facts(events.KindCSV, "east/ns/tide.v1", append(tide, "csv.phase-changed.v1")...)
	e.facts(events.KindCSV, "east/ns/gone.v1", "csv.phase-changed.v1") // it is there again: another life
	e.facts(events.KindCSV, "east/ns/late.v1", "csv.phase-changed.v1", "csv.phase-changed.v1")
	if n := e.count(
		`select count(*) from eventlog.appended where subject = 'east/ns/late.v1' and type = 'csv.removed.v1'`); n != 1 {
		t.Errorf("the life of an operator that never failed has ended %d times", n)
	}
	scope(3, 237, append(after, operator("more.v1", "u4", "Pending"))...)
	e.facts(events.KindCSV, "east/ns/more.v1", "csv.phase-changed.v1")
	scope(3, 236, append(after, operator("stale.v1", "u7", "Pending"))...) // overtaken by the one before
	e.facts(events.KindCSV, "east/ns/stale.v1")

	e.scope.Namespace = "old" // a last value of before, read again
	scope(7, 2, operator("old.v1", "u5", "Pending"))
	e.facts(events.KindCSV, "east/old/old.v1")
	e.scope.Namespace = "ns"
	scope(4, 240, append(after, operator("next.v1", "u6", "Pending"))...)
	e.facts(events.KindCSV, "east/ns/next.v1", "csv.phase-changed.v1")
	if epoch := e.count(`select epoch from installer.holders`); epoch != 4 {
		t.Errorf("the holder's epoch is %d", epoch)
	}
}
