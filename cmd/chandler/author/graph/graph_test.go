package graph_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
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
			{Name: "quick", Entries: []catalog.Entry{{Name: "gauge.v1.10.0", Replaces: "gauge.v1.2.0"}, {Name: "gauge.v1.2.0"}}},
			{Name: "calm", Entries: []catalog.Entry{
				{Name: "gauge.v1.0.0", Replaces: "gauge.v0.9.0"},
				{Name: "gauge.v1.2.0", Replaces: "gauge.v1.0.0", Skips: []string{"gauge.v1.1.0"}, SkipRange: ">=1.0.0 <1.2.0"},
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
				Edges:  []graph.Edge{{From: 2, To: 1, Kind: graph.Skips}, {From: 3, To: 1, Kind: graph.Replaces}, {From: 4, To: 3, Kind: graph.Replaces}},
				Ranges: []graph.Range{{Row: 1, Text: ">=1.0.0 <1.2.0"}},
			},
			{Name: "quick", Deprecated: "Too quick.", Rows: []int{0, 1}, Heads: []int{0}, Edges: []graph.Edge{{From: 1, To: 0, Kind: graph.Replaces}}},
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

// TestSVG looks for what a person must see.
func TestSVG(t *testing.T) {
	t.Parallel()
	svg := draw(t, gauge(), graph.SVG)
	elements(t, svg)
	for _, want := range []string{
		`<text class="t d" x="16.0" y="28.0"><title>Ends in May.</title>gauge</text>`, // the package, struck out, with the reason
		`<text class="d"`, `<title>Loses samples.</title>gauge.v1.0.0</text>`,
		`<text class="v"`, `named, but not in the catalog`,
		`>&gt;=1.0.0 &lt;1.2.0</text>`, `class="r"`, `class="k"`, `stroke-dasharray="2 2"`,
		`>calm (default)</text>`, `<title>Too quick.</title>quick</text>`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("%s is not in the picture", want)
		}
	}
	if top, below := strings.Index(svg, ">gauge.v1.10.0</text>"), strings.Index(svg, ">gauge.v1.2.0</text>"); top < 0 || below < top {
		t.Error("the newest is not on top")
	}
}

// elements reads a picture as XML and returns the names of its elements.
func elements(t rapid.TB, svg string) map[string]int {
	t.Helper()
	out := map[string]int{}
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("the picture is no XML: %v\n%s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok {
			out[e.Name.Local]++
			for _, a := range e.Attr {
				if strings.HasPrefix(strings.ToLower(a.Name.Local), "on") || strings.Contains(a.Name.Local, "href") {
					t.Fatalf("an attribute %s: a name has left its place", a.Name.Local)
				}
			}
		}
	}
}

// packages draws packages with any names and any edges, cycles too.
func packages() *rapid.Generator[catalog.Package] {
	return rapid.Custom(func(t *rapid.T) catalog.Package {
		hostile := rapid.SampledFrom([]string{
			"<script>alert(1)</script>", `"]; click c0n0 "javascript:x"`, "a\nend\nclass c0n0 head", "]]>", "<!--", `x" onload="y`, "%%{init: {}}%%", "\x00\x1b[31m", "&amp;", "a#b;c", "`",
			strings.Repeat("long", 100), "\u202egnol", "subgraph", "end",
		})
		name := rapid.OneOf(hostile, rapid.StringMatching(`[a-d]\.v[0-9]\.[0-9]\.0`), rapid.String())
		entry := rapid.Custom(func(t *rapid.T) catalog.Entry {
			return catalog.Entry{Name: name.Draw(t, "name"), Replaces: name.Draw(t, "replaces"), Skips: rapid.SliceOfN(name, 0, 3).Draw(t, "skips"), SkipRange: name.Draw(t, "range")}
		})
		p := catalog.Package{Name: name.Draw(t, "package"), DefaultChannel: "calm"}
		for i := range rapid.IntRange(1, 3).Draw(t, "channels") {
			c := catalog.Channel{Name: fmt.Sprint(i, name.Draw(t, "channel"))}
			c.Entries = rapid.SliceOfNDistinct(entry, 1, 6, func(e catalog.Entry) string { return e.Name }).Draw(t, "entries")
			p.Channels = append(p.Channels, c)
			for _, e := range c.Entries {
				if _, there := p.Bundle(e.Name); there {
					continue
				}
				p.Bundles = append(p.Bundles, catalog.Bundle{Name: e.Name, Version: rapid.StringMatching(`[0-9]\.[0-9]\.[0-9]`).Draw(t, "version")})
				p.Deprecations = append(p.Deprecations, catalog.Deprecation{Schema: catalog.SchemaBundle, Name: e.Name, Message: name.Draw(t, "message")})
			}
		}
		return p
	})
}

// TestHostile: whatever names say, the pictures are well-formed, hold the elements of a picture and
// nothing else, do not depend on the order of entries, and come to an end.
func TestHostile(t *testing.T) {
	t.Parallel()
	line := func(s string) string { // of Mermaid, without its text
		if from, to := strings.Index(s, `["`), strings.LastIndex(s, `"]`); from >= 0 && to > from {
			if inner := s[from+2 : to]; !strings.ContainsAny(inner, "\"<>[]{}`%\\") {
				return s[:from] + s[to+2:]
			}
		}
		return s
	}
	rapid.Check(t, func(rt *rapid.T) {
		p := packages().Draw(rt, "package")
		svg, mermaid := draw(rt, p, graph.SVG), draw(rt, p, graph.Mermaid)
		for name := range elements(rt, svg) {
			if !slices.Contains([]string{"svg", "title", "style", "rect", "text", "g", "path", "circle"}, name) {
				rt.Fatalf("the picture has an element %s", name)
			}
		}
		for i, l := range strings.Split(strings.TrimSpace(mermaid), "\n") {
			if bare := line(l); i > 0 && strings.ContainsAny(bare, "\"[]{}`;") {
				rt.Fatalf("line %d of the text is not what was written: %q", i+1, l)
			}
		}
		for _, c := range p.Channels {
			slices.Reverse(c.Entries)
		}
		slices.Reverse(p.Bundles)
		if again := draw(rt, p, graph.SVG); again != svg {
			rt.Fatal("the picture depends on the order of entries")
		}
	})
}
