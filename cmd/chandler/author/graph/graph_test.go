package graph_test

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/cmd/chandler/author/graph"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// gauge has every kind of edge, two channels, a virtual name and deprecations on all levels.
func gauge() catalog.Package {
	bundle := func(v string) catalog.Bundle { return catalog.Bundle{Name: "gauge.v" + v, Version: v} }
	return catalog.Package{
		Name: "gauge", DefaultChannel: "calm",
		Channels: []catalog.Channel{
			{Name: "quick", Entries: []catalog.Entry{
				{Name: "gauge.v1.10.0", Replaces: "gauge.v1.2.0"},
				{Name: "gauge.v1.2.0"},
			}},
			{Name: "calm", Entries: []catalog.Entry{
				{Name: "gauge.v1.0.0", Replaces: "gauge.v0.9.0"},
				{
					Name: "gauge.v1.2.0", Replaces: "gauge.v1.0.0", Skips: []string{"gauge.v1.1.0"},
					SkipRange: ">=1.0.0 <1.2.0",
				},
			}},
		},
		Bundles: []catalog.Bundle{bundle("1.0.0"), bundle("1.10.0"), bundle("1.2.0")},
		Deprecations: []catalog.Deprecation{
			{Schema: catalog.SchemaPackage, Message: "Ends in May."},
			{Schema: catalog.SchemaChannel, Name: "quick", Message: "Too quick."},
			{Schema: catalog.SchemaBundle, Name: "gauge.v1.0.0", Message: "Loses samples."},
		},
	}
}

