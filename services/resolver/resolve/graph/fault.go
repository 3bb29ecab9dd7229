package graph

import (
	"fmt"
	"slices"

	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Fault is something malformed in what catalogs or CSVs say, which prevents a resolution whatever is chosen.
type Fault struct {
	Class     resolution.Class
	Statement resolution.Statement
}

// Faults are those that something of a list of nodes reaches: bundles that cannot be read, and requirements
// whose candidates have no order. A fault anywhere on the way counts, whatever would have been chosen
// (RESOLVER-NOTES 2.8, 3.3).
func (g *Graph) Faults(from ...NodeID) []Fault {
	var out []Fault
	seen := make(map[NodeID]bool, len(from))
	asked := map[int32]bool{}
	queue := slices.Clone(from)
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		if n == None || seen[n] {
			continue
		}
		seen[n] = true
		if f, bad := g.malformed(n); bad {
			out = append(out, f)
		}
		for _, i := range g.OperatorOf(n).Requirements {
			if !asked[i] {
				asked[i] = true
				out = append(out, g.Requirements[i].faults...)
				queue = append(queue, g.Requirements[i].Candidates...)
			}
		}
	}
	return out
}

// HasFaults says whether there is any fault at all; mostly there is none, and it need not be found out who reaches it.
func (g *Graph) HasFaults() bool {
	return slices.ContainsFunc(g.Requirements, func(r Requirement) bool { return len(r.faults) > 0 }) ||
		slices.ContainsFunc(g.Operators, func(o Operator) bool { return o.complete() && o.Offer.Malformed() != "" })
}

// malformed is the fault of a bundle whose requirements cannot be read (RESOLVER-NOTES 2.8); ok is false where
// all can.
func (g *Graph) malformed(n NodeID) (Fault, bool) {
	op := g.Op(n)
	if !g.OperatorOf(n).complete() || op.Malformed() == "" {
		return Fault{}, false
	}
	s := resolution.Statement{Kind: resolution.RequirementMalformed, Bundle: op.Name, Package: op.Package}
	if g.IsInstalled(n) {
		s.Text = fmt.Sprintf("%s has a requirement that cannot be read: %s", g.ID(n), op.Malformed())
	} else {
		s.Catalog, s.Revision = g.CatalogOf(n).String(), g.Revision(n)
		s.Text = fmt.Sprintf("bundle %s of package %s in catalog %s has a requirement that cannot be read: %s",
			op.Name, op.Package, s.Catalog, op.Malformed())
	}
	return Fault{Class: resolution.ClassInvalidConstraint, Statement: s}, true
}

func malformedChannel(c resolution.CatalogKey, p *offer.Package, ch *offer.Channel) Fault {
	return Fault{Class: resolution.ClassInvalidChannel, Statement: resolution.Statement{
		Kind: resolution.ChannelMalformed, Catalog: c.String(), Revision: string(p.Digest), Package: p.Name,
		Channel: ch.Name, Text: fmt.Sprintf("catalog %s: %v", c, ch.Err),
	}}
}

// twoOfOnePackage is the fault of two installed CSVs of one package that both meet a requirement.
func (g *Graph) twoOfOnePackage(r *offer.Requirement, a, b NodeID) Fault {
	return Fault{Class: resolution.ClassInvalidChannel, Statement: resolution.Statement{
		Kind: resolution.ChannelMalformed, Bundle: g.ID(a), Other: g.ID(b), Package: g.Op(a).Package,
		Requirement: r.Text, Text: fmt.Sprintf(
			"%s and %s are two operators of one package %q, and which of them counts for a requirement %s is not "+
				"known; "+
				"one of them has to go first",
			g.ID(a), g.ID(b), g.Op(a).Package, r.Text),
	}}
}
