package app_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestReplicasAreShownAndDrained: administrators see where executors run, and drain a replica; who did it is kept.
func TestReplicasAreShownAndDrained(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const path = "/api/v1/replicas"
	b.exec("installer", `insert into installer.replicas (tenant, name, capacity, heard, gone, clusters, load) values
		('*', 'a/:1', 1000, now(), null, 3, 12), ('*', 'b/:1', 0, '-infinity', now(), 0, 0)`)
	list := func() []model.Replica {
		t.Helper()
		return must[struct{ Items []model.Replica }](b, 200, b.do("GET", path, nil)).Items
	}
	drain := func(replica string, draining bool) int {
		t.Helper()
		return b.do("POST", path+"/drain", model.DrainReplica{Replica: replica, Draining: draining}).status
	}
	all := list()
	if len(all) != 2 || !all[0].Live || all[0].Draining || all[0].Capacity != 1000 || all[0].Clusters != 3 ||
		all[0].Weight != 12 || all[0].Heard == nil || all[1].Live || all[1].Heard != nil {
		t.Fatalf("listed as %+v", all)
	}
	viewer := b.give(model.AddToken{Name: "dashboard", Role: model.RoleViewer})
	if a := b.as(viewer.Secret, "GET", path, nil); a.status != 403 {
		t.Errorf("a viewer sees replicas: %d", a.status)
	}
	if got := drain("nobody", true); got != 404 {
		t.Errorf("drain of nobody: %d", got)
	}
	if got := drain("a/:1", true); got >= 300 {
		t.Errorf("drain: %d", got)
	}
	if r := list()[0]; !r.Draining || r.DrainingBy == "" {
		t.Errorf("after a drain it is shown as %+v", r)
	}
	if got := drain("a/:1", false); got >= 300 {
		t.Errorf("undrain: %d", got)
	}
	if r := list()[0]; r.Draining || r.DrainingBy != "" {
		t.Errorf("after an undrain it is shown as %+v", r)
	}
	actions := map[string]int{}
	for _, q := range must[struct{ Items []model.Question }](b, 200, b.do("GET", "/api/v1/questions", nil)).Items {
		if q.About == "a/:1" {
			actions[q.Action]++
		}
	}
	if actions["replica.drain"] != 1 || actions["replica.undrain"] != 1 {
		t.Errorf("in the audit is %v", actions)
	}
}
