package placement_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/placement"
)

// TestLabels: selectors choose by what a cluster is made of; nobody sets that by hand.
func TestLabels(t *testing.T) {
	t.Parallel()
	own := map[string]string{
		"stage": "test", "chandler-fleet.io/distribution": "forged", "chandler-fleet.io/arch-s390x": "true",
		"chandler-fleet.io/kubernetes-minor": "1.0",
	}
	if diff := cmp.Diff(map[string]string{"stage": "test"},
		placement.Labels(own, events.ClusterFacts{}, "")); diff != "" {
		t.Errorf("nothing is known (-want +got):\n%s", diff)
	}
	facts := events.ClusterFacts{Distribution: "k3s", Architectures: map[string]int64{"amd64": 2, "arm64": 1}}
	clusters := []placement.Cluster{
		{Name: "east", Labels: placement.Labels(own, facts, "1.34")},
		{Name: "west", Labels: placement.Labels(own, events.ClusterFacts{Distribution: "eks"}, "1.33")},
	}
	for selector, want := range map[string][]string{
		"chandler-fleet.io/distribution=k3s":             {"east"},
		"chandler-fleet.io/arch-arm64":                   {"east"},
		"chandler-fleet.io/kubernetes-minor in (1.33)":   {"west"},
		"chandler-fleet.io/distribution!=k3s,stage=test": {"west"},
		"chandler-fleet.io/arch-s390x":                   {},
	} {
		got, err := placement.Choose(events.FleetPlacement{Selector: selector}, clusters, nil)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", selector, err, diff)
		}
	}
}
