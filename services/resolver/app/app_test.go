package app_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
)

// TestInstallAndUpgradeStepByStep: intents in, plans out; a dependency comes along and gets a subscription; a
// new revision leads to one step at a time (R-GRA-5, R-GRA-6, R-RES-40).
func TestInstallAndUpgradeStepByStep(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	gauge := f.pkg("gauge", version{v: "1.0.0", provides: []string{"Gauge"}})
	buoy := f.pkg("buoy", version{v: "1.0.0", requires: []string{"Gauge"}})
	rev := f.publish("fleet", "", buoy, gauge)
	f.subscribe("buoy", "buoy", "stable")
	f.quiet()
	p := f.livePlan()
	if diff := cmp.Diff([]string{"gauge.v1.0.0 RequiredAPI", "buoy.v1.0.0 ChannelHead"}, csvs(p)); diff != "" {
		t.Fatalf("plan (-want +got):\n%s", diff)
	}
	if p.Proposed.Steps == 0 || p.Proposed.Generation != 1 || p.Proposed.Component != "buoy+gauge" || p.Phase != installplan.Installing {
		t.Errorf("plan %+v", p.Proposed)
	}
	f.carryOut(p)
	f.quiet()
	if n := count(f.decided(), events.SubscriptionGenerated{}); n != 1 {
		t.Fatalf("%d subscriptions generated; decided %v", n, f.decided())
	}

	buoy = f.pkg("buoy", version{v: "1.2.0", replaces: "1.1.0", requires: []string{"Gauge"}}, version{v: "1.1.0", replaces: "1.0.0", requires: []string{"Gauge"}}, version{v: "1.0.0", requires: []string{"Gauge"}})
	f.publish("fleet", rev, buoy, gauge)
	f.quiet()
	for _, want := range []string{"buoy.v1.1.0 NextStep", "buoy.v1.2.0 NextStep"} {
		p := f.livePlan()
		if diff := cmp.Diff([]string{want}, csvs(p)); diff != "" {
			t.Fatalf("step (-want +got):\n%s", diff)
		}
		f.carryOut(p)
		f.quiet()
	}
	if n := len(f.plans()); n != 3 {
		t.Errorf("%d plans, want 3", n)
	}
}
