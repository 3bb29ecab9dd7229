package v2

import (
	"cmp"
	"slices"
)

// planned describes a chosen bundle and why it is there.
func (r *resolution) planned(n *node, g *group) Planned {
	p := Planned{
		CSV: n.op.name, Package: n.op.pkg, Version: n.op.versionText(), Channel: n.channel, Catalog: n.catalog.Key,
		Revision: n.catalog.Revision, Content: n.op.content, Properties: n.op.properties,
	}
	for _, c := range g.sol.queue {
		if c.root == nil || c.root.sub == nil || !slices.Contains(c.cands, n) {
			continue
		}
		p.Subscriptions = append(p.Subscriptions, c.root.sub.Name)
		if p.Reason == "" {
			p.Replaces, p.Reason = c.root.csv, reasonOf(c, n)
		}
	}
	if p.Reason == "" && n.why != nil && n.why.req != nil {
		p.Reason, p.RequiredBy = n.why.req.reason(), n.why.from.op.name
	}
	return p
}

// reasonOf says why a subscription got this candidate.
func reasonOf(c *choice, n *node) string {
	switch {
	case c.root.csv != "":
		return stepReason(c.root, n)
	case c.root.sub.StartingCSV == n.op.name:
		return ReasonStartingCSV
	case c.cands[0] == n:
		return ReasonChannelHead
	}
	return ReasonSubscribed
}

// stepReason tells a named step from one by range.
func stepReason(r *root, n *node) string {
	if n.edge.replaces == r.csv || slices.Contains(n.edge.skips, r.csv) {
		return ReasonNextStep
	}
	return ReasonSkipRange
}

func outcome(r root, sol *solution) Outcome {
	o := Outcome{Subscription: r.sub.Name, CSV: r.csv}
	for _, c := range sol.queue {
		if c.root == nil || c.root.name() != r.name() {
			continue
		}
		for _, n := range sol.chosen {
			if slices.Contains(c.cands, n) {
				return Outcome{Subscription: r.sub.Name, CSV: n.op.name, Planned: !n.installed}
			}
		}
	}
	return o
}

// inOrder puts what is required before what requires it; in a circle, and otherwise, names decide.
func inOrder(planned []*node, queue []*choice) []*node {
	needs := map[*node][]*node{}
	for _, c := range queue {
		if c.from != nil && c.met != nil && c.met != c.from {
			needs[c.from] = append(needs[c.from], c.met)
		}
	}
	var out []*node
	seen := map[*node]bool{}
	var visit func(n *node)
	visit = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		before := slices.Clone(needs[n])
		slices.SortFunc(before, compareNodes)
		for _, b := range before {
			visit(b)
		}
		if slices.Contains(planned, n) {
			out = append(out, n)
		}
	}
	for _, n := range planned {
		visit(n)
	}
	return out
}

func compareNodes(a, b *node) int {
	return cmp.Or(cmp.Compare(a.op.name, b.op.name), cmp.Compare(a.channel, b.channel), compareKeys(a.catalog.Key, b.catalog.Key))
}
