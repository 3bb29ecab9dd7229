package graph

import "slices"

// Partition is a set of roots with all that they reach, which nothing outside of it can affect: no candidate, no
// requirement and no slot belongs to two partitions. So partitions are solved apart, and what happens in one
// changes nothing in another one, the bytes of its record included.
type Partition struct {
	*Graph

	Roots   []*Root // by name
	Members []NodeID
	// RootsOf are the indexes of the roots of an installed CSV; several subscriptions may follow one.
	RootsOf map[NodeID][]int
	// Reads are the numbers of what was asked for it.
	Reads []int32
}

// Sets are disjoint sets of numbers, each of which begins in a set of its own.
type Sets struct{ into []int32 }

// NewSets makes sets of the numbers below n.
func NewSets(n int) Sets {
	s := Sets{into: make([]int32, n)}
	for i := range s.into {
		s.into[i] = int32(i)
	}
	return s
}

// Find names the set of a number.
func (s Sets) Find(i int32) int32 {
	for s.into[i] != i {
		s.into[i] = s.into[s.into[i]]
		i = s.into[i]
	}
	return i
}

// Unite joins the sets of two numbers.
func (s Sets) Unite(i, j int32) {
	i, j = s.Find(i), s.Find(j)
	s.into[max(i, j)] = min(i, j)
}

// Partitions splits the graph; shared keeps it whole (R-RES-63). They come in the order of their first roots.
func (g *Graph) Partitions(shared bool) []*Partition {
	s := NewSets(len(g.Nodes) + len(g.roots))
	g.unite(s)
	at := func(i int) int32 { return int32(len(g.Nodes) + i) }
	for i, r := range g.roots {
		if r.Node != None {
			s.Unite(at(i), int32(r.Node))
		}
		for _, n := range r.Candidates {
			s.Unite(at(i), int32(n))
		}
		if shared {
			s.Unite(at(0), at(i))
		}
	}
	var out []*Partition
	of := make([]*Partition, len(g.Nodes)+len(g.roots))
	for i, r := range g.roots {
		set := s.Find(at(i))
		if of[set] == nil {
			of[set] = &Partition{Graph: g, RootsOf: map[NodeID][]int{}}
			out = append(out, of[set])
		}
		of[set].add(r)
	}
	g.Place = make([]int32, len(g.Nodes))
	for n := range g.Nodes {
		p := of[s.Find(int32(n))]
		g.Place[n] = int32(len(p.Members))
		p.Members = append(p.Members, NodeID(n))
	}
	g.shareReads(out)
	return out
}

func (p *Partition) add(r *Root) {
	if r.Node != None {
		p.RootsOf[r.Node] = append(p.RootsOf[r.Node], len(p.Roots))
	}
	p.Roots = append(p.Roots, r)
	p.Reads = append(p.Reads, r.reads...)
}

// unite joins nodes with what may meet their requirements, with those that have a slot of theirs, and with the
// installed CSV that they take over or that has their name.
func (g *Graph) unite(s Sets) {
	for i := range g.Requirements {
		for _, n := range g.Requirements[i].Candidates {
			s.Unite(int32(g.Requirements[i].Candidates[0]), int32(n))
		}
	}
	for i := range g.Nodes {
		n := NodeID(i)
		for _, csv := range []NodeID{g.TakesOver(n), g.installedNamed(g.Op(n).Name)} {
			if csv != None {
				s.Unite(int32(i), int32(csv))
			}
		}
		for _, req := range g.OperatorOf(n).Requirements {
			if cands := g.Requirements[req].Candidates; len(cands) > 0 {
				s.Unite(int32(i), int32(cands[0]))
			}
		}
	}
	for _, holders := range g.slots.holders {
		for _, n := range holders {
			s.Unite(int32(holders[0]), int32(n))
		}
	}
}

// shareReads gives each partition what was asked for its requirements.
func (g *Graph) shareReads(partitions []*Partition) {
	for _, p := range partitions {
		seen := map[int32]bool{}
		for _, n := range p.Members {
			for _, req := range g.OperatorOf(n).Requirements {
				if !seen[req] {
					seen[req] = true
					p.Reads = append(p.Reads, g.Requirements[req].reads...)
				}
			}
		}
		slices.Sort(p.Reads)
		p.Reads = slices.Compact(p.Reads)
	}
}
