package hub

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/telemetry/telemetrytest"
)

// foldCSV folds an event about an operator.
func (d *fixture) foldCSV(csvName string, p events.Payload) {
	d.t.Helper()
	subject := "east/ns/" + csvName
	e := eventlog.Recorded{
		Envelope: events.Envelope{
			ID: uuid.NewString(), Tenant: events.DefaultTenant, Type: p.EventType(),
			Subject: subject,
		},
		StreamID: events.StreamID{
			Kind: events.KindCSV, Key: events.Key(events.DefaultTenant, events.KindCSV, subject),
			Incarnation: 1,
		}, Payload: p,
	}
	if err := d.h.c.Pool.Tx(d.t.Context(), func(tx pgx.Tx) error {
		return d.h.handlers.Handle(
			d.t.Context(), tx, e)
	}); err != nil {
		d.t.Fatal(err)
	}
}

// finishPlan proposes a plan and ends it with a number of warnings.
func (d *fixture) finishPlan(warnings int) {
	d.t.Helper()
	id := uuid.New()
	for i, p := range []events.Payload{
		events.InstallPlanProposed{
			Plan: id.String(), Name: id.String(), Cluster: "east", Namespace: "ns", Approval: "Automatic",
		},
		events.InstallPlanFinished{Warnings: warnings},
	} {
		d.n++
		e := eventlog.Recorded{
			Envelope: events.Envelope{
				ID: uuid.NewString(), Tenant: events.DefaultTenant, Type: p.EventType(), Version: int64(i + 1),
				Subject: "east/ns/" + id.String(),
			},
			StreamID: events.StreamID{Kind: events.KindInstallPlan, Key: id, Incarnation: 1},
			Position: events.Position{Epoch: 1, N: d.n}, Payload: p,
		}
		if err := d.h.c.Pool.Tx(d.t.Context(), func(tx pgx.Tx) error {
			return d.h.handlers.Handle(d.t.Context(), tx, e)
		}); err != nil {
			d.t.Fatal(err)
		}
	}
}

// samples are the lines of the metrics, sorted.
func (d *fixture) samples() []string {
	d.t.Helper()
	list, err := Samples(d.t.Context(), d.h.c.Pool)
	if err != nil {
		d.t.Fatal(err)
	}
	out := telemetrytest.Lines(d.t, Metrics(), list)
	slices.Sort(out)
	return out
}

// TestMetrics is R-MET-1 and R-MET-2 for what is installed: series follow the phases, go with their objects, and what
// is counted stays.
func TestMetrics(t *testing.T) {
	t.Parallel()
	d := newFixture(t, time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC))
	phase := func(name, version, phase, reason string) {
		d.foldCSV(name, events.CSVPhaseChanged{Phase: phase, Reason: reason, Package: "tide", Version: version})
	}
	check := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, d.samples()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	check("nothing is installed", "csv_count[]0", "csv_upgrade_count[]0", "install_plan_count[]0",
		"installplan_warnings_total[]0")
	phase("tide.v1", "1.0.0", "Replacing", "BeingReplaced")
	phase("tide.v2", "2.0.0", "Succeeded", "InstallSucceeded")
	check("during an upgrade",
		`csv_abnormal["default" "east" "ns" "tide.v1" "1.0.0" "Replacing" "BeingReplaced"]1`, "csv_count[]2",
		`csv_succeeded["default" "east" "ns" "tide.v1" "1.0.0"]0`,
		`csv_succeeded["default" "east" "ns" "tide.v2" "2.0.0"]1`, "csv_upgrade_count[]0", "install_plan_count[]0",
		"installplan_warnings_total[]0")
	d.foldCSV("tide.v1", events.CSVRemoved{Reason: "Replaced"})
	check("after the upgrade",
		"csv_count[]1", `csv_succeeded["default" "east" "ns" "tide.v2" "2.0.0"]1`, "csv_upgrade_count[]1",
		"install_plan_count[]0", "installplan_warnings_total[]0")
	d.foldCSV("tide.v2", events.CSVRemoved{Reason: "Deleted"})
	for _, n := range []int{3, 0, 4} {
		d.finishPlan(n)
	}
	check("one that a person deleted is no upgrade; warnings add up",
		"csv_count[]0", "csv_upgrade_count[]1", "install_plan_count[]3", "installplan_warnings_total[]7")
}

// TestMetricsOfRemovedCluster: what a cluster had that is no longer registered is not told (R-MET-2).
func TestMetricsOfRemovedCluster(t *testing.T) {
	t.Parallel()
	d := newFixture(t, time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC))
	d.foldCSV("tide.v1", events.CSVPhaseChanged{Phase: "Failed", Reason: "NoOperatorGroup", Version: "1.0.0"})
	if _, err := d.h.c.Pool.Exec(t.Context(), `update installer.clusters set removed = true`); err != nil {
		t.Fatal(err)
	}
	if got := d.samples(); slices.ContainsFunc(got, func(s string) bool { return s == "csv_count[]1" }) ||
		len(got) != 4 {
		t.Errorf("got %q", got)
	}
}
