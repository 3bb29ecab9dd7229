package graph

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Dot writes the graph in the language of Graphviz: one cluster for each channel, arrows in the direction of updates,
// so that heads are on top.
func Dot(w io.Writer, g Graph) error {
	var b strings.Builder
	b.WriteString("digraph {\n  rankdir=BT; node [shape=box];\n")
	fmt.Fprintf(&b, "  label=\"Update graph of package %s\";\n", encode(g.Package, dotChar))
	for i, l := range g.Lanes {
		g.dotLane(&b, i, l)
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// dotChar is a character of a label as Graphviz reads it.
const dotChar = "&#%d;"

func (g Graph) dotLane(b *strings.Builder, i int, l Lane) {
	id := func(row int) string { return fmt.Sprintf("c%dn%d", i, row) }
	fmt.Fprintf(b, "  subgraph cluster_%d {\n    label=\"%s\";\n", i, encode(l.title(), dotChar))
	for _, row := range sorted(l.Rows, l.Virtual) {
		n := g.Nodes[row]
		style := ""
		switch {
		case slices.Contains(l.Virtual, row):
			style = ", style=dashed"
		case n.Deprecated != "":
			style = ", color=gray, fontcolor=gray"
		}
		if slices.Contains(l.Heads, row) {
			style += ", penwidth=3"
		}
		fmt.Fprintf(b, "    %s [label=\"%s\"%s];\n", id(row), encode(n.label(), dotChar), style)
	}
	for _, e := range l.Edges {
		style := ""
		if e.Kind == Skips {
			style = " [style=dashed]"
		}
		fmt.Fprintf(b, "    %s -> %s%s;\n", id(e.From), id(e.To), style)
	}
	for _, r := range l.Ranges {
		fmt.Fprintf(b, "    %sr [label=\"%s\", style=dotted];\n", id(r.Row), encode("skipRange "+r.Text, dotChar))
		fmt.Fprintf(b, "    %sr -> %s [style=dotted];\n", id(r.Row), id(r.Row))
	}
	b.WriteString("  }\n")
}
