package resolve

import (
	"cmp"
	"maps"
	"slices"
)

// piece is a part of a cluster's solution that can be carried out by itself: whatever becomes of the other pieces,
// everything that it installs has what it requires, and nothing else loses what it has.
type piece struct {
	roots   []*root
	planned []nodeID // by name
}

// settled is a solution beside what is installed.
type settled struct {
	*chooser

	w       *world
	planned []nodeID            // chosen and not there yet, by name
	leaving map[nodeID]nodeID   // installed CSVs, and what takes their place
	chosen  map[*root]nodeID    // of subscriptions
	over    map[nodeID]nodeID   // installed CSVs that no subscription follows, and what takes them over; they leave, too
	why     map[nodeID][]choice // that a chosen node meets
}

func settle(c *cluster, h *chooser) *settled {
	s := &settled{chooser: h, w: c.w, leaving: map[nodeID]nodeID{}, chosen: map[*root]nodeID{}, over: h.takeovers(), why: map[nodeID][]choice{}}
	maps.Copy(s.leaving, s.over)
	for _, q := range h.queue {
		s.why[q.met] = append(s.why[q.met], q)
		if q.root == nil {
			continue
		}
		s.chosen[q.root] = q.met
		if q.root.node != none && c.w.op(q.met).Name != q.root.csv() {
			s.leaving[q.root.node] = q.met
		}
	}
	for _, n := range h.taken {
		if !c.w.isInstalled(n) && !c.w.already(n) {
			s.planned = append(s.planned, n)
		}
	}
	slices.SortFunc(s.planned, c.w.compare)
	return s
}

func (w *world) compare(a, b nodeID) int {
	return cmp.Or(cmp.Compare(w.op(a).Name, w.op(b).Name), cmp.Compare(w.nodes[a].channel, w.nodes[b].channel),
		compareKeys(w.catalogOf(a), w.catalogOf(b)))
}

// pieces splits a solution. What has to go together does so for one of these reasons:
//
//   - subscriptions follow the same CSV or are answered by the same operator, or a CSV that stays lacks what a bundle
//     brings;
//   - a bundle requires what only another new one brings;
//   - a bundle needs a slot that another one frees, as it takes the place of who holds it;
//   - an installed operator would lose what it requires if one went without the other.
//
// Every way in which a piece could need another one is among these, so that what is left apart can be carried out
// in any order, or not at all.
func (s *settled) pieces(shared bool) []piece {
	together := newSets(len(s.c.roots) + len(s.w.nodes))
	at := func(n nodeID) int32 { return int32(len(s.c.roots)) + int32(n) }
	for i, r := range s.c.roots {
		if n, ok := s.chosen[r]; ok {
			together.unite(int32(i), at(n))
			if r.node != none {
				together.unite(int32(i), at(r.node))
			}
		}
		if shared {
			together.unite(0, int32(i))
		}
	}
	for _, n := range s.planned {
		for _, m := range s.companions(n) {
			together.unite(at(n), at(m))
		}
		if shared {
			together.unite(0, at(n))
		}
	}
	s.keepMet(together, at)
	return s.collect(together, at)
}

// keepMet joins what something installed needs together, for it to have and to keep what it requires.
func (s *settled) keepMet(together sets, at func(nodeID) int32) {
	for i, r := range s.c.roots {
		if r.node == none {
			continue
		}
		lacks, bound := s.dependents(r.node)
		for _, n := range lacks {
			if r.state == staying {
				together.unite(int32(i), at(n))
			}
		}
		for _, n := range bound {
			together.unite(at(bound[0]), at(n))
		}
	}
}

func (s *settled) collect(together sets, at func(nodeID) int32) []piece {
	var out []piece
	index := map[int32]int{}
	of := func(i int32) *piece {
		set := together.find(i)
		if _, ok := index[set]; !ok {
			index[set] = len(out)
			out = append(out, piece{})
		}
		return &out[index[set]]
	}
	for i, r := range s.c.roots {
		p := of(int32(i))
		p.roots = append(p.roots, r)
	}
	for _, n := range s.planned {
		p := of(at(n))
		p.planned = append(p.planned, n)
	}
	return out
}

func (s *settled) isPlanned(n nodeID) bool {
	_, found := slices.BinarySearchFunc(s.planned, n, s.w.compare)
	return found
}

// there says whether a node is installed and stays, or is a bundle of the name of one that does.
func (s *settled) there(n nodeID) bool {
	if s.w.isInstalled(n) {
		_, goes := s.leaving[n]
		return !goes
	}
	return s.has(n) && !s.isPlanned(n)
}

// lasts says whether one of the candidates of a requirement is installed and stays, or gives way to another one of
// them: the requirement is met then whatever is carried out, and when.
func (s *settled) lasts(cands []nodeID) bool {
	return slices.ContainsFunc(cands, func(n nodeID) bool {
		m, goes := s.leaving[n]
		return s.there(n) || goes && slices.Contains(cands, m)
	})
}

// bringing is the place of the first chosen one among the candidates of a requirement that does not leave, -1 where
// there is none.
func (s *settled) bringing(cands []nodeID) int {
	return slices.IndexFunc(cands, func(n nodeID) bool { _, goes := s.leaving[n]; return !goes && s.has(n) })
}

// companions are the planned nodes without which a planned node cannot be installed.
func (s *settled) companions(n nodeID) []nodeID {
	var out []nodeID
	sh := &s.w.shapes[s.w.nodes[n].shape]
	for _, i := range sh.needs {
		cands := s.w.needs[i].cands
		if slices.Contains(cands, n) || s.lasts(cands) {
			continue
		}
		if m := s.bringing(cands); m >= 0 {
			out = append(out, cands[m])
		}
	}
	for _, sl := range sh.slots {
		for _, h := range s.w.slots.holders[sl] {
			if m, goes := s.leaving[h]; goes && m != n {
				out = append(out, m)
			}
		}
	}
	return out
}

// dependents looks at what an installed CSV requires. lacks are the planned nodes that bring what nothing installed
// has; bound are planned nodes of which none may go without the others, lest it loses what it has.
func (s *settled) dependents(csv nodeID) (lacks, bound []nodeID) {
	for _, i := range s.w.shapes[s.w.nodes[csv].shape].needs {
		cands := s.w.needs[i].cands
		if s.lasts(cands) {
			continue
		}
		brings := s.bringing(cands)
		if len(cands) == 0 || !s.w.isInstalled(cands[0]) {
			if brings >= 0 {
				lacks = append(lacks, cands[brings])
			}
			continue
		}
		bound = append(bound, s.instead(csv, cands, brings)...)
	}
	return lacks, bound
}

// instead are the planned nodes that a requirement of an installed CSV binds together: those that take the
// place of who meets it today, and what meets it then; where nothing does, what takes the place of the CSV.
func (s *settled) instead(csv nodeID, cands []nodeID, brings int) []nodeID {
	var out []nodeID
	for _, n := range cands {
		if m, goes := s.leaving[n]; goes {
			out = append(out, m)
		}
	}
	switch m, goes := s.leaving[csv]; {
	case brings >= 0:
		out = append(out, cands[brings])
	case goes:
		out = append(out, m)
	}
	return out
}
