package placement_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/placement"
)

// TestExplain: every cluster that is not chosen has the criterion that keeps it away, and who is chosen is as Choose
// says (issue 14, section 2).
func TestExplain(t *testing.T) {
	t.Parallel()
	north := map[string]string{"coast": "north"}
	clusters := []placement.Cluster{
		{Name: "east-3", Labels: north},
		{Name: "west-1", Labels: north},
		{Name: "east-9", Labels: north},
		{Name: "east-1", Labels: map[string]string{"coast": "south"}},
		{Name: "east-2", Labels: north, Taints: map[string]string{"upkeep": "", "dock": "dry"}},
		{Name: "east-4", Labels: north, Taints: map[string]string{"upkeep": ""}},
		{Name: "east-5", Labels: north},
	}
	p := events.FleetPlacement{
		Clusters: []string{"east-*"}, Selector: "coast=north", Except: []string{"east-9"}, Count: 2,
	}
	present := []string{"east-4"}
	got, err := placement.Explain(p, clusters, present)
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := placement.Choose(p, clusters, present)
	if err != nil {
		t.Fatal(err)
	}
	want := []placement.Verdict{
		{Cluster: "east-1", Reason: placement.LabelsDiffer},
		{Cluster: "east-2", Reason: placement.NotTolerated, Detail: "dock=dry"},
		{Cluster: "east-3"},
		{Cluster: "east-4"}, // is there: a taint sends nobody away
		{Cluster: "east-5"},
		{Cluster: "east-9", Reason: placement.Excepted},
		{Cluster: "west-1", Reason: placement.NotNamed},
	}
	for i, v := range want {
		want[i].Chosen = slices.Contains(chosen, v.Cluster)
		if fits := v.Reason == ""; fits && !want[i].Chosen {
			want[i].Reason = placement.BeyondCount
		}
	}
	if len(chosen) != 2 || !slices.Contains(chosen, "east-4") {
		t.Errorf("chosen %v", chosen)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	for _, v := range must(placement.Explain(events.FleetPlacement{}, clusters, nil)) {
		if v.Chosen || v.Reason != placement.NotNamed {
			t.Errorf("nothing named: %+v", v)
		}
	}
	if _, err := placement.Explain(events.FleetPlacement{Selector: "a in"}, clusters, nil); err == nil {
		t.Error("a selector that cannot be read explains something")
	}
}

func must(list []placement.Verdict, err error) []placement.Verdict {
	if err != nil {
		panic(err)
	}
	return list
}
