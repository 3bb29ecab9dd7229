package search

import (
	"slices"

	"github.com/chandler-fleet/chandler/services/resolver/resolve/graph"
)

// takeover is a bundle that replaces an installed CSV that no subscription follows.
type takeover struct{ by, csv graph.NodeID }

// takeovers are those of what was chosen, by CSV; the first one counts. What replaces the CSV of its
// subscription takes over no other one.
func (h *chooser) takeovers() map[graph.NodeID]graph.NodeID {
	var out map[graph.NodeID]graph.NodeID
	for _, n := range h.taken {
		csv := h.p.TakesOver(n)
		if _, twice := out[csv]; csv == graph.None || twice || h.p.AlreadyInstalled(n) || h.upgrades(n) {
			continue
		}
		if out == nil {
			out = map[graph.NodeID]graph.NodeID{}
		}
		out[csv] = n
	}
	return out
}

// upgrades says whether a chosen node answers a subscription that has something installed.
func (h *chooser) upgrades(n graph.NodeID) bool {
	return slices.ContainsFunc(h.queue, func(c Choice) bool {
		return c.Root >= 0 && c.Met == n && h.p.Roots[c.Root].Node != graph.None
	})
}

// maxApart bounds how many takeovers are forbidden one by one. Beyond that, a CSV that somebody needs is not taken over
// by anything.
const maxApart = 100

// keepApart forbids the takeovers of a solution that take from somebody what it requires: nothing else that was chosen
// meets it. OLM takes the CSV away all the same. It returns false where there are none.
func (p *problem) keepApart(h *chooser) bool {
	over := h.takeovers()
	if len(over) == 0 {
		return false
	}
	before := len(p.apart)
	for _, c := range h.queue {
		if _, goes := over[c.From]; goes || c.Root >= 0 {
			continue
		}
		met := slices.DeleteFunc(slices.Clone(c.Candidates), func(n graph.NodeID) bool { return !h.has(n) })
		if slices.ContainsFunc(met, func(n graph.NodeID) bool { _, goes := over[n]; return !goes }) {
			continue
		}
		for _, csv := range met {
			p.forbid(takeover{by: over[csv], csv: csv})
		}
	}
	return len(p.apart) > before
}

func (p *problem) forbid(t takeover) {
	if slices.Contains(p.apart, t) {
		return
	}
	p.apart = append(p.apart, t)
	if len(p.apart) < maxApart {
		return
	}
	for _, n := range p.Members {
		if p.TakesOver(n) == t.csv {
			p.apart = append(p.apart, takeover{by: n, csv: t.csv})
		}
	}
}
