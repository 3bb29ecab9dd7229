package v2

import "slices"

// group is a component while components are being found.
type group struct {
	roots []root
	sol   *solution
}

// components splits the roots into sets that have to be solved together and solves them. Sets that cannot
// be solved lose a minimal set of roots that cannot live together, explained, and everything is split
// anew without these; so it ends after at most as many rounds as there are roots.
func (r *resolution) components() ([]*group, []failed) {
	roots := r.roots()
	var failures []failed
	for {
		groups := r.split(roots)
		bad := slices.IndexFunc(groups, func(g *group) bool { return !g.sol.ok })
		if bad < 0 {
			return groups, failures
		}
		var next []root
		for _, g := range groups {
			if g.sol.ok {
				next = append(next, g.roots...)
				continue
			}
			f := r.blame(g)
			failures = append(failures, f)
			next = append(next, r.without(g.roots, f)...)
		}
		slices.SortFunc(next, compareRoots)
		roots = next
	}
}

// split starts with every root by itself, or with one set of all where the operator group asks for joint
// plans (R-RES-63), and joins those that touch until none do.
func (r *resolution) split(roots []root) []*group {
	groups := r.initial(roots)
	for {
		for _, g := range groups {
			if g.sol == nil {
				g.sol = r.solve(g.roots)
			}
		}
		joined := joinTouching(groups)
		if len(joined) == len(groups) {
			return groups
		}
		groups = joined
	}
}

// joinTouching joins groups of which one depends on what another one holds, or that hold the same.
func joinTouching(groups []*group) []*group {
	sets := newSets(len(groups))
	owner := map[slot]int{}
	for i, g := range groups {
		g.sol.owns.each(func(x slot) {
			if j, ok := owner[x]; ok {
				sets.unite(i, j)
			}
			owner[x] = i
		})
	}
	for i, g := range groups {
		g.sol.touch.each(func(x slot) {
			if j, ok := owner[x]; ok {
				sets.unite(i, j)
			}
		})
		if g.sol.all {
			for j := range groups {
				sets.unite(i, j)
			}
		}
	}
	return sets.join(groups)
}

// sets are disjoint sets of groups, by index: into[i] is i, or another group of the same set.
type sets struct{ into []int }

func newSets(n int) sets {
	s := sets{into: make([]int, n)}
	for i := range s.into {
		s.into[i] = i
	}
	return s
}

func (s sets) find(i int) int {
	for s.into[i] != i {
		i = s.into[i]
	}
	return i
}

func (s sets) unite(i, j int) {
	i, j = s.find(i), s.find(j)
	s.into[max(i, j)] = min(i, j)
}

// join makes one group of each set, in the order of their first members. A group by itself keeps its solution.
func (s sets) join(groups []*group) []*group {
	var out []*group
	at := map[int]int{}
	for i, g := range groups {
		set := s.find(i)
		if k, ok := at[set]; ok {
			out[k] = join(out[k], g)
			continue
		}
		at[set] = len(out)
		out = append(out, g)
	}
	return out
}

func (r *resolution) initial(roots []root) []*group {
	if r.group.Shared && len(roots) > 0 {
		return []*group{{roots: roots}}
	}
	var groups []*group
	for _, rt := range roots {
		groups = append(groups, &group{roots: []root{rt}})
	}
	return r.joinDependent(groups)
}

// joinDependent joins the roots of installed operators of which one meets a requirement of the other: an
// upgrade of one must look at the other (R-RES-2, R-RES-60, R-RES-61).
func (r *resolution) joinDependent(groups []*group) []*group {
	sets := newSets(len(groups))
	of := map[*operator]int{}
	for i, g := range groups {
		for _, rt := range g.roots {
			if op := r.ops[rt.csv]; op != nil {
				of[op] = i
			}
		}
	}
	for asker, i := range of {
		for k := range asker.requires {
			for provider, j := range of {
				if provider != asker && asker.requires[k].matches(provider) {
					sets.unite(i, j)
				}
			}
		}
	}
	return sets.join(groups)
}

func join(a, b *group) *group {
	roots := append(slices.Clone(a.roots), b.roots...)
	slices.SortFunc(roots, compareRoots)
	return &group{roots: roots}
}

// blame finds a minimal set of the group's roots that cannot be solved: each is needed for the conflict.
func (r *resolution) blame(g *group) failed {
	core := slices.Clone(g.roots)
	if g.sol.fail != nil && g.sol.fail.class == ClassTooComplex {
		return r.explain(core) // looking for less would take as long again for every root
	}
	for i := 0; i < len(core) && len(core) > 1; {
		less := slices.Delete(slices.Clone(core), i, i+1)
		if r.solve(less).ok {
			i++
			continue
		}
		core = less
	}
	return r.explain(core)
}

// without gives what is left of a failed group. A CSV that is to blame, or whose subscription is, stays
// installed, and what is met of its requirements must stay met (R-RES-2).
func (r *resolution) without(roots []root, f failed) []root {
	var out []root
	for _, rt := range roots {
		if !slices.ContainsFunc(f.roots, func(o root) bool { return o.name() == rt.name() }) {
			out = append(out, rt)
			continue
		}
		if rt.csv == "" {
			continue
		}
		if kept, ok := r.keep(rt); ok {
			out = append(out, kept)
		}
	}
	return out
}

// keep makes a root of a CSV that stays as it is. Where it cannot, it is held there, and what it lacks
// today is no longer asked for.
func (r *resolution) keep(rt root) (root, bool) {
	kept := root{csv: rt.csv, installed: rt.installed}
	if rt.sub != nil && r.solve([]root{kept}).ok {
		return kept, true
	}
	if rt.held {
		return kept, false
	}
	kept.held = true
	r.ops[rt.csv] = r.metToday(r.ops[rt.csv])
	return kept, true
}

// metToday is an operator without the requirements that nothing installed meets.
func (r *resolution) metToday(op *operator) *operator {
	c := *op
	c.requires = nil
	for _, q := range op.requires {
		for _, other := range r.ops {
			if q.matches(other) {
				c.requires = append(c.requires, q)
				break
			}
		}
	}
	return &c
}
