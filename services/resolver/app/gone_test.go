package app_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
)

// TestDeletedBeforeItWasSeen: an InstalledOperator that somebody deletes after its plan has ended, and before anything
// of it was recorded, is planned again once its end is.
func TestDeletedBeforeItWasSeen(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0"}))
	f.subscribe("buoy", "buoy", "stable")
	f.quiet()
	first := f.livePlan()
	f.append(events.Installer, events.KindInstallPlan, scoped(first.Proposed.Name), first.Proposed.Plan,
		events.InstallPlanStarted{}, events.InstallPlanFinished{})
	f.quiet()
	if n := len(f.plans()); n != 1 {
		t.Fatalf("%d plans while the operator is expected", n)
	}
	f.append(events.Installer, events.KindCSV, scoped("buoy.v1.0.0"), scoped("buoy.v1.0.0"),
		events.CSVRemoved{Reason: "Deleted"})
	f.quiet()
	if again := f.livePlan(); again.Proposed.Plan == first.Proposed.Plan {
		t.Error("it is not planned again")
	}
}

// TestDeletedWhileItsPlanRan: an InstalledOperator that somebody deletes while its plan runs ends that plan. It is
// planned again, as one that was deleted after its plan is.
func TestDeletedWhileItsPlanRan(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0"}))
	f.subscribe("buoy", "buoy", "stable")
	f.quiet()
	first := f.livePlan()
	plan := func(payloads ...events.Payload) {
		f.append(events.Installer, events.KindInstallPlan, scoped(first.Proposed.Name), first.Proposed.Plan,
			payloads...)
	}
	plan(events.InstallPlanStarted{})
	f.phase(first.Proposed.Bundles[0], first.Proposed.Plan, "Pending")
	f.quiet()
	f.append(events.Installer, events.KindCSV, scoped("buoy.v1.0.0"), scoped("buoy.v1.0.0"),
		events.CSVRemoved{Reason: "Deleted"})
	plan(events.InstallPlanFailed{Step: 2, Reason: "BaseChanged", StepLog: "log"})
	f.quiet()
	live := 0
	for _, p := range f.plans() {
		if p.Live() {
			live++
		}
	}
	if live != 1 {
		t.Errorf("%d plans are to bring it back", live)
	}
}
