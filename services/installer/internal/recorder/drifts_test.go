package recorder_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/installer/internal/recorder"
)

// TestDriftsAreKeptByTheRetention: the differences that a csv.drifted event names are there as long as the event,
// unless a retention is set and over; then an event in the same transaction says which went.
func TestDriftsAreKeptByTheRetention(t *testing.T) {
	t.Parallel()
	e := setup(t)
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	const year = 365 * 24 * time.Hour
	for digest, age := range map[string]time.Duration{"a": 4 * year, "b": 3 * year, "c": year} {
		e.exec(`insert into installer.drifts (tenant, digest, body, created) values ($1, $2, '[]', $3)`, e.scope.Tenant,
			digest, now.Add(-age))
	}
	collector := &recorder.DriftCollector{
		Pool: e.own, EventLog: e.log, Log: bustest.Log(t), Now: func() time.Time { return now },
	}
	collect := func(keep time.Duration, want, left int) {
		t.Helper()
		collector.Keep = keep
		n, err := collector.Collect(t.Context())
		if err != nil || n != want || e.count(`select count(*) from installer.drifts`) != left {
			t.Errorf("kept for %s: removed %d (%v), want %d of which %d are left", keep, n, err, want, left)
		}
	}
	collect(0, 0, 3)

	admin := e.db.Pool(t, "admin")
	change := func(sql string) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	tell := string(events.DriftsCollected{}.EventType())
	const columns = `(type, kind, writer, closes) select type, kind, writer, closes from x`
	change(`with x as (delete from eventlog.event_types where type = '` + tell + `' returning *)
		insert into eventlog.coming_types ` + columns)
	collector.Keep = 2 * year
	if n, err := collector.Collect(t.Context()); err == nil || n != 0 || e.count(
		`select count(*) from installer.drifts`) != 3 {
		t.Errorf("before all readers know the event %d went (%v)", n, err)
	}
	change(`with x as (delete from eventlog.coming_types where type = '` + tell + `' returning *)
		insert into eventlog.event_types ` + columns)

	collect(2*year, 2, 1)
	collect(2*year, 0, 1)
	head, err := e.log.Latest(t.Context(), e.own, e.scope.Tenant, events.KindRetention, "installer")
	if err != nil {
		t.Fatal(err)
	}
	recs, err := e.log.ReadStream(t.Context(), e.own, e.scope.Tenant, head.ID, 0)
	if err != nil || len(recs) != 1 {
		t.Fatalf("%d events (%v), want one", len(recs), err)
	}
	want := events.DriftsCollected{
		Removed: events.NewRemoved("drifts", []string{"b", "a"}, now.Add(-4*year), now.Add(-3*year), 2*year),
	}
	if diff := cmp.Diff(events.Payload(want), recs[0].Payload); diff != "" {
		t.Errorf("the event (-want +got):\n%s", diff)
	}
}
