package plan

import (
	"slices"

	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/graph"
)

// Bundle describes a planned bundle and why it is there.
func (p *Plan) Bundle(n graph.NodeID) resolution.Planned {
	op, in := p.Op(n), &p.Catalogs[p.OperatorOf(n).Catalog]
	out := resolution.Planned{
		CSV: op.Name, Package: op.Package, Version: op.VersionText(), Channel: p.Nodes[n].Channel, Catalog: in.Key,
		Revision: in.Revision, Content: op.Content, Properties: op.Properties,
	}
	var by *graph.Root // the subscription whose CSV it replaces, else the first that it answers
	for i, r := range p.Roots {
		if m, ok := p.chosen[i]; !ok || m != n {
			continue
		}
		out.Subscriptions = append(out.Subscriptions, r.Sub.Name)
		if by == nil || by.Installed == nil && r.Installed != nil {
			by = r
		}
	}
	if by != nil {
		out.Replaces, out.Reason = by.CSV(), p.reason(by, n)
	}
	if over := p.TakesOver(n); over != graph.None && p.solution.TakenOver[over] == n {
		out.Replaces = p.Op(over).Name
	}
	if by == nil {
		c := p.choices[n][0]
		out.Reason, out.RequiredBy = p.Requirements[c.Requirement].Offer.Reason(), p.Op(c.From).Name
	}
	return out
}

// reason says why a subscription got a bundle.
func (p *Plan) reason(r *graph.Root, n graph.NodeID) string {
	e := p.Nodes[n].Entry
	switch {
	case r.RollsBack():
		return resolution.ReasonRollback
	case r.Installed != nil && (e.Replaces == r.CSV() || slices.Contains(e.Skips, r.CSV())):
		return resolution.ReasonNextStep
	case r.Installed != nil:
		return resolution.ReasonSkipRange
	case r.Sub.StartingCSV == p.Op(n).Name:
		return resolution.ReasonStartingCSV
	case r.Candidates[0] == n:
		return resolution.ReasonChannelHead
	}
	return resolution.ReasonSubscribed
}

// Outcome is what a subscription gets.
func (p *Plan) Outcome(root int) resolution.Outcome {
	n := p.chosen[root]
	return resolution.Outcome{Subscription: p.Roots[root].Sub.Name, CSV: p.Op(n).Name, Planned: p.isPlanned(n)}
}

// InOrder puts what is required before what requires it; in a cycle, and otherwise, names decide.
func (p *Plan) InOrder(bundles []graph.NodeID) []graph.NodeID {
	requires := map[graph.NodeID][]graph.NodeID{}
	for _, c := range p.solution.Choices {
		if c.From != graph.None && c.Met != c.From {
			requires[c.From] = append(requires[c.From], c.Met)
		}
	}
	var out []graph.NodeID
	seen := map[graph.NodeID]bool{}
	var visit func(n graph.NodeID)
	visit = func(n graph.NodeID) {
		if seen[n] {
			return
		}
		seen[n] = true
		slices.SortFunc(requires[n], p.Compare)
		for _, b := range requires[n] {
			visit(b)
		}
		if slices.Contains(bundles, n) {
			out = append(out, n)
		}
	}
	for _, n := range bundles {
		visit(n)
	}
	return out
}
