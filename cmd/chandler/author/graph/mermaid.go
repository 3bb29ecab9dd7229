package graph

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Mermaid writes the graph as a Mermaid flow chart: one box for each channel, arrows in the direction of
// updates, so that heads are on top.
func Mermaid(w io.Writer, g Graph) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%%%% Update graph of package %s: -->|replaces|, -.->|skips|, dotted boxes are skip ranges.\n",
		encode(g.Package, mermaidChar))
	b.WriteString("flowchart BT\n")
	classes := map[string][]string{}
	for i, l := range g.Lanes {
		g.mermaidLane(&b, i, l, classes)
	}
	for _, c := range []struct{ name, style string }{
		{"head", "stroke-width:3px"},
		{"virtual", "stroke-dasharray:4 3,fill:none"},
		{"deprecated", "color:#888,stroke:#888,text-decoration:line-through"},
		{"range", "stroke-dasharray:1 3,fill:none"},
	} {
		if ids := classes[c.name]; len(ids) > 0 {
			fmt.Fprintf(&b, "classDef %s %s\nclass %s %s\n", c.name, c.style, strings.Join(ids, ","), c.name)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (g Graph) mermaidLane(b *strings.Builder, i int, l Lane, classes map[string][]string) {
	id := func(row int) string { return fmt.Sprintf("c%dn%d", i, row) }
	fmt.Fprintf(b, "subgraph c%d[\"%s\"]\n", i, encode(l.title(), mermaidChar))
	for _, row := range sorted(l.Rows, l.Virtual) {
		n := g.Nodes[row]
		virtual := slices.Contains(l.Virtual, row)
		fmt.Fprintf(b, "  %s[\"%s\"]\n", id(row), encode(n.label(), mermaidChar))
		switch {
		case virtual:
			classes["virtual"] = append(classes["virtual"], id(row))
		case n.Deprecated != "":
			classes["deprecated"] = append(classes["deprecated"], id(row))
		}
		if slices.Contains(l.Heads, row) {
			classes["head"] = append(classes["head"], id(row))
		}
	}
	for _, e := range l.Edges {
		arrow := "-->|replaces|"
		if e.Kind == Skips {
			arrow = "-.->|skips|"
		}
		fmt.Fprintf(b, "  %s %s %s\n", id(e.From), arrow, id(e.To))
	}
	for _, r := range l.Ranges {
		fmt.Fprintf(b, "  %sr[\"%s\"] -.-> %s\n", id(r.Row), encode("skipRange "+r.Text, mermaidChar), id(r.Row))
		classes["range"] = append(classes["range"], id(r.Row)+"r")
	}
	b.WriteString("end\n")
}

func sorted(a, b []int) []int {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

// label is the name, and the version where the name does not end in it.
func (n Node) label() string {
	if n.Version == "" || strings.HasSuffix(n.Name, n.Version) {
		return n.Name
	}
	return n.Name + " (" + n.Version + ")"
}

// title is the name of a channel with what matters of it.
func (l Lane) title() string {
	title := l.Name
	if l.Default {
		title += " (default)"
	}
	if l.Deprecated != "" {
		title += " (deprecated)"
	}
	return title
}

// mermaidChar is a character of a label as Mermaid reads it.
const mermaidChar = "#%d;"

// encode writes every character that is not plain as a character code, so that no name can end a label, begin a
// directive or contain markup.
func encode(s, char string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', strings.ContainsRune(" .-_/()+", r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, char, r)
		}
	}
	return b.String()
}
