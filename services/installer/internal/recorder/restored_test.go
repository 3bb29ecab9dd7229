package recorder_test

import (
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestRestoredCluster: after etcd of a cluster was restored from a backup, its executor registers an epoch above those
// that were seen, and says so. It is believed at once; each operator goes on from where its history is, and what was
// reported before says nothing any more.
func TestRestoredCluster(t *testing.T) {
	t.Parallel()
	e := setup(t)
	start := time.Now().Add(-time.Hour).UTC()
	operator := func(name, uid string, phases ...string) protocol.CSVReport {
		r := protocol.CSVReport{Name: name, UID: uid, Package: name}
		for i, p := range phases {
			r.History = append(r.History, protocol.Transition{
				Phase: p, Reason: p, Time: start.Add(time.Duration(i) * time.Second),
			})
		}
		return r
	}
	e.observed(7, "Connected")
	gone := operator("gone.v1", "u2", "Succeeded")
	gone.Removed, gone.RemovedReason = true, "Uninstalled"
	e.csvs(7, operator("tide.v1", "u1", "Pending", "Installing", "Succeeded", "Failed", "Pending", "Succeeded"), gone,
		operator("late.v1", "u3", "Pending", "Failed"))
	tide := []string{
		"csv.phase-changed.v1", "csv.phase-changed.v1", "csv.phase-changed.v1", "csv.phase-changed.v1",
		"csv.phase-changed.v1", "csv.phase-changed.v1",
	}
	e.facts(events.KindCSV, "east/ns/tide.v1", tide...)
	before := e.message(protocol.ScopeReportSubject(e.scope), protocol.ScopeReport{
		Scope: e.scope, Epoch: 7, CSVs: []protocol.CSVReport{operator("old.v1", "u5", "Pending")},
	})

	// The backup is from before tide failed, gone was uninstalled and late failed.
	after := []protocol.CSVReport{
		operator("tide.v1", "u1", "Pending", "Installing", "Succeeded", "Failed"),
		operator("gone.v1", "u2", "Succeeded"), operator("late.v1", "u3", "Pending", "Succeeded"),
	}
	restored := e.session(0)
	e.sessions[8] = restored
	e.register(restored, 8, true)
	e.observed(8, "Connected")
	e.csvs(8, after...)
	e.facts(events.KindCSV, "east/ns/tide.v1", append(tide, "csv.phase-changed.v1")...)
	e.facts(events.KindCSV, "east/ns/gone.v1", "csv.phase-changed.v1") // it is there again: another life
	e.facts(events.KindCSV, "east/ns/late.v1", "csv.phase-changed.v1", "csv.phase-changed.v1")
	if n := e.count(
		`select count(*) from eventlog.appended where subject = 'east/ns/late.v1' and type = 'csv.removed.v1'`); n != 1 {
		t.Errorf("the life of an operator that never failed has ended %d times", n)
	}

	if err := e.recorder.Record(t.Context(), before); err != nil { // a last value of before, read again
		t.Error(err)
	}
	e.facts(events.KindCSV, "east/ns/old.v1")
	e.csvs(9, append(after, operator("next.v1", "u6", "Pending"))...)
	e.facts(events.KindCSV, "east/ns/next.v1", "csv.phase-changed.v1")
	if epoch := e.count(`select epoch from installer.holders`); epoch != 9 {
		t.Errorf("the holder's epoch is %d", epoch)
	}
}
