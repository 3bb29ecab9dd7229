package app_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/previewapi"
)

// TestWhatFollowsARemoval: who depends on an operator by dependencies.yaml is named before it goes (R-UNI-4), and so
// is the plan by which it would come back.
func TestWhatFollowsARemoval(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0", requires: []string{"Gauge"}}),
		f.pkg("gauge", version{v: "1.0.0", provides: []string{"Gauge"}}))
	f.subscribe("buoy", "buoy", "stable")
	f.quiet()
	f.carryOut(f.livePlan())
	f.quiet()
	before := len(f.recorded())
	ask := func(csv string, subscriptions ...string) (out previewapi.RemovalPreview) {
		t.Helper()
		f.must(f.gateway.Call(f.ctx, previewapi.RemovalSubject,
			previewapi.RemovalQuestion{
				Tenant: tenant, Cluster: cluster, Namespace: namespace, CSV: csv,
				Subscriptions: subscriptions,
			}, &out))
		return out
	}
	gone := ask("gauge.v1.0.0", "gauge-stable-fleet")
	if len(gone.Dependants) != 1 || gone.Dependants[0].String() != namespace+"/buoy.v1.0.0" ||
		len(gone.Dependants[0].Requires) != 1 {
		t.Errorf("dependants %+v", gone.Dependants)
	}
	if p := gone.After.Plans; len(p) != 1 || p[0].Bundles[0].CSV != "gauge.v1.0.0" ||
		p[0].Bundles[0].RequiredBy == "" || p[0].Document != nil {
		t.Errorf("what follows %+v", gone.After)
	}
	if free := ask("buoy.v1.0.0", "buoy"); len(free.Dependants) != 0 || len(free.After.Plans) != 0 ||
		len(free.After.Failures) != 0 {
		t.Errorf("nobody depends on it: %+v", free)
	}
	if after := len(f.recorded()); after != before {
		t.Errorf("%d events by a question", after-before)
	}
}
