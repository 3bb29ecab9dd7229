package placement_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chandler-fleet/chandler/services/installer/placement"
)

func replicas(n, capacity int) (out []placement.Replica) {
	for i := range n {
		out = append(out, placement.Replica{Name: fmt.Sprint("installer-", i), Capacity: capacity})
	}
	return out
}

func clusters(n int) (out []placement.Cluster) {
	for i := range n {
		out = append(out, placement.Cluster{ID: fmt.Sprint("cluster-", i), Weight: 1 + i%20})
	}
	return out
}

// TestPlacement: DESIGN D8: every cluster has one primary and one other standby; replicas share the load; a replica
// that comes takes only clusters for itself, and of one that goes only its own ones move, to their standbys.
func TestPlacement(t *testing.T) {
	t.Parallel()
	const n = 1000
	three := placement.Of(replicas(3, 0), clusters(n))
	count := map[string]int{}
	for id, p := range three {
		if p.Primary == "" || p.Standby == "" || p.Primary == p.Standby || p.First != p.Primary {
			t.Fatalf("%s is placed as %+v", id, p)
		}
		count[p.Primary]++
	}
	for name, c := range count {
		if c < n/3-n/10 || c > n/3+n/10 {
			t.Errorf("%s has %d of %d clusters", name, c, n)
		}
	}
	four := placement.Of(replicas(4, 0), clusters(n))
	moved := 0
	for id, p := range four {
		if p.Primary == three[id].Primary {
			continue
		}
		moved++
		if p.Primary != "installer-3" {
			t.Errorf("%s moved from %s to %s", id, three[id].Primary, p.Primary)
		}
	}
	if moved < n/4-n/10 || moved > n/4+n/10 {
		t.Errorf("%d of %d clusters moved to a fourth replica", moved, n)
	}
	drained := replicas(3, 0)
	drained[1].Draining = true
	for name, less := range map[string][]placement.Replica{
		"gone": slices.Delete(replicas(3, 0), 1, 2), "draining": drained,
	} {
		for id, p := range placement.Of(less, clusters(n)) {
			want := three[id].Primary
			if want == "installer-1" {
				want = three[id].Standby
			}
			if p.Primary != want {
				t.Errorf("%s: %s is at %s, want %s", name, id, p.Primary, want)
			}
		}
	}
}

// TestRoom: no replica takes more than it has room for, what has none is without a primary and keeps the one that tells
// of it, and a cluster that grows moves no other one that has room.
func TestRoom(t *testing.T) {
	t.Parallel()
	all := clusters(1000)
	weight := map[string]int{}
	total := 0
	for _, c := range all {
		weight[c.ID] = c.Weight
		total += c.Weight
	}
	for _, c := range []struct {
		name              string
		replicas, percent int
		placed            bool
	}{
		{"room for all", 5, 130, true}, {"hardly room", 5, 105, true}, {"too little", 5, 60, false},
	} {
		room := total * c.percent / 100 / c.replicas
		load, without := map[string]int{}, 0
		for id, p := range placement.Of(replicas(c.replicas, room), all) {
			if p.Primary == "" {
				without++
				if p.First == "" || p.Standby != "" {
					t.Errorf("%s: %s is placed as %+v", c.name, id, p)
				}
				continue
			}
			load[p.Primary] += weight[id]
		}
		for name, l := range load {
			if l > room {
				t.Errorf("%s: %s bears %d, it takes %d", c.name, name, l, room)
			}
		}
		if c.placed != (without == 0) {
			t.Errorf("%s: %d clusters have no room", c.name, without)
		}
	}
	before := placement.Of(replicas(5, total), all)
	all[7].Weight += 15
	for id, p := range placement.Of(replicas(5, total), all) {
		if p != before[id] {
			t.Errorf("%s moved from %+v to %+v since another one has grown", id, before[id], p)
		}
	}
	if p := placement.Of(nil, all[:1])[all[0].ID]; p != (placement.Place{}) {
		t.Errorf("without replicas a cluster is at %+v", p)
	}
}
