package graph

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Sizes of the picture in pixels.
const (
	rowHeight  = 26
	laneWidth  = 46
	margin     = 16
	titleSpace = 44
	legendRow  = 24
	dot        = 6
	charWidth  = 7.3 // of the monospaced font of 12 pixels
	maxText    = 64  // characters of one label that are shown; the whole stands in its title
	headSlope  = 5.2 // of a channel's name that is written aslant, height for each character
)

// palette are colours of lanes that are told apart on white and on black, and by most people who see
// some colours alike. Lanes beyond use them again.
var palette = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a6761d", "#56b4e9", "#7570b3", "#e69f00"}

const style = `text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#1f2328}
.t{font:600 15px system-ui,sans-serif}.g{fill:#6e7781}.d{fill:#6e7781;text-decoration:line-through}.v{fill:#6e7781;font-style:italic}
.bg{fill:#fff}.z{fill:#f6f8fa}.r{fill:none;stroke-dasharray:1 3}.k{stroke-dasharray:5 3}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.g,.d,.v{fill:#9198a1}.bg{fill:#0d1117}.z{fill:#161b22}}
`

// picture is an SVG that grows.
type picture struct {
	bytes.Buffer

	g     Graph
	left  float64 // of the first lane
	top   float64 // of the first row
	notes float64 // left of the notes
	width float64
}

