package app_test

import (
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
)

// TestDeletedByHand: R-UNI-8 as Chandler means it: what somebody deletes in the cluster by hand is planned again as
// long as a subscription wants it, in the subscription's own mode of approval; who wants it gone ends that, too
// (chandler uninstall does both), and then nothing comes back.
func TestDeletedByHand(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0"}))
	f.subscribe("buoy", "buoy", "stable", manual)
	f.quiet()
	installed := func() installplan.State {
		p := f.livePlan()
		f.append(events.Gateway, events.KindInstallPlan, scoped(p.Proposed.Name), p.Proposed.Plan,
			events.InstallPlanApproved{
				Digest: p.Proposed.Digest, Base: p.Proposed.Base, Expires: time.Now().Add(time.Hour),
			})
		f.carryOut(p)
		f.quiet()
		return p
	}
	deleted := func() {
		f.append(events.Installer, events.KindCSV, scoped("buoy.v1.0.0"), scoped("buoy.v1.0.0"),
			events.CSVRemoved{Reason: "Deleted"})
		f.quiet()
	}
	first := installed()
	deleted()
	again := f.livePlan()
	if again.Proposed.Plan == first.Proposed.Plan || again.Proposed.Approval != installplan.Manual ||
		again.Proposed.Bundles[0].CSV != "buoy.v1.0.0" {
		t.Errorf("planned again was %+v", again.Proposed)
	}
	installed()
	f.append(events.Gateway, events.KindSubscription, scoped("buoy"), scoped("buoy"), events.SubscriptionDeleted{})
	deleted()
	for _, p := range f.plans() {
		if p.Live() {
			t.Errorf("without a subscription there is plan %s", p.Proposed.Name)
		}
	}
}
