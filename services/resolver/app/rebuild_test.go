package app_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/projection/projectiontest"
)

// TestRebuildBeside: the resolver's tables are made anew from a log with real decisions while the resolver works. What
// comes out is what was there, nothing else of the schema changes, and nothing new is decided.
func TestRebuildBeside(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.govern("waits", func(*events.ApprovalPolicySpec) {})
	f.append(events.Gateway, events.KindPolicy, "catalog-health", "catalog-health",
		events.CatalogHealthSet{Mode: "Lenient"})
	f.populate()
	f.carryOutAll()
	f.fetched(buoyImage, "", "NotFound")
	f.append(events.Installer, events.KindCluster, cluster, cluster, events.ClusterObserved{State: "Connected"})
	f.append(events.Gateway, events.KindFleetSubscription, "fleet-a", "fleet-a", events.FleetSubscriptionSet{
		Name: "fleet-a", Spec: events.FleetSubscriptionSpec{
			Package: "a", Channel: "stable", Catalog: "fleet", Namespace: "fleet-ops", Approval: installplan.Automatic,
			OperatorGroup: events.FleetOperatorGroup{Name: "og"}, DeletionPolicy: events.DeletionPolicyOrphan,
			Placement: events.FleetPlacement{Clusters: []string{"*"}},
		},
	})
	f.append(events.Gateway, events.KindFleetBudget, events.FleetBudgetSubject, events.FleetBudgetSubject,
		events.FleetBudgetSet{Changed: 50}, events.FleetBudgetAllowed{Changed: 5, Reason: "c1:more"})
	f.quiet()
	decided := f.decided()
	var spoil []string
	for _, table := range []string{
		"clusters", "catalogs", "catalog_revisions", "bundle_images", "catalog_health", "approval_policies",
		"operator_groups", "subscriptions", "installed", "rollouts", "rollout_clusters",
		"directives",
	} {
		spoil = append(spoil, `delete from resolver.`+table)
	}
	spoil = append(spoil, `update resolver.fleet_subscriptions set version = version + 100, spec = '{}'`,
		`update resolver.plans set phase = 'Superseded', live = false, generation = generation + 100`)
	projectiontest.RebuildEqualsLive(t, f.admin, f.app.Making(), spoil...)
	f.quiet()
	if diff := cmp.Diff(decided, f.decided()); diff != "" {
		t.Errorf("after the rebuild it decided (-want +got):\n%s", diff)
	}
	f.subscribe("again", "a", "stable") // the live consumer goes on where the rebuild has come to
	f.quiet()
}
