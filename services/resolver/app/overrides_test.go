package app_test

import (
	"slices"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/override"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
)

// TestRolloutWithOverrides: each cluster is asked for what its override says, as the rollout has written it down; when
// labels change, the next rollout asks that cluster alone; and one on which two overrides are a conflict fails with
// both named, and is not asked (issue 14, section 2).
func TestRolloutWithOverrides(t *testing.T) {
	t.Parallel()
	s := newShore(t)
	s.publish("fleet", "", s.pkg("buoy", version{v: "1.0.0"}))
	spec := s.spec()
	spec.Overrides = []events.FleetOverride{
		{Name: "canaries", Selector: "ring=0", Approval: "Manual"},
		{Name: "fourth", Clusters: []string{"east-4"}, Approval: "Manual"},
	}
	label := func(cluster string, labels map[string]string) {
		s.append(events.Gateway, events.KindCluster, cluster, cluster, events.ClusterLabelsChanged{Labels: labels})
	}
	// asked are the approvals of the newest word of subscriptions, by cluster.
	asked := func(number int) map[string]string {
		out := map[string]string{}
		for _, e := range s.recorded() {
			if p, ok := e.Payload.(events.SubscriptionPlaced); ok && p.Rollout == number {
				out[p.Cluster] = p.Spec.Approval
			}
		}
		return out
	}
	approve := func(cluster string) {
		p, _ := s.plan(cluster)
		s.append(events.Gateway, events.KindInstallPlan, cluster+"/"+namespace+"/"+p.Proposed.Name, p.Proposed.Plan,
			events.InstallPlanApproved{
				Digest: p.Proposed.Digest, Base: p.Proposed.Base, Expires: time.Now().Add(time.Hour),
			})
	}
	s.set(spec)
	approve("east-1")
	s.carryOutOn("east-1")
	approve("east-4")
	s.carryOutOn("east-2", "east-3", "east-4")
	got := s.rollout(1)
	if a := asked(1); got.Phase != rollout.Succeeded || a["east-1"] != "Manual" || a["east-2"] != "Automatic" ||
		a["east-3"] != "Automatic" || a["east-4"] != "Manual" {
		t.Fatalf("the rollout is %+v, asked %v", got, a)
	}

	label("east-2", map[string]string{"ring": "0"})
	s.quiet()
	got = s.rollout(2)
	if a := asked(2); got.Phase != rollout.Succeeded || got.Started.Change != events.ChangeMembership || len(a) != 1 ||
		a["east-2"] != "Manual" {
		t.Fatalf("other labels: the rollout is %+v, asked %v", got, a)
	}

	deep := events.FleetOverride{Name: "deep", Selector: "depth", Approval: "Automatic"}
	spec.Overrides = append(spec.Overrides, deep)
	s.set(spec)
	if got := s.rollout(3); got.Phase != "" {
		t.Fatalf("an override that holds nowhere begins %+v", got)
	}
	label("east-1", map[string]string{"ring": "0", "depth": "9"})
	s.quiet()
	got = s.rollout(3)
	if c := got.Clusters["east-1"]; len(got.Clusters) != 1 || c.Outcome != events.ClusterFailed ||
		c.Reason != override.ReasonConflict || len(asked(3)) != 0 ||
		!slices.Equal(got.Started.Conflicts[0].Overrides, []string{"canaries", "deep"}) {
		t.Fatalf("in conflict: the rollout is %+v, asked %v", got, asked(3))
	}
}