func draw(t rapid.TB, p catalog.Package, write func(io.Writer, graph.Graph) error) string {
	t.Helper()
	g, err := graph.Of(p, "")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := write(&out, g); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestOf is the layout: newest on top by edges and then by version, the default channel first, names
// without bundle in their place (R-GRA-3, R-GRA-11).
func TestOf(t *testing.T) {
	t.Parallel()
	g, err := graph.Of(gauge(), "")
	if err != nil {
		t.Fatal(err)
	}
	want := graph.Graph{
		Package: "gauge", Deprecated: "Ends in May.",
		Nodes: []graph.Node{
			{Name: "gauge.v1.10.0", Version: "1.10.0"},
			{Name: "gauge.v1.2.0", Version: "1.2.0"},
			{Name: "gauge.v1.1.0", Virtual: true},
			{Name: "gauge.v1.0.0", Version: "1.0.0", Deprecated: "Loses samples."},
			{Name: "gauge.v0.9.0", Virtual: true},
		},
		Lanes: []graph.Lane{
			{
				Name: "calm", Default: true, Rows: []int{1, 3}, Virtual: []int{2, 4}, Heads: []int{1},
				Edges: []graph.Edge{
					{From: 2, To: 1, Kind: graph.Skips},
					{From: 3, To: 1, Kind: graph.Replaces},
					{From: 4, To: 3, Kind: graph.Replaces},
				},
				Ranges: []graph.Range{{Row: 1, Text: ">=1.0.0 <1.2.0"}},
			},
			{
				Name: "quick", Deprecated: "Too quick.", Rows: []int{0, 1}, Heads: []int{0},
				Edges: []graph.Edge{{From: 1, To: 0, Kind: graph.Replaces}},
			},
		},
	}
	if diff := cmp.Diff(want, g); diff != "" {
		t.Errorf("layout (-want +got):\n%s", diff)
	}
	if _, err := graph.Of(gauge(), "slow"); !errs.Is(err, errs.NotFound) {
		t.Errorf("a channel that is not there: %v", err)
	}
}

// TestMermaid holds the whole text of one graph.
func TestMermaid(t *testing.T) {
	t.Parallel()
	want := `%% Update graph of package gauge: -->|replaces|, -.->|skips|, dotted boxes are skip ranges.
flowchart BT
subgraph c0["calm (default)"]
  c0n1["gauge.v1.2.0"]
  c0n2["gauge.v1.1.0"]
  c0n3["gauge.v1.0.0"]
  c0n4["gauge.v0.9.0"]
  c0n2 -.->|skips| c0n1
  c0n3 -->|replaces| c0n1
  c0n4 -->|replaces| c0n3
  c0n1r["skipRange #62;#61;1.0.0 #60;1.2.0"] -.-> c0n1
end
subgraph c1["quick (deprecated)"]
  c1n0["gauge.v1.10.0"]
  c1n1["gauge.v1.2.0"]
  c1n1 -->|replaces| c1n0
end
classDef head stroke-width:3px
class c0n1,c1n0 head
classDef virtual stroke-dasharray:4 3,fill:none
class c0n2,c0n4 virtual
classDef deprecated color:#888,stroke:#888,text-decoration:line-through
class c0n3 deprecated
classDef range stroke-dasharray:1 3,fill:none
class c0n1r range
`
	if diff := cmp.Diff(want, draw(t, gauge(), graph.Mermaid)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestDot is the whole text for a package with everything that a graph can show.
func TestDot(t *testing.T) {
	t.Parallel()
	want := `digraph {
  rankdir=BT; node [shape=box];
  label="Update graph of package gauge";
  subgraph cluster_0 {
    label="calm (default)";
    c0n1 [label="gauge.v1.2.0", penwidth=3];
    c0n2 [label="gauge.v1.1.0", style=dashed];
    c0n3 [label="gauge.v1.0.0", color=gray, fontcolor=gray];
    c0n4 [label="gauge.v0.9.0", style=dashed];
    c0n2 -> c0n1 [style=dashed];
    c0n3 -> c0n1;
    c0n4 -> c0n3;
    c0n1r [label="skipRange &#62;&#61;1.0.0 &#60;1.2.0", style=dotted];
    c0n1r -> c0n1 [style=dotted];
  }
  subgraph cluster_1 {
    label="quick (deprecated)";
    c1n0 [label="gauge.v1.10.0", penwidth=3];
    c1n1 [label="gauge.v1.2.0"];
    c1n1 -> c1n0;
  }
}
`
	if diff := cmp.Diff(want, draw(t, gauge(), graph.Dot)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// packages draws packages with any names and any edges, cycles too.
func packages() *rapid.Generator[catalog.Package] {
	return rapid.Custom(func(t *rapid.T) catalog.Package {
		hostile := rapid.SampledFrom([]string{
			"<script>alert(1)</script>", `"]; click c0n0 "javascript:x"`, "a\nend\nclass c0n0 head", "]]>", "<!--",
			`x" onload="y`, "%%{init: {}}%%", "\x00\x1b[31m", "&amp;", "a#b;c", "`", strings.Repeat("long", 100),
			"\u202egnol", "subgraph", "end",
		})
		name := rapid.OneOf(hostile, rapid.StringMatching(`[a-d]\.v[0-9]\.[0-9]\.0`), rapid.String())
		entry := rapid.Custom(func(t *rapid.T) catalog.Entry {
			return catalog.Entry{
				Name: name.Draw(t, "name"), Replaces: name.Draw(t, "replaces"),
				Skips: rapid.SliceOfN(name, 0, 3).Draw(t, "skips"), SkipRange: name.Draw(t, "range"),
			}
		})
		p := catalog.Package{Name: name.Draw(t, "package"), DefaultChannel: "calm"}
		for i := range rapid.IntRange(1, 3).Draw(t, "channels") {
			c := catalog.Channel{Name: fmt.Sprint(i, name.Draw(t, "channel"))}
			c.Entries = rapid.SliceOfNDistinct(entry, 1, 6, func(e catalog.Entry) string { return e.Name }).Draw(
				t, "entries")
			p.Channels = append(p.Channels, c)
			for _, e := range c.Entries {
				if _, there := p.Bundle(e.Name); there {
					continue
				}
				p.Bundles = append(p.Bundles, catalog.Bundle{
					Name: e.Name, Version: rapid.StringMatching(`[0-9]\.[0-9]\.[0-9]`).Draw(t, "version"),
				})
				p.Deprecations = append(p.Deprecations, catalog.Deprecation{
					Schema: catalog.SchemaBundle, Name: e.Name,
					Message: name.Draw(t, "message"),
				})
			}
		}
		return p
	})
}

// TestHostile: whatever names say, the texts hold labels with plain characters and what this package writes, and do not
// depend on the order of entries.
func TestHostile(t *testing.T) {
	t.Parallel()
	label := regexp.MustCompile(`"[-0-9a-zA-Z ._/()+#&;]*"`)
	mermaid := regexp.MustCompile(
		`^(%% Update graph of package .*|flowchart BT|subgraph c\d+\[L\]|  c\d+n\d+\[L\]|  c\d+n\d+ (-->\|replaces\||-\.->\|skips\|) c\d+n\d+|  c\d+n\d+r\[L\] -\.-> c\d+n\d+|end|classDef [a-z]+ .*|class [c0-9nr,]+ [a-z]+)$`)
	dot := regexp.MustCompile(
		`^(digraph \{|  rankdir=BT; node \[shape=box\];|  label=L;|  subgraph cluster_\d+ \{|    label=L;|    c\d+n\d+r? \[label=L[a-z0-9, =]*\];|    c\d+n\d+r? -> c\d+n\d+( \[style=[a-z]+\])?;|  \}|\})$`)
	rapid.Check(t, func(rt *rapid.T) {
		p := packages().Draw(rt, "package")
		for _, w := range []struct {
			draw func(io.Writer, graph.Graph) error
			line *regexp.Regexp
		}{{graph.Mermaid, mermaid}, {graph.Dot, dot}} {
			text := draw(rt, p, w.draw)
			for i, l := range strings.Split(strings.TrimSpace(text), "\n") {
				if bare := label.ReplaceAllString(l, "L"); !w.line.MatchString(bare) {
					rt.Fatalf("line %d of the text is not what was written: %q", i+1, l)
				}
			}
			for _, c := range p.Channels {
				slices.Reverse(c.Entries)
			}
			slices.Reverse(p.Bundles)
			if again := draw(rt, p, w.draw); again != text {
				rt.Fatal("the text depends on the order of entries")
			}
		}
	})
}