// SVG writes the graph as a picture.
func SVG(w io.Writer, g Graph) error {
	p := &picture{g: g}
	longest, header := 0, 0
	for _, n := range g.Nodes {
		longest = max(longest, utf8.RuneCountInString(clip(n.label())))
	}
	for _, l := range g.Lanes {
		header = max(header, utf8.RuneCountInString(clip(l.title())))
	}
	p.left = margin + float64(longest)*charWidth + laneWidth
	p.top = titleSpace + float64(header)*headSlope + rowHeight
	p.notes = p.left + float64(len(g.Lanes))*laneWidth
	note := 0
	for _, texts := range p.ranges() {
		n := 0
		for _, t := range texts {
			n += utf8.RuneCountInString(clip(t.text)) + 4
		}
		note = max(note, n)
	}
	p.width = p.notes + margin + max(float64(note)*charWidth, float64(header)*headSlope) + laneWidth
	p.width = max(p.width, 560) // the legend
	height := p.top + float64(len(g.Nodes))*rowHeight + legendRow + margin
	fmt.Fprintf(p, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img">`+"\n", p.width, height, p.width, height)
	fmt.Fprintf(p, "<title>%s</title>\n<style>%s</style>\n", escape("Update graph of package "+g.Package), style)
	fmt.Fprintf(p, `<rect class="bg" width="%.0f" height="%.0f"/>`+"\n", p.width, height)
	p.rows()
	for i, l := range g.Lanes {
		p.lane(i, l)
	}
	p.text(margin, titleSpace-margin, class(g.Deprecated, "t"), g.Package, g.Deprecated)
	p.rangeNotes()
	p.legend(height - margin)
	p.WriteString("</svg>\n")
	_, err := w.Write(p.Bytes())
	return err
}

func (l Lane) title() string {
	if l.Default {
		return l.Name + " (default)"
	}
	return l.Name
}

func class(deprecated, base string) string {
	if deprecated != "" {
		return strings.TrimSpace(base + " d")
	}
	return base
}

func (p *picture) x(lane int) float64 { return p.left + (float64(lane)+0.5)*laneWidth }
func (p *picture) y(row int) float64  { return p.top + (float64(row)+0.5)*rowHeight }

// rows writes the name of every row on the left, and a stripe behind every second one.
func (p *picture) rows() {
	for i, n := range p.g.Nodes {
		if i%2 == 0 {
			fmt.Fprintf(p, `<rect class="z" x="0" y="%.1f" width="%.0f" height="%d"/>`+"\n", p.y(i)-rowHeight/2, p.width, rowHeight)
		}
		c := class(n.Deprecated, "")
		if n.Virtual {
			c = "v"
		}
		hint := n.Deprecated
		if n.Virtual {
			hint = "named, but not in the catalog"
		}
		p.text(margin, p.y(i)+4, c, n.label(), hint)
	}
}

// lane writes one channel: its name, its edges, and on them its dots.
func (p *picture) lane(i int, l Lane) {
	color := palette[i%len(palette)]
	x := p.x(i)
	fmt.Fprintf(p, `<g stroke="%s" fill="none" stroke-width="2">`+"\n", color)
	for _, e := range l.Edges {
		p.edge(x, l, e)
	}
	for _, row := range l.Virtual {
		fmt.Fprintf(p, `<circle class="bg" cx="%.1f" cy="%.1f" r="%d" stroke-dasharray="2 2"/>`+"\n", x, p.y(row), dot-1)
	}
	for _, row := range l.Rows {
		if slices.Contains(l.Heads, row) {
			fmt.Fprintf(p, `<circle cx="%.1f" cy="%.1f" r="%d"/>`+"\n", x, p.y(row), dot+3)
		}
		fill := color
		if p.g.Nodes[row].Deprecated != "" {
			fill = "#9198a1"
		}
		fmt.Fprintf(p, `<circle cx="%.1f" cy="%.1f" r="%d" fill="%s"><title>%s</title></circle>`+"\n",
			x, p.y(row), dot, fill, escape(p.g.Nodes[row].label()+" in channel "+l.Name))
	}
	p.WriteString("</g>\n")
	fmt.Fprintf(p, `<g transform="translate(%.1f %.1f) rotate(-40)">`, x, p.top-rowHeight/2)
	p.text(0, 0, class(l.Deprecated, ""), l.title(), l.Deprecated)
	p.WriteString("</g>\n")
}

// edge writes a line straight down where nothing of the lane lies between, else a bow: to the left for
// replaces, to the right for skips, the wider the longer.
func (p *picture) edge(x float64, l Lane, e Edge) {
	c, between := "", false
	for _, row := range sorted(l.Rows, l.Virtual) {
		between = between || row > min(e.From, e.To) && row < max(e.From, e.To)
	}
	bow := 0.0
	switch {
	case e.Kind == Skips:
		c = ` class="k"`
		bow = min(9+3*float64(max(e.From-e.To, e.To-e.From)), laneWidth/2-2)
	case between:
		bow = -min(9+3*float64(max(e.From-e.To, e.To-e.From)), laneWidth/2-2)
	}
	from, to := p.y(e.From), p.y(e.To)
	fmt.Fprintf(p, `<path%s d="M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f"/>`+"\n", c, x, from, x+bow*4/3, from+(to-from)*0.25, x+bow*4/3, to-(to-from)*0.25, x, to)
}

type rangeNote struct {
	text, color, lane string
}

// ranges gathers the ranges of every row; lanes that say the same share a note.
func (p *picture) ranges() map[int][]rangeNote {
	out := map[int][]rangeNote{}
	for i, l := range p.g.Lanes {
		for _, r := range l.Ranges {
			same := slices.IndexFunc(out[r.Row], func(n rangeNote) bool { return n.text == r.Text })
			if same >= 0 {
				out[r.Row][same].lane += ", " + l.Name
				continue
			}
			out[r.Row] = append(out[r.Row], rangeNote{r.Text, palette[i%len(palette)], l.Name})
		}
	}
	return out
}

func (p *picture) rangeNotes() {
	all := p.ranges()
	for row := range p.g.Nodes {
		x := p.notes + margin
		for _, n := range all[row] {
			w := float64(utf8.RuneCountInString(clip(n.text)))*charWidth + 12
			fmt.Fprintf(p, `<rect class="r" x="%.1f" y="%.1f" width="%.1f" height="%d" rx="4" stroke="%s"/>`+"\n", x, p.y(row)-9, w, 18, n.color)
			p.text(x+6, p.y(row)+4, "", n.text, "takes over from versions "+n.text+" in "+n.lane)
			x += w + 10
		}
	}
}

func (p *picture) legend(y float64) {
	x := float64(margin)
	item := func(mark, text string) {
		fmt.Fprintf(p, `<g transform="translate(%.1f %.1f)" stroke="#6e7781" fill="none" stroke-width="2">%s</g>`, x, y-4, mark)
		p.text(x+26, y, "g", text, "")
		x += 26 + float64(len(text))*charWidth + 18
	}
	item(`<circle cx="10" cy="0" r="6" fill="#6e7781"/><circle cx="10" cy="0" r="9"/>`, "head")
	item(`<path d="M0 0H20"/>`, "replaces")
	item(`<path class="k" d="M0 0H20"/>`, "skips")
	item(`<rect class="r" x="0" y="-8" width="20" height="16" rx="4"/>`, "skipRange")
	item(`<circle cx="10" cy="0" r="5" stroke-dasharray="2 2"/>`, "named, no entry")
}

// text writes a label. One that is too long is cut, and stands whole in its title, with the hint.
func (p *picture) text(x, y float64, class, text, hint string) {
	p.WriteString(`<text`)
	if class != "" {
		fmt.Fprintf(p, ` class="%s"`, class)
	}
	fmt.Fprintf(p, ` x="%.1f" y="%.1f">`, x, y)
	shown := clip(text)
	if shown != text {
		hint = strings.TrimSuffix(text+": "+hint, ": ")
	}
	if hint != "" {
		fmt.Fprintf(p, "<title>%s</title>", escape(hint))
	}
	p.WriteString(escape(shown) + "</text>\n")
}

func clip(s string) string {
	r := []rune(s)
	if len(r) <= maxText {
		return s
	}
	return string(r[:maxText-1]) + "…"
}

// escape writes text for XML; what XML cannot hold becomes a replacement character.
func escape(s string) string {
	var b bytes.Buffer
	// A buffer takes everything.
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}
