package compare

import (
	"cmp"
	"slices"

	"github.com/chandler-fleet/chandler/libs/catalog"
)

// MaxEdges bounds the upgrades of one package that are compared ahead of time; the largest real package
// has some 600. What lies beyond is compared when somebody asks.
const MaxEdges = 20_000

// Edge is an upgrade that the update graph offers, from one bundle of a package to another (R-GRA-3).
type Edge struct{ From, To string }

// Edges returns the upgrades that a package offers: from each bundle, in each channel, to the entry
// nearest the head that succeeds it (R-GRA-9), and along every "replaces", which is the path of those
// who approve step by step (R-GRA-6). They are sorted by name, each once. A channel that cannot be
// followed (R-GRA-15) offers none. Virtual nodes have no content and are left out (R-GRA-11).
func Edges(p catalog.Package) []Edge {
	exists := map[string]bool{}
	for _, b := range p.Bundles {
		exists[b.Name] = true
	}
	seen := map[Edge]bool{}
	for _, c := range p.Channels {
		g, err := catalog.NewGraph(c)
		if err != nil {
			continue
		}
		for _, b := range p.Bundles {
			for i, e := range g.Successors(b.Name, b.Version) {
				if (i == 0 || e.Replaces == b.Name) && exists[e.Name] && len(seen) < MaxEdges {
					seen[Edge{b.Name, e.Name}] = true
				}
			}
		}
	}
	out := make([]Edge, 0, len(seen))
	for e := range seen {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Edge) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	return out
}
