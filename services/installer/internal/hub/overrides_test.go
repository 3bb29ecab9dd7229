package hub

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/events"
)

// TestOverridesAreToldUntilTheyEnd is R-COND-6: what counts of an operator in the place of its own conditions travels
// to its executor, whatever its phase is meanwhile, until it is taken back or the operator is gone. The next version
// begins without.
func TestOverridesAreToldUntilTheyEnd(t *testing.T) {
	t.Parallel()
	d := newFixture(t, time.Now())
	phase := func(name string) events.Payload { return events.CSVPhaseChanged{Phase: "Succeeded", Name: name} }
	yes := []events.ConditionOverride{{Type: "Upgradeable", Status: "True", Reason: "Tested"}}
	set := events.OperatorConditionOverridden{Overrides: yes}
	want := func(when string, want map[string][]events.ConditionOverride) {
		t.Helper()
		w, ok, err := d.h.read(t.Context(), bus.Scope{Tenant: events.DefaultTenant, Cluster: "east", Namespace: "ns"})
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		got := map[string][]events.ConditionOverride{}
		for _, i := range w.message.Installed {
			if got[i.CSV] = nil; i.Overrides != nil {
				got[i.CSV] = i.Overrides.Conditions
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	type told = map[string][]events.ConditionOverride
	d.aboutCSV("tide.v1", phase("tide.v1"), set)
	want("set", told{"tide.v1": yes})
	d.aboutCSV("tide.v1", events.CSVPhaseChanged{Phase: "Replacing", Content: "sha256:1"})
	d.aboutCSV("tide.v2", phase("tide.v2"))
	want("while the next version comes", told{"tide.v1": yes, "tide.v2": nil})
	d.aboutCSV("tide.v1", events.CSVRemoved{Reason: "Replaced"})
	want("after the upgrade", told{"tide.v2": nil})
	d.aboutCSV("tide.v1", phase("tide.v1"))
	want("after going back", told{"tide.v1": nil, "tide.v2": nil})
	d.aboutCSV("tide.v1", set, events.OperatorConditionOverridesRemoved{})
	want("taken back", told{"tide.v1": nil, "tide.v2": nil})
}
