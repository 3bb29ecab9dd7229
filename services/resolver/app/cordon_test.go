package app_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/resolver/app"
)

// TestCordonedCluster: nothing new is planned for a cordoned cluster; a plan that is there is carried out; what waited
// is planned when the cluster is uncordoned. What was recorded can be made again (issue 14, section 1).
func TestCordonedCluster(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	say := func(p events.Payload) { f.append(events.Gateway, events.KindCluster, cluster, cluster, p) }
	live := func() (out []string) {
		for _, p := range f.plans() {
			if p.Live() {
				out = append(out, p.Proposed.Component)
			}
		}
		return out
	}
	f.addCatalog("fleet")
	f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0"}), f.pkg("gauge", version{v: "1.0.0"}))
	f.subscribe("buoy", "buoy", "stable")
	f.quiet()
	first := f.livePlan()
	say(events.ClusterCordoned{})
	f.quiet()
	f.carryOut(first)
	f.quiet()
	f.publish("fleet", "", f.pkg("buoy", version{v: "1.1.0", replaces: "1.0.0"}, version{v: "1.0.0"}),
		f.pkg("gauge", version{v: "1.0.0"}))
	f.subscribe("gauge", "gauge", "stable")
	f.quiet()
	if got := live(); len(got) != 0 {
		t.Fatalf("planned for a cordoned cluster: %v", got)
	}
	for _, name := range []string{"buoy", "gauge"} {
		a := f.explain(app.ExplainQuestion{Subscription: name})
		if a.Recorded.Reason != "ClusterCordoned" || !a.Agrees {
			t.Errorf("%s: %+v, differences %+v", name, a.Recorded, a.Differences)
		}
	}
	say(events.ClusterUncordoned{})
	f.quiet()
	if got := live(); len(got) != 2 {
		t.Errorf("planned once it is uncordoned: %v", got)
	}
}
