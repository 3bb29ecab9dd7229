package app_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// TestWhatRunsWhere: the matrix says which versions run on how many clusters, how far they are apart and what is
// offered; of a cluster who asks for it; page by page, and of nothing that the caller may not list (issue 14, section
// 2).
func TestWhatRunsWhere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.catalog("fleet")
	for name, site := range map[string]string{"east-1": "east", "east-2": "east", "west-1": "west"} {
		must[model.Cluster](b, 201, b.do("POST", "/api/v1/clusters", model.RegisterCluster{
			Name: name, Kubeconfig: kubeconfig, Labels: map[string]string{"site": site},
		}))
	}
	installed := func(cluster, csv, version, phase string) {
		at := cluster + "/ops/"
		b.fact(events.Installer, events.KindCSV, at+csv, at+csv, events.CSVPhaseChanged{
			Cluster: cluster, Namespace: "ops", Name: csv, Package: "tidegauge", Version: version, Phase: phase,
		})
		b.fact(events.Resolver, events.KindSubscription, at+"tidegauge", at+"tidegauge",
			events.ResolutionSucceeded{Outcome: "AtLatestKnown", CSV: csv})
	}
	place := func(cluster string) {
		p := placedOf("tidegauge", 1)
		p.Cluster, p.Spec.Channel = cluster, ""
		at := cluster + "/ops/tidegauge"
		b.fact(events.Fleet, events.KindSubscription, at, at, p)
	}
	place("east-1")
	place("east-2")
	installed("east-1", "tidegauge.v1.1.0", "1.1.0", "Succeeded")
	installed("east-2", "tidegauge.v1.0.0", "1.0.0", "Failed")
	must[model.Subscription](b, 201, b.do("POST", "/api/v1/clusters/west-1/namespaces/ops/subscriptions",
		subscribe("buoys", "buoy")))
	west := must[model.Subscription](b, 201, b.do("POST", "/api/v1/clusters/west-1/namespaces/ops/subscriptions",
		subscribe("tidegauge", "tidegauge")))
	b.position = west.Position
	installed("west-1", "tidegauge.v1.0.0", "1.0.0", "Succeeded")

	type page struct {
		Items []fleetmodel.MatrixRow
		Next  string
	}
	ask := func(query string) page {
		t.Helper()
		return must[page](b, 200, b.do("GET", b.seen("/api/v1/fleet/matrix")+query, nil))
	}
	none, one := 0, 1
	gauge := fleetmodel.MatrixRow{
		Package: "tidegauge", Operators: 3, Clusters: 3, Succeeded: 2, Failed: 1, Behind: 2, Newest: "1.1.0", Skew: 1,
		Versions: []fleetmodel.MatrixVersion{
			{Version: "1.1.0", Operators: 1, Clusters: 1, Succeeded: 1, Behind: &none, Some: []string{"east-1"}},
			{
				Version: "1.0.0", Operators: 2, Clusters: 2, Succeeded: 1, Failed: 1, Behind: &one,
				Some: []string{"east-2", "west-1"},
			},
		},
		Channels: []fleetmodel.MatrixChannel{{
			Catalog: "fleet", Channel: "stable", Version: "1.1.0", CSV: "tidegauge.v1.1.0", Operators: 3,
		}},
	}
	want := []fleetmodel.MatrixRow{{Package: "buoy", NotInstalled: 1}, gauge}
	if diff := cmp.Diff(want, ask("").Items); diff != "" {
		t.Errorf("by package (-want +got):\n%s", diff)
	}
	first := ask("&limit=1")
	if second := ask("&limit=1&cursor=" + first.Next); len(first.Items) != 1 || len(second.Items) != 1 ||
		second.Items[0].Package != "tidegauge" || second.Next != "" {
		t.Errorf("page by page: %+v, then %+v", first, second)
	}
	if got := ask("&clusterSelector=site%3Deast&package=tidegauge").Items; len(got) != 1 || got[0].Clusters != 2 ||
		got[0].Failed != 1 {
		t.Errorf("of the east: %+v", got)
	}
	cell := fleetmodel.MatrixCell{
		Package: "tidegauge", Namespace: "ops", CSV: "tidegauge.v1.0.0", Version: "1.0.0", State: "Failed",
		Subscription: "tidegauge", Owner: "tides", Catalog: "fleet", Channel: "stable", Offered: "1.1.0", Behind: &one,
	}
	want = []fleetmodel.MatrixRow{
		{Cluster: "east-2", Operators: 1, Failed: 1, Behind: 1, Cells: []fleetmodel.MatrixCell{cell}},
	}
	if diff := cmp.Diff(want, ask("&by=cluster&cluster=east-2").Items); diff != "" {
		t.Errorf("by cluster (-want +got):\n%s", diff)
	}
	if got := ask("&by=cluster&limit=1&cluster=west-1").Items; len(got) != 1 || got[0].NotInstalled != 1 ||
		len(got[0].Cells) != 2 || got[0].Cells[0].State != fleetmodel.StateNotInstalled ||
		got[0].Cells[0].Offered != "1.0.0" || got[0].Cells[1].Owner != "" ||
		got[0].Cells[1].Subscription != "tidegauge" {
		t.Errorf("asked for by hand: %+v", got)
	}
	must[problem](b, 400, b.do("GET", "/api/v1/fleet/matrix?by=planet", nil))
	must[problem](b, 400, b.do("GET", "/api/v1/fleet/matrix?clusterSelector=a=b=c", nil))

	// Who may list operators of the west alone sees them, and neither who asks nor what is offered.
	must[model.AccessRole](b, 200, b.write("PUT", "/api/v1/roles/looks", model.RoleSpec{Rules: []model.AccessRule{
		{Verbs: []string{"list"}, Resources: []string{"operators"}},
	}}))
	eve := b.give(model.AddToken{Name: "eve", Role: model.RoleNone})
	b.bind("looks", "looks", eve.Actor, model.AccessScope{Clusters: []string{"west-1"}})
	want = []fleetmodel.MatrixRow{{
		Package: "tidegauge", Operators: 1, Clusters: 1, Succeeded: 1, Newest: "1.0.0",
		Versions: []fleetmodel.MatrixVersion{
			{Version: "1.0.0", Operators: 1, Clusters: 1, Succeeded: 1, Some: []string{"west-1"}},
		},
	}}
	got := must[page](b, 200, b.as(eve.Secret, "GET", "/api/v1/fleet/matrix", nil)).Items
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("who may list little (-want +got):\n%s", diff)
	}
	got = must[page](b, 200, b.as(eve.Secret, "GET", "/api/v1/fleet/matrix?by=cluster", nil)).Items
	if len(got) != 1 || len(got[0].Cells) != 1 || got[0].Cells[0].Subscription != "" || got[0].Cells[0].Behind != nil {
		t.Errorf("who may list little, by cluster: %+v", got)
	}
}
