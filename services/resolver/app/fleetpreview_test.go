package app_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/previewapi"
)

func (s shore) supposing(q previewapi.FleetQuestion) (out previewapi.FleetPage) {
	s.t.Helper()
	q.Tenant, q.Name = tenant, "buoy"
	s.must(s.gateway.Call(s.ctx, previewapi.FleetSubject, q, &out))
	return out
}

// changes are what a preview says of clusters, as "cluster wave change from to reason detail".
func changes(p previewapi.FleetPage) (out [][7]string) {
	for _, c := range p.Clusters {
		out = append(out, [7]string{c.Name, c.Wave, c.Change, c.From, c.To, c.Reason, c.Detail})
	}
	return out
}

// TestFleetPreview: a fleet subscription that nobody has set yet is answered with the waves, targets and plans that
// come of it then, and with why other clusters are not asked (issue 14, section 2). Nothing is written.
func TestFleetPreview(t *testing.T) {
	t.Parallel()
	s := newShore(t)
	first := s.publish("fleet", "", s.pkg("buoy", version{v: "1.0.0"}))
	in := "east-4/" + namespace + "/mine"
	s.append(events.Gateway, events.KindSubscription, in, in, events.SubscriptionCreated{
		Cluster: "east-4", Namespace: namespace, Name: "mine", Spec: events.SubscriptionSpec{
			Package: "buoy", Channel: "stable", Catalog: "fleet", Approval: installplan.Manual,
		},
	})
	s.append(events.Gateway, events.KindCluster, "east-3", "east-3",
		events.ClusterTaintsChanged{Taints: map[string]string{"upkeep": "tonight"}})
	s.quiet()
	before := len(s.recorded())
	spec := s.spec()
	if err := s.gateway.Call(s.ctx, previewapi.FleetSubject, previewapi.FleetQuestion{Tenant: tenant, Name: "buoy"},
		&previewapi.FleetPage{}); !errs.Is(err, errs.NotFound) {
		t.Errorf("of nothing: %v", err)
	}
	got := s.supposing(previewapi.FleetQuestion{Spec: &spec})
	if diff := cmp.Diff([][7]string{
		{"east-1", "canary", "Install", "", "buoy.v1.0.0", "", ""},
		{"east-2", "rest", "Install", "", "buoy.v1.0.0", "", ""},
		{"east-3", "", "", "", "", "TaintNotTolerated", "upkeep=tonight"},
		{"east-4", "rest", "Conflict", "", "", "SubscriptionExists", "mine"},
	}, changes(got)); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(previewapi.FleetTotals{
		Clusters: 4, Chosen: 3, Joining: 3, Asked: 3, NotChosen: map[string]int{"TaintNotTolerated": 1},
	}, got.Totals); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
	if len(s.recorded()) != before {
		t.Errorf("a question appended %v", s.decided())
	}
	// Pages come to the same.
	var paged [][7]string
	for after := ""; ; {
		p := s.supposing(previewapi.FleetQuestion{Spec: &spec, After: after, Limit: 3})
		paged = append(paged, changes(p)...)
		if after = p.Next; after == "" {
			break
		}
	}
	if diff := cmp.Diff(changes(got), paged); diff != "" {
		t.Errorf("page by page (-whole +pages):\n%s", diff)
	}

	s.set(spec)
	started := s.rollout(1).Started
	if diff := cmp.Diff(*got.Target, started.Target); diff != "" || got.Change != started.Change {
		t.Errorf("the target was told to be another one (-told +is):\n%s", diff)
	}
	for i, w := range started.Waves {
		if got.Waves[i].Name != w.Name || got.Waves[i].Clusters != len(w.Clusters) {
			t.Errorf("wave %d is %+v, and was told to be %+v", i, w, got.Waves[i])
		}
	}
	if now := s.supposing(previewapi.FleetQuestion{}); now.UnderWay != 1 || now.Clusters[0].Change != "UnderWay" {
		t.Errorf("while the rollout goes on: %+v", now)
	}
	s.carryOutOn("east-1")
	spec.Strategy.MaxConcurrent = 3
	s.publish("fleet", first, s.pkg("buoy", version{v: "1.1.0", replaces: "1.0.0"}, version{v: "1.0.0"}))
	s.quiet()
	next := s.supposing(previewapi.FleetQuestion{Spec: &spec})
	if next.Supersedes != 1 || next.Target.CSV != "buoy.v1.1.0" || next.Change != events.ChangeIntent {
		t.Errorf("another intent: %+v", next.FleetPreview)
	}
	want := [7]string{"east-1", "canary", "Upgrade", "buoy.v1.0.0", "buoy.v1.1.0", "", ""}
	if got := changes(next); got[0] != want {
		t.Errorf("another intent leads to %v", got)
	}
	spec.Placement.Except = []string{"east-1"}
	without := s.supposing(previewapi.FleetQuestion{Spec: &spec})
	want = [7]string{"east-1", "", "Leaves", "", "", "Excepted", ""}
	if got := changes(without); got[0] != want || without.Totals.Leaving != 1 {
		t.Errorf("without the first cluster: %v, %+v", got, without.Totals)
	}
	spec.Versions.Ceiling = "0.5.0"
	none := s.supposing(previewapi.FleetQuestion{Spec: &spec})
	if none.WaitsFor != "NoVersionAllowed" || none.Target != nil || !slices.ContainsFunc(none.Clusters,
		func(c previewapi.FleetCluster) bool { return c.Change == previewapi.FleetUnknown }) {
		t.Errorf("without a target: %+v", none)
	}
}
