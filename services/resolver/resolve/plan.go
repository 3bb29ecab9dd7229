package resolve

import (
	"slices"
)

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
	if over := w.installedNamed(w.nodes[n].edge.Replaces); p.Replaces == "" && over != none && w.followed[over] == "" {
		p.Replaces = w.op(over).Name // nobody follows it: the bundle takes it over (RESOLVER-NOTES 7.1)
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
