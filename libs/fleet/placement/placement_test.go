package placement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/placement"
)

func fleet() []placement.Cluster {
	return []placement.Cluster{
		{Name: "east-1", Labels: map[string]string{"stage": "production", "site": "east"}},
		{Name: "east-2", Labels: map[string]string{"stage": "production", "site": "east"}},
		{Name: "east-3", Labels: map[string]string{"stage": "production", "site": "east"}},
		{Name: "lab", Labels: map[string]string{"stage": "test", "site": "west"}},
		{
			Name: "west-1", Labels: map[string]string{"stage": "production", "site": "west"},
			Taints: map[string]string{"edge": "slow"},
		},
	}
}

// TestChoose: all that is given must fit, and nothing that is given chooses nothing (issue: placement).
func TestChoose(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		placement events.FleetPlacement
		present   []string
		want      []string
	}{
		"nothing":         {events.FleetPlacement{}, nil, nil},
		"nothing but not": {events.FleetPlacement{Except: []string{"lab"}}, nil, nil},
		"names": {
			events.FleetPlacement{Clusters: []string{"lab", "gone"}}, nil, []string{"lab"},
		},
		"prefix": {
			events.FleetPlacement{Clusters: []string{"east-*"}}, nil, []string{"east-1", "east-2", "east-3"},
		},
		"everything that has no taint": {
			events.FleetPlacement{Clusters: []string{"*"}}, nil, []string{"east-1", "east-2", "east-3", "lab"},
		},
		"a taint sends nobody away": {
			events.FleetPlacement{Selector: "site=west"}, []string{"west-1"}, []string{"lab", "west-1"},
		},
		"labels": {
			events.FleetPlacement{Selector: "stage in (production,test),site!=east"}, nil, []string{"lab"},
		},
		"labels and names": {
			events.FleetPlacement{Clusters: []string{"east-*", "lab"}, Selector: "site=west"}, nil, []string{"lab"},
		},
		"but not": {
			events.FleetPlacement{Selector: "stage=production", Except: []string{"east-2", "w*"}},
			nil,
			[]string{"east-1", "east-3"},
		},
		"tolerated": {
			events.FleetPlacement{Selector: "site=west", Tolerations: []events.FleetToleration{{Key: "edge"}}},
			nil,
			[]string{"lab", "west-1"},
		},
		"another value is not": {
			events.FleetPlacement{
				Selector: "site=west", Tolerations: []events.FleetToleration{{Key: "edge", Value: "fast"}},
			},
			nil,
			[]string{"lab"},
		},
		"who is there stays": {
			events.FleetPlacement{
				Clusters: []string{"*"}, Count: 2, Prefer: []events.FleetPreference{
					{Selector: "stage=test", Weight: 5},
				},
			},
			[]string{"east-3", "gone"},
			[]string{"east-3", "lab"},
		},
		"spread": {
			events.FleetPlacement{
				Clusters: []string{"*"}, Count: 2, SpreadBy: "site", Tolerations: []events.FleetToleration{
					{Key: "edge"},
				},
				Prefer: []events.FleetPreference{
					{Selector: "stage=test", Weight: 1}, {Selector: "site=east", Weight: 3},
				},
			},
			[]string{"east-1"},
			[]string{"east-1", "lab"},
		},
		"as many as there are": {events.FleetPlacement{Clusters: []string{"lab"}, Count: 7}, nil, []string{"lab"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := placement.Choose(c.placement, fleet(), c.present)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("chosen (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWrongTexts: what cannot be read is an error that names the place.
func TestWrongTexts(t *testing.T) {
	t.Parallel()
	wrong := func(place string, err error) {
		if err == nil || !strings.Contains(err.Error(), place) {
			t.Errorf("%v: want an error that names %s", err, place)
		}
	}
	_, err := placement.Choose(events.FleetPlacement{Selector: "a in"}, fleet(), nil)
	wrong("placement.selector", err)
	_, err = placement.Choose(events.FleetPlacement{
		Clusters: []string{"*"}, Count: 1, Prefer: []events.FleetPreference{{Selector: "=="}},
	}, fleet(), nil)
	wrong("placement.prefer[0].selector", err)
	for _, size := range []string{"-1", "101%", "%", "ten", "1.5"} {
		_, err = placement.Waves(events.RolloutStrategy{Waves: []events.RolloutWaveSpec{{Size: size}}}, fleet())
		wrong("strategy.waves[0].size", err)
	}
	_, err = placement.Waves(events.RolloutStrategy{Waves: []events.RolloutWaveSpec{{MaxFailures: "x"}}}, fleet())
	wrong("strategy.waves[0].maxFailures", err)
}

// TestWaves: each cluster is in the first wave that takes it; sizes are rounded up, budgets down (issue: waves).
func TestWaves(t *testing.T) {
	t.Parallel()
	got, err := placement.Waves(events.RolloutStrategy{
		MaxUnreachable: "50%",
		Waves: []events.RolloutWaveSpec{
			{Name: "canary", Selector: "stage=test", SoakSeconds: 60, Promotion: events.PromotionManual},
			{Name: "some", Selector: "site=east", Size: "34%", MaxFailures: "30%"},
		},
	}, fleet())
	if err != nil {
		t.Fatal(err)
	}
	want := []events.RolloutWave{
		{Name: "canary", Clusters: []string{"lab"}, SoakSeconds: 60, Promotion: events.PromotionManual},
		{Name: "some", Clusters: []string{"east-1", "east-2"}, Promotion: events.PromotionAutomatic, MaxUnreachable: 1},
		{Name: "rest", Clusters: []string{"east-3", "west-1"}, Promotion: events.PromotionAutomatic, MaxUnreachable: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("waves (-want +got):\n%s", diff)
	}
}

// TestProperties: the order in which clusters come changes nothing, as many are chosen as can be, whoever is
// present and fits stays as long as there is room, and every member is in exactly one wave.
func TestProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var clusters []placement.Cluster
		for i := range rapid.IntRange(0, 12).Draw(t, "clusters") {
			clusters = append(clusters, placement.Cluster{Name: fmt.Sprintf("c%d", i), Labels: map[string]string{
				"site": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "site"),
			}})
		}
		present := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"c0", "c1", "c2", "c3", "gone"}), rapid.ID[string]).
			Draw(t, "present")
		p := events.FleetPlacement{
			Clusters: []string{"*"}, Count: rapid.IntRange(0, 6).Draw(t, "count"),
			SpreadBy: rapid.SampledFrom([]string{"", "site"}).Draw(t, "spread"),
			Prefer:   []events.FleetPreference{{Selector: "site=b", Weight: 2}},
		}
		got, err := placement.Choose(p, clusters, present)
		if err != nil {
			t.Fatal(err)
		}
		again, err := placement.Choose(p, rapid.Permutation(clusters).Draw(t, "order"), present)
		if err != nil || !slices.Equal(got, again) {
			t.Fatalf("another order chose %v, %v; want %v", again, err, got)
		}
		want := len(clusters)
		if p.Count > 0 {
			want = min(want, p.Count)
		}
		if len(got) != want {
			t.Fatalf("%d are chosen, want %d", len(got), want)
		}
		kept, there := 0, 0
		for _, name := range present {
			if slices.ContainsFunc(clusters, func(c placement.Cluster) bool { return c.Name == name }) {
				there++
			}
			if slices.Contains(got, name) {
				kept++
			}
		}
		if kept != min(there, want) {
			t.Fatalf("%d of %d present members stay, there is room for %d", kept, there, want)
		}
		waves, err := placement.Waves(events.RolloutStrategy{Waves: []events.RolloutWaveSpec{
			{Selector: "site=a", Size: "50%"}, {Selector: "site in (a,b)"},
		}}, clusters)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, w := range waves {
			all = append(all, w.Clusters...)
		}
		slices.Sort(all)
		if len(slices.Compact(all)) != len(clusters) {
			t.Fatalf("waves %v of %d clusters", waves, len(clusters))
		}
	})
}
