package resolve

import (
	"slices"

	"github.com/chandler-fleet/chandler/services/resolver/sat"
)

// cluster is a set of roots with all that they reach, which nothing outside of it can touch: no candidate, no
// requirement and no slot belongs to two clusters. So clusters are solved apart, and what happens in one
// changes nothing in another one, the bytes of its record included.
type cluster struct {
	w      *world
	roots  []*root // by name
	nodes  []nodeID
	rootOf map[nodeID][]*root // of installed CSVs; several subscriptions may follow one
	apart  []takeover         // that would take something from somebody
	reads  []int32
	watch  func(failed, []reason) // hears of contradictions, for tests; mostly nil
}

// sets are disjoint sets of numbers.
type sets struct{ into []int32 }

func newSets(n int) sets {
	s := sets{into: make([]int32, n)}
	for i := range s.into {
		s.into[i] = int32(i)
	}
	return s
}

func (s sets) find(i int32) int32 {
	for s.into[i] != i {
		s.into[i] = s.into[s.into[i]]
		i = s.into[i]
	}
	return i
}

func (s sets) unite(i, j int32) {
	i, j = s.find(i), s.find(j)
	s.into[max(i, j)] = min(i, j)
}

// clusters splits a complete world; shared keeps it whole (R-RES-63). They come in the order of their first roots.
func (w *world) clusters(roots []*root, shared bool) []*cluster {
	s := newSets(len(w.nodes) + len(roots))
	w.unite(s)
	at := func(i int) int32 { return int32(len(w.nodes) + i) }
	for i, r := range roots {
		if r.node != none {
			s.unite(at(i), int32(r.node))
		}
		for _, n := range r.cands {
			s.unite(at(i), int32(n))
		}
		if shared {
			s.unite(at(0), at(i))
		}
	}
	var out []*cluster
	of := make([]*cluster, len(w.nodes)+len(roots))
	for i, r := range roots {
		set := s.find(at(i))
		if of[set] == nil {
			of[set] = &cluster{w: w, rootOf: map[nodeID][]*root{}}
			out = append(out, of[set])
		}
		of[set].add(r)
	}
	w.lits = make([]sat.Lit, len(w.nodes))
	for n := range w.nodes {
		c := of[s.find(int32(n))]
		c.nodes = append(c.nodes, nodeID(n))
		w.lits[n] = sat.Var(len(c.nodes)).Lit()
	}
	w.shareReads(out)
	return out
}

func (c *cluster) add(r *root) {
	c.roots = append(c.roots, r)
	c.reads = append(c.reads, r.reads...)
	if r.node != none {
		c.rootOf[r.node] = append(c.rootOf[r.node], r)
	}
}

// of is the root that decides about an installed CSV, nil for a bundle: of several, the one that is furthest down. A
// CSV that stays whatever speaks against it does so for all who follow it.
func (c *cluster) of(n nodeID) *root {
	var out *root
	for _, r := range c.rootOf[n] {
		if out == nil || r.state > out.state {
			out = r
		}
	}
	return out
}

// unite joins nodes with what may meet their requirements, with whom they share a slot, and with the installed CSV that
// they take over or that has their name.
func (w *world) unite(s sets) {
	for i := range w.needs {
		for _, n := range w.needs[i].cands {
			s.unite(int32(w.needs[i].cands[0]), int32(n))
		}
	}
	for i := range w.nodes {
		for _, csv := range []nodeID{w.takesOver(nodeID(i)), w.installedNamed(w.op(nodeID(i)).Name)} {
			if csv != none {
				s.unite(int32(i), int32(csv))
			}
		}
		for _, need := range w.shapes[w.nodes[i].shape].needs {
			if cands := w.needs[need].cands; len(cands) > 0 {
				s.unite(int32(i), int32(cands[0]))
			}
		}
	}
	for _, holders := range w.slots.holders {
		for _, n := range holders {
			s.unite(int32(holders[0]), int32(n))
		}
	}
}

// shareReads gives each cluster what was asked for its requirements.
func (w *world) shareReads(clusters []*cluster) {
	for i, c := range clusters {
		seen := map[int32]bool{}
		for _, n := range c.nodes {
			for _, need := range w.shapes[w.nodes[n].shape].needs {
				if !seen[need] {
					seen[need] = true
					c.reads = append(c.reads, w.needs[need].reads...)
				}
			}
		}
		slices.Sort(c.reads)
		clusters[i].reads = slices.Compact(c.reads)
	}
}

// faults are those that something of a list of nodes reaches: bundles that cannot be read, and requirements
// whose candidates have no order. A fault anywhere on the way counts, whatever would have been chosen
// (RESOLVER-NOTES 2.8, 3.3).
func (w *world) faults(from ...nodeID) []failure {
	var out []failure
	seen := make(map[nodeID]bool, len(from))
	asked := map[int32]bool{}
	queue := slices.Clone(from)
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		if n == none || seen[n] {
			continue
		}
		seen[n] = true
		if f, bad := w.malformed(n); bad {
			out = append(out, f)
		}
		for _, i := range w.shapes[w.nodes[n].shape].needs {
			if !asked[i] {
				asked[i] = true
				out = append(out, w.needs[i].faults...)
				queue = append(queue, w.needs[i].cands...)
			}
		}
	}
	return out
}

// faulty says whether there is any fault at all; mostly there is none, and nobody has to look who reaches it.
func (w *world) faulty() bool {
	return slices.ContainsFunc(w.needs, func(n need) bool { return len(n.faults) > 0 }) ||
		slices.ContainsFunc(w.shapes, func(s shape) bool { return s.looked() && s.op.Malformed() != "" })
}
