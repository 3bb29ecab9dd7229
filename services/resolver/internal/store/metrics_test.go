package store_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/libs/telemetry/telemetrytest"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store"
)

// TestMetrics is R-MET-1 and R-MET-2 for subscriptions: the series of a deleted one disappears, and so does its count.
func TestMetrics(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var syncs telemetry.Tally
	check := func(when string, want ...string) {
		t.Helper()
		list, err := store.MetricSamples(t.Context(), b.pool, &syncs)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, telemetrytest.Lines(t, store.Metrics(), list)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	create := func(name string) {
		b.apply(t, "harbour/ns/"+name, 1, events.SubscriptionCreated{
			Cluster: "harbour", Namespace: "ns", Name: name,
			Spec: events.SubscriptionSpec{Package: "tide", Channel: "stable", Catalog: "c", Approval: "Manual"},
		})
	}
	check("without subscriptions", `subscription_count[]0`)
	create("ebb")
	create("tide")
	for _, name := range []string{"tide", "tide", "gone"} {
		syncs.Add(store.TallyKey(tenant, scope("ns"), name))
	}
	series := fmt.Sprintf(`subscription_sync_total[%q "harbour" "ns" "tide" "" "stable" "tide" "Manual"]2`, tenant)
	check("with two, one of them resolved", `subscription_count[]2`, series)
	b.apply(t, "harbour/ns/tide", 2, events.SubscriptionDeleted{})
	check("after one is deleted", `subscription_count[]1`)
	if counts := syncs.Counts([]string{store.TallyKey(tenant, scope("ns"), "tide")}); len(counts) != 0 {
		t.Errorf("the deleted one is still counted: %v", counts)
	}
}
