// Package placement says which replica of the installer runs the executor of which cluster (DESIGN D8). It is pure: all
// replicas come to the same answer from the same table, and where they do not yet, the Lease in the cluster decides.
//
// It is rendezvous hashing with a bound: each cluster ranks the replicas by a hash of both names, and goes to the first
// one with room. So a replica that comes takes only what it is first for, and of one that goes only its clusters move.
package placement

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Replica is a live replica.
type Replica struct {
	Name     string
	Capacity int  // the weight that it takes; 0 is any
	Draining bool // it takes nothing, and gives away what it has
}

// Cluster is a cluster that needs an executor.
type Cluster struct {
	ID     string
	Weight int
}

// Place is where the executor of a cluster runs.
type Place struct {
	Primary string // "" where no replica has room
	Standby string // the one that takes over, "" where there is none
	First   string // the one that the cluster ranks first, with room or without; "" without replicas
}

// Of places clusters. Those that are placed first are so whatever their weights, so that an operator more moves nothing
// but what has no room any more.
func Of(replicas []Replica, clusters []Cluster) map[string]Place {
	live := slices.DeleteFunc(slices.Clone(replicas), func(r Replica) bool { return r.Draining })
	order := slices.Clone(clusters)
	slices.SortFunc(order, func(a, b Cluster) int {
		return cmp.Or(cmp.Compare(score("", a.ID), score("", b.ID)), cmp.Compare(a.ID, b.ID))
	})
	load := map[string]int{}
	out := make(map[string]Place, len(clusters))
	for _, c := range order {
		ranked := rank(live, c.ID)
		var p Place
		for _, r := range ranked {
			if p.First == "" {
				p.First = r.Name
			}
			switch {
			case p.Primary == "" && (r.Capacity == 0 || load[r.Name]+c.Weight <= r.Capacity):
				p.Primary = r.Name
				load[r.Name] += c.Weight
			case p.Standby == "":
				p.Standby = r.Name
			}
		}
		if p.Primary == "" {
			p.Standby = ""
		}
		out[c.ID] = p
	}
	return out
}

// Recorder is the replica that records the reports of a cluster, "" without replicas. What it costs hardly depends on
// the cluster, so that there is no bound; and somebody has to, though all replicas are draining.
func Recorder(replicas []Replica, cluster string) string {
	live := slices.DeleteFunc(slices.Clone(replicas), func(r Replica) bool { return r.Draining })
	if len(live) == 0 {
		live = replicas
	}
	first, best := "", uint64(0)
	for _, r := range live {
		if s := score(r.Name, cluster); first == "" || s > best || s == best && r.Name < first {
			first, best = r.Name, s
		}
	}
	return first
}

// rank orders replicas as a cluster prefers them.
func rank(replicas []Replica, cluster string) []Replica {
	scores := make(map[string]uint64, len(replicas))
	for _, r := range replicas {
		scores[r.Name] = score(r.Name, cluster)
	}
	out := slices.Clone(replicas)
	slices.SortFunc(out, func(a, b Replica) int {
		return cmp.Or(cmp.Compare(scores[b.Name], scores[a.Name]), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func score(replica, cluster string) uint64 {
	sum := sha256.Sum256([]byte(replica + "\x00" + cluster))
	return binary.BigEndian.Uint64(sum[:])
}
