package record_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

// TestRemovalReports names each row of the table above DecideRemoval (R-UNI-1), and that a report which comes
// twice adds nothing.
func TestRemovalReports(t *testing.T) {
	t.Parallel()
	requested, started := events.CSVRemovalRequested{Removal: "r1"}, events.CSVRemovalStarted{Removal: "r1"}
	blocked := events.CSVRemovalBlocked{Removal: "r1", Class: "transient", Reason: "FinalizersPending"}
	refused := events.CSVRemovalRefused{Removal: "r1", Reason: "PlanChanged"}
	waits := protocol.RemovalReport{
		ID: "r1", Phase: protocol.PlanBlocked, Class: "transient",
		Reason: "FinalizersPending",
	}
	for _, c := range []struct {
		name   string
		given  []events.Payload
		report protocol.RemovalReport
		then   []events.Payload
	}{
		{"never asked for", nil, protocol.RemovalReport{ID: "r1", Phase: protocol.PlanStarted}, nil},
		{
			"of another request",
			[]events.Payload{requested},
			protocol.RemovalReport{ID: "r0", Phase: protocol.PlanStarted},
			nil,
		},
		{
			"refused already",
			[]events.Payload{requested, refused},
			protocol.RemovalReport{ID: "r1", Phase: protocol.PlanStarted},
			nil,
		},
		{
			"the operator is gone",
			[]events.Payload{requested, events.CSVRemoved{}},
			protocol.RemovalReport{ID: "r1", Phase: protocol.PlanFinished},
			nil,
		},
		{
			"asked for by a fleet subscription",
			[]events.Payload{events.CSVRemovalDirected{Removal: "r1"}},
			protocol.RemovalReport{ID: "r1", Phase: protocol.PlanStarted},
			[]events.Payload{started},
		},
		{"refused", []events.Payload{requested}, protocol.RemovalReport{
			ID: "r1", Phase: protocol.RemovalRefused,
			Reason: "PlanChanged",
		}, []events.Payload{refused}},
		{
			"started",
			[]events.Payload{requested},
			protocol.RemovalReport{ID: "r1", Phase: protocol.PlanStarted},
			[]events.Payload{started},
		},
		{
			"finished before it was told that it started",
			[]events.Payload{requested},
			protocol.RemovalReport{ID: "r1", Phase: protocol.PlanFinished},
			[]events.Payload{started},
		},
		{"blocked", []events.Payload{requested, started}, waits, []events.Payload{blocked}},
		{
			"blocked for another reason",
			[]events.Payload{
				requested, started,
				events.CSVRemovalBlocked{Removal: "r1", Class: "stopped", Reason: "EffectsStopped"},
			},
			waits,
			[]events.Payload{blocked},
		},
		{
			"goes on",
			[]events.Payload{requested, started, blocked},
			protocol.RemovalReport{ID: "r1", Phase: protocol.PlanStarted},
			nil,
		},
		{
			"asked for again after a refusal",
			[]events.Payload{requested, refused, requested},
			waits,
			[]events.Payload{blocked},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var s record.Removal
			for _, p := range append(c.given, events.OperatorConditionChanged{}, events.CSVFlapping{}) {
				s = record.EvolveRemoval(s, p)
			}
			got := record.DecideRemoval(s, c.report)
			if diff := cmp.Diff(c.then, got); diff != "" {
				t.Fatal(diff)
			}
			for _, p := range got {
				s = record.EvolveRemoval(s, p)
			}
			if again := record.DecideRemoval(s, c.report); len(again) > 0 {
				t.Errorf("said again: %+v", again)
			}
		})
	}
}

// TestUninstalledNamesItsRequest: csv.removed says which request it ends with, whether the object was seen to go or
// not.
func TestUninstalledNamesItsRequest(t *testing.T) {
	t.Parallel()
	want := events.CSVRemoved{Reason: "Uninstalled", Removal: "r1"}
	r := csv(at(0, "Succeeded/InstallSucceeded"))
	_, s := record.DecideCSV(record.CSV{}, scope, r, start)
	r.Removed, r.RemovedReason, r.Removal = true, "Uninstalled", "r1"
	got, _ := record.DecideCSV(s, scope, r, start)
	if diff := cmp.Diff([]events.Payload{want}, got); diff != "" {
		t.Error(diff)
	}
	vanished, _ := record.EndCSV(s, "Uninstalled", "r1")
	if diff := cmp.Diff([]events.Payload{want}, vanished); diff != "" {
		t.Error(diff)
	}
}
