// Package graph writes the update graph of a package as text for Mermaid or Graphviz, which draw it.
//
// Every channel is a box with the bundles that are its entries, heads on top. An arrow is solid where an entry replaces
// another, and dashed where it skips one. The skip range of an entry is a dotted box beside it (R-GRA-3). Names that
// have no bundle have a dashed outline (R-GRA-11).
//
// The same package always gives the same bytes, and no name can be read as anything but text.
package graph

import (
	"cmp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// Node is one bundle, or a name that has none.
type Node struct {
	Name       string
	Version    string // "" where it is not known
	Virtual    bool
	Deprecated string // the message, "" where it is not deprecated
}

// Kind is what an edge says.
type Kind string

// The kinds of edges (R-GRA-3).
const (
	Replaces Kind = "replaces"
	Skips    Kind = "skips"
)

// Edge leads from what is updated to what it is updated to. Both are rows.
type Edge struct {
	From, To int
	Kind     Kind
}

// Range is an entry that takes over from every version in a range.
type Range struct {
	Row  int
	Text string
}

// Lane is one channel.
type Lane struct {
	Name       string
	Default    bool
	Deprecated string
	Rows       []int // of entries, from the top
	Virtual    []int // of names without entry that its edges lead from
	Heads      []int // one where the channel can be followed (R-CAT-35)
	Edges      []Edge
	Ranges     []Range
}

// Graph is a package as it is drawn. Nodes are rows, newest first.
type Graph struct {
	Package    string
	Deprecated string
	Nodes      []Node
	Lanes      []Lane
}

// Of lays out a package, or only one of its channels.
func Of(p catalog.Package, channel string) (Graph, error) {
	channels := p.Channels
	if channel != "" {
		c, ok := p.Channel(channel)
		if !ok {
			return Graph{}, errs.New(errs.NotFound, "package %s has no channel %q; it has %s", p.Name, channel,
				names(p.Channels))
		}
		channels = []catalog.Channel{c}
	}
	g := Graph{Package: p.Name, Deprecated: deprecation(p, catalog.SchemaPackage, "")}
	nodes, row := rows(p, channels)
	g.Nodes = nodes
	for _, c := range channels {
		g.Lanes = append(g.Lanes, lane(p, c, row))
	}
	slices.SortStableFunc(g.Lanes, func(a, b Lane) int {
		return cmp.Or(-cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Rows[0], b.Rows[0]), cmp.Compare(a.Name, b.Name))
	})
	return g, nil
}

func rank(l Lane) int {
	if l.Default {
		return 1
	}
	return 0
}

func names(channels []catalog.Channel) string {
	out := make([]string, 0, len(channels))
	for _, c := range channels {
		out = append(out, c.Name)
	}
	return strings.Join(out, ", ")
}

func deprecation(p catalog.Package, schema, name string) string {
	for _, d := range p.Deprecations {
		if d.Schema == schema && d.Name == name {
			return d.Message
		}
	}
	return ""
}

// rows puts every name into a row, newer ones above what they take over from, and returns the row of
// each name. Where edges do not decide, the higher version is above; in a cycle it begins.
func rows(p catalog.Package, channels []catalog.Channel) (nodes []Node, row map[string]int) {
	below := map[string][]string{} // what each name takes over from
	above := map[string]int{}      // how many names not yet placed take over from it
	known := map[string]Node{}
	edge := func(to, from string) {
		if from != "" && from != to && !slices.Contains(below[to], from) {
			below[to] = append(below[to], from)
			above[from]++
		}
		if _, there := known[from]; !there && from != "" {
			b, has := p.Bundle(from)
			known[from] = Node{
				Name: from, Version: b.Version, Virtual: !has,
				Deprecated: deprecation(p, catalog.SchemaBundle, from),
			}
		}
	}
	for _, c := range channels {
		for _, e := range c.Entries {
			b, _ := p.Bundle(e.Name)
			known[e.Name] = Node{
				Name: e.Name, Version: b.Version,
				Deprecated: deprecation(p, catalog.SchemaBundle, e.Name),
			}
		}
	}
	for _, c := range channels {
		for _, e := range c.Entries {
			edge(e.Name, e.Replaces)
			for _, s := range e.Skips {
				edge(e.Name, s)
			}
		}
	}
	rest := make([]Node, 0, len(known))
	for _, n := range known {
		rest = append(rest, n)
	}
	slices.SortFunc(rest, newer)
	row = map[string]int{}
	for len(rest) > 0 {
		next := max(slices.IndexFunc(rest, func(n Node) bool { return above[n.Name] == 0 }), 0)
		n := rest[next]
		rest = slices.Delete(rest, next, next+1)
		row[n.Name] = len(nodes)
		nodes = append(nodes, n)
		for _, b := range below[n.Name] {
			above[b]--
		}
	}
	return nodes, row
}

// version is that of the bundle; of a name without one, what its end says (R-CAT-42).
func (n Node) version() (semver.Version, error) {
	if n.Version == "" {
		if i := strings.Index(n.Name, ".v"); i >= 0 {
			return semver.Parse(n.Name[i+len(".v"):])
		}
	}
	return semver.Parse(n.Version)
}

// newer orders nodes by version, those without one last, then by name.
func newer(a, b Node) int {
	va, errA := a.version()
	vb, errB := b.version()
	switch {
	case errA == nil && errB == nil:
		return cmp.Or(vb.Compare(va), cmp.Compare(a.Name, b.Name))
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	}
	return cmp.Compare(b.Name, a.Name)
}

func lane(p catalog.Package, c catalog.Channel, row map[string]int) Lane {
	l := Lane{
		Name: c.Name, Default: c.Name == p.DefaultChannel,
		Deprecated: deprecation(p, catalog.SchemaChannel, c.Name),
	}
	entry := map[string]bool{}
	for _, e := range c.Entries {
		entry[e.Name] = true
		l.Rows = append(l.Rows, row[e.Name])
	}
	slices.Sort(l.Rows)
	virtual := map[int]bool{}
	add := func(to, from string, k Kind) {
		if from == "" || from == to {
			return
		}
		l.Edges = append(l.Edges, Edge{row[from], row[to], k})
		if !entry[from] {
			virtual[row[from]] = true
		}
	}
	for _, e := range c.Entries {
		add(e.Name, e.Replaces, Replaces)
		for _, s := range e.Skips {
			if s != e.Replaces {
				add(e.Name, s, Skips)
			}
		}
		if e.SkipRange != "" {
			l.Ranges = append(l.Ranges, Range{row[e.Name], e.SkipRange})
		}
	}
	for r := range virtual {
		l.Virtual = append(l.Virtual, r)
	}
	slices.Sort(l.Virtual)
	for _, h := range catalog.Heads(c) {
		l.Heads = append(l.Heads, row[h])
	}
	slices.SortFunc(l.Edges, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From), cmp.Compare(a.Kind, b.Kind))
	})
	slices.SortFunc(l.Ranges, func(a, b Range) int { return cmp.Compare(a.Row, b.Row) })
	return l
}
