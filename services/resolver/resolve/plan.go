package resolve

import "slices"

// bundle describes a chosen bundle and why it is there.
func (s *settled) bundle(n nodeID) Planned {
	w := s.w
	op, in := w.op(n), &w.catalogs[w.shapes[w.nodes[n].shape].catalog]
	p := Planned{
		CSV: op.Name, Package: op.Package, Version: op.VersionText(), Channel: w.nodes[n].channel, Catalog: in.Key,
		Revision: in.Revision, Content: op.Content, Properties: op.Properties,
	}
	var by *root // the subscription whose CSV it takes the place of, else the first that it answers
	for _, r := range s.c.roots {
		if m, ok := s.chosen[r]; !ok || m != n {
			continue
		}
		p.Subscriptions = append(p.Subscriptions, r.sub.Name)
		if by == nil || by.installed == nil && r.installed != nil {
			by = r
		}
	}
	if by != nil {
		p.Replaces, p.Reason = by.csv(), s.reason(by, n)
	}
	if over := w.takesOver(n); over != none && s.over[over] == n {
		p.Replaces = w.op(over).Name
	}
	if by == nil {
		q := s.why[n][0]
		p.Reason, p.RequiredBy = w.needs[q.need].req.Reason(), w.op(q.from).Name
	}
	return p
}

// reason says why a subscription got a bundle.
func (s *settled) reason(r *root, n nodeID) string {
	e := s.w.nodes[n].edge
	switch {
	case r.goesBack():
		return ReasonRollback
	case r.installed != nil && (e.Replaces == r.csv() || slices.Contains(e.Skips, r.csv())):
		return ReasonNextStep
	case r.installed != nil:
		return ReasonSkipRange
	case r.sub.StartingCSV == s.w.op(n).Name:
		return ReasonStartingCSV
	case r.cands[0] == n:
		return ReasonChannelHead
	}
	return ReasonSubscribed
}

func (s *settled) outcome(r *root) Outcome {
	n := s.chosen[r]
	return Outcome{Subscription: r.sub.Name, CSV: s.w.op(n).Name, Planned: s.isPlanned(n)}
}

// inOrder puts what is required before what requires it; in a circle, and otherwise, names decide.
func (s *settled) inOrder(planned []nodeID) []nodeID {
	needs := map[nodeID][]nodeID{}
	for _, q := range s.queue {
		if q.from != none && q.met != q.from {
			needs[q.from] = append(needs[q.from], q.met)
		}
	}
	var out []nodeID
	seen := map[nodeID]bool{}
	var visit func(n nodeID)
	visit = func(n nodeID) {
		if seen[n] {
			return
		}
		seen[n] = true
		slices.SortFunc(needs[n], s.w.compare)
		for _, b := range needs[n] {
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

// takeover is a bundle that takes the place of an installed CSV that no subscription follows.
type takeover struct{ by, csv nodeID }

// takeovers are those of what was chosen, by CSV; the first one counts. What takes the place of the CSV of its
// subscription takes over no other one.
func (h *chooser) takeovers() map[nodeID]nodeID {
	w := h.c.w
	var out map[nodeID]nodeID
	for _, n := range h.taken {
		csv := w.takesOver(n)
		if _, twice := out[csv]; csv == none || twice || w.already(n) || h.upgrades(n) {
			continue
		}
		if out == nil {
			out = map[nodeID]nodeID{}
		}
		out[csv] = n
	}
	return out
}

// upgrades says whether a chosen node answers a subscription that has something installed.
func (h *chooser) upgrades(n nodeID) bool {
	return slices.ContainsFunc(h.queue, func(q choice) bool { return q.root != nil && q.met == n && q.root.node != none })
}

// maxApart bounds how many takeovers are forbidden one by one. Beyond that, a CSV that somebody needs is not taken over
// by anything.
const maxApart = 100

// keepApart forbids the takeovers of a solution that take from somebody what it requires: nothing else that was chosen
// meets it. It returns false where there are none.
func (c *cluster) keepApart(h *chooser) bool {
	over := h.takeovers()
	if len(over) == 0 {
		return false
	}
	before := len(c.apart)
	for _, q := range h.queue {
		if _, goes := over[q.from]; goes || q.root != nil {
			continue
		}
		met := slices.DeleteFunc(slices.Clone(q.cands), func(n nodeID) bool { return !h.has(n) })
		if slices.ContainsFunc(met, func(n nodeID) bool { _, goes := over[n]; return !goes }) {
			continue
		}
		for _, csv := range met {
			c.forbid(takeover{by: over[csv], csv: csv})
		}
	}
	return len(c.apart) > before
}

func (c *cluster) forbid(t takeover) {
	if slices.Contains(c.apart, t) {
		return
	}
	c.apart = append(c.apart, t)
	if len(c.apart) < maxApart {
		return
	}
	for _, n := range c.nodes {
		if c.w.takesOver(n) == t.csv {
			c.apart = append(c.apart, takeover{by: n, csv: t.csv})
		}
	}
}
