package plan

import (
	"maps"
	"slices"

	"github.com/chandler-fleet/chandler/services/resolver/resolve/graph"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/search"
)

// Part is a part of a solution that can be carried out by itself: whatever becomes of the other parts,
// everything that it installs has what it requires, and nothing else loses what it has.
type Part struct {
	Roots   []int          // indexes in the partition
	Bundles []graph.NodeID // to be installed, by name
}

// Plan is a solution compared with what is installed.
type Plan struct {
	*graph.Partition

	solution *search.Solution
	planned  []graph.NodeID                   // chosen and not there yet, by name
	leaving  map[graph.NodeID]graph.NodeID    // installed CSVs, and what replaces them
	chosen   map[int]graph.NodeID             // of roots that are subscriptions
	choices  map[graph.NodeID][]search.Choice // that a chosen node meets
}

// New compares a solution with what is installed.
func New(part *graph.Partition, s *search.Solution) *Plan {
	p := &Plan{
		Partition: part, solution: s, leaving: map[graph.NodeID]graph.NodeID{}, chosen: map[int]graph.NodeID{},
		choices: map[graph.NodeID][]search.Choice{},
	}
	maps.Copy(p.leaving, s.TakenOver)
	for _, c := range s.Choices {
		p.choices[c.Met] = append(p.choices[c.Met], c)
		if c.Root < 0 {
			continue
		}
		p.chosen[c.Root] = c.Met
		if r := part.Roots[c.Root]; r.Node != graph.None && part.Op(c.Met).Name != r.CSV() {
			p.leaving[r.Node] = c.Met
		}
	}
	for _, n := range s.Taken {
		if !part.IsInstalled(n) && !part.AlreadyInstalled(n) {
			p.planned = append(p.planned, n)
		}
	}
	slices.SortFunc(p.planned, part.Compare)
	return p
}

// Parts splits a solution. What has to go together does so for one of these reasons:
//
//   - subscriptions follow the same CSV or are answered by the same operator, or a CSV that stays lacks what a bundle
//     brings;
//   - a bundle requires what only another new one brings;
//   - a bundle needs a slot that another one frees, as it replaces the one that has it;
//   - an installed operator would lose what it requires if one went without the other.
//
// Every way in which a part could need another one is among these, so that parts can be carried out
// in any order, or not at all. shared keeps the solution whole.
func (p *Plan) Parts(shared bool) []Part {
	together := graph.NewSets(len(p.Roots) + len(p.Nodes))
	at := func(n graph.NodeID) int32 { return int32(len(p.Roots)) + int32(n) }
	for i, r := range p.Roots {
		if n, ok := p.chosen[i]; ok {
			together.Unite(int32(i), at(n))
			if r.Node != graph.None {
				together.Unite(int32(i), at(r.Node))
			}
		}
		if shared {
			together.Unite(0, int32(i))
		}
	}
	for _, n := range p.planned {
		for _, m := range p.companions(n) {
			together.Unite(at(n), at(m))
		}
		if shared {
			together.Unite(0, at(n))
		}
	}
	p.keepMet(together, at)
	return p.collect(together, at)
}

// keepMet joins what something installed needs together, for it to have and to keep what it requires.
func (p *Plan) keepMet(together graph.Sets, at func(graph.NodeID) int32) {
	for i, r := range p.Roots {
		if r.Node == graph.None {
			continue
		}
		lacks, bound := p.dependents(r.Node)
		for _, n := range lacks {
			if p.solution.States[i] == search.Staying {
				together.Unite(int32(i), at(n))
			}
		}
		for _, n := range bound {
			together.Unite(at(bound[0]), at(n))
		}
	}
}

func (p *Plan) collect(together graph.Sets, at func(graph.NodeID) int32) []Part {
	var out []Part
	index := map[int32]int{}
	of := func(i int32) *Part {
		set := together.Find(i)
		if _, ok := index[set]; !ok {
			index[set] = len(out)
			out = append(out, Part{})
		}
		return &out[index[set]]
	}
	for i := range p.Roots {
		part := of(int32(i))
		part.Roots = append(part.Roots, i)
	}
	for _, n := range p.planned {
		part := of(at(n))
		part.Bundles = append(part.Bundles, n)
	}
	return out
}

func (p *Plan) isPlanned(n graph.NodeID) bool {
	_, found := slices.BinarySearchFunc(p.planned, n, p.Compare)
	return found
}

// remains says whether a node is installed and stays, or is a bundle of the name of one that does.
func (p *Plan) remains(n graph.NodeID) bool {
	if p.IsInstalled(n) {
		_, goes := p.leaving[n]
		return !goes
	}
	return p.solution.Has(n) && !p.isPlanned(n)
}

// lasts says whether one of the candidates of a requirement is installed and stays, or gives way to another one of
// them: the requirement is met then whatever is carried out, and when.
func (p *Plan) lasts(cands []graph.NodeID) bool {
	return slices.ContainsFunc(cands, func(n graph.NodeID) bool {
		m, goes := p.leaving[n]
		return p.remains(n) || goes && slices.Contains(cands, m)
	})
}

// bringing is the index of the first chosen one among the candidates of a requirement that does not leave, -1 where
// there is none.
func (p *Plan) bringing(cands []graph.NodeID) int {
	return slices.IndexFunc(cands, func(n graph.NodeID) bool {
		_, goes := p.leaving[n]
		return !goes &&
			p.solution.Has(n)
	})
}

// companions are the planned nodes without which a planned node cannot be installed.
func (p *Plan) companions(n graph.NodeID) []graph.NodeID {
	var out []graph.NodeID
	op := p.OperatorOf(n)
	for _, i := range op.Requirements {
		cands := p.Requirements[i].Candidates
		if slices.Contains(cands, n) || p.lasts(cands) {
			continue
		}
		if m := p.bringing(cands); m >= 0 {
			out = append(out, cands[m])
		}
	}
	for _, slot := range op.Slots {
		for _, h := range p.Holders(slot) {
			if m, goes := p.leaving[h]; goes && m != n {
				out = append(out, m)
			}
		}
	}
	return out
}

// dependents reads what an installed CSV requires. lacks are the planned nodes that bring what nothing installed
// has; bound are planned nodes of which none may go without the others, lest it loses what it has.
func (p *Plan) dependents(csv graph.NodeID) (lacks, bound []graph.NodeID) {
	for _, i := range p.OperatorOf(csv).Requirements {
		cands := p.Requirements[i].Candidates
		if p.lasts(cands) {
			continue
		}
		brings := p.bringing(cands)
		if len(cands) == 0 || !p.IsInstalled(cands[0]) {
			if brings >= 0 {
				lacks = append(lacks, cands[brings])
			}
			continue
		}
		bound = append(bound, p.instead(csv, cands, brings)...)
	}
	return lacks, bound
}

// instead are the planned nodes that a requirement of an installed CSV binds together: those that replace
// who meets it today, and what meets it then; where nothing does, what replaces the CSV.
func (p *Plan) instead(csv graph.NodeID, cands []graph.NodeID, brings int) []graph.NodeID {
	var out []graph.NodeID
	for _, n := range cands {
		if m, goes := p.leaving[n]; goes {
			out = append(out, m)
		}
	}
	switch m, goes := p.leaving[csv]; {
	case brings >= 0:
		out = append(out, cands[brings])
	case goes:
		out = append(out, m)
	}
	return out
}
