package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"os"
	"strings"
	"time"
)

// recording is what the scenes wrote, to be drawn. A nil recording takes nothing.
type recording struct{ scenes []recorded }

// recorded is one scene: its title, and its lines in order.
type recorded struct {
	title string
	lines []recordedLine
}

type recordedLine struct {
	text    string
	command bool // a person would have typed it
}

func (r *recording) title(text string) {
	if r != nil {
		r.scenes = append(r.scenes, recorded{title: text})
	}
}

func (r *recording) text(text string)    { r.add(recordedLine{text: text}) }
func (r *recording) command(text string) { r.add(recordedLine{text: text, command: true}) }

// add leaves out what comes before the first scene: how long a machine compiled is not part of the play.
func (r *recording) add(line recordedLine) {
	if r == nil || len(r.scenes) == 0 {
		return
	}
	last := &r.scenes[len(r.scenes)-1]
	last.lines = append(last.lines, line)
}

// Measures of the drawing, in pixels where nothing else is said.
const (
	columns    = 120 // letters in a line
	rows       = 34  // lines on a page
	letter     = 7.5
	lineHeight = 17
	padding    = 16
	header     = 34

	// How long a page stands: as long as it takes to read.
	perPage = 1500 * time.Millisecond
	perLine = 170 * time.Millisecond
)

// page is what is seen at one time: a scene, or as much of it as fits.
type page struct {
	title string
	lines []recordedLine
}

// pages begin with each scene; a longer scene goes on in the next page.
func (r *recording) pages() []page {
	var all []page
	for _, scene := range r.scenes {
		var lines []recordedLine
		for _, line := range scene.lines {
			lines = append(lines, wrap(line)...)
		}
		title := scene.title
		for len(lines) > rows {
			all = append(all, page{title, lines[:rows]})
			lines = lines[rows:]
			title = scene.title + " (goes on)"
		}
		all = append(all, page{title, lines})
	}
	return all
}

// wrap breaks a line as a terminal of this width does.
func wrap(line recordedLine) []recordedLine {
	runes := []rune(line.text)
	parts := []recordedLine{{text: string(runes[:min(len(runes), columns)]), command: line.command}}
	for rest := runes[min(len(runes), columns):]; len(rest) > 0; rest = rest[min(len(rest), columns):] {
		parts = append(parts, recordedLine{text: string(rest[:min(len(rest), columns)]), command: line.command})
	}
	return parts
}

// write draws the recording into a file.
func (r *recording) write(file string) error {
	svg, err := r.draw()
	if err != nil {
		return err
	}
	return os.WriteFile(file, svg, 0o644)
}

// draw makes one page visible after the other, in a frame with a background of its own, so that it can be read on light
// and dark pages alike. Where nothing moves, the first page is seen.
func (r *recording) draw() ([]byte, error) {
	pages := r.pages()
	var whole time.Duration
	starts := make([]time.Duration, len(pages))
	for i, p := range pages {
		starts[i] = whole
		whole += perPage + time.Duration(len(p.lines))*perLine
	}
	const width, height = columns*letter + 2*padding, header + rows*lineHeight + 2*padding
	var out bytes.Buffer
	fmt.Fprintf(&out,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]g %[2]d" width="%[1]g" height="%[2]d" role="img" aria-label="A recording of make demo">`+"\n",
		float64(width), height)
	out.WriteString("<style>\n" + style)
	for i := range pages {
		from, to := percent(starts[i], whole), 100.0
		if i+1 < len(pages) {
			to = percent(starts[i+1], whole)
		}
		if i == 0 {
			fmt.Fprintf(&out, "@keyframes p0{0%%{visibility:visible}%.3f%%,100%%{visibility:hidden}}\n", to)
		} else {
			fmt.Fprintf(&out,
				"@keyframes p%d{0%%{visibility:hidden}%.3f%%{visibility:visible}%.3f%%,100%%{visibility:hidden}}\n", i,
				from, to)
		}
	}
	out.WriteString("</style>\n")
	fmt.Fprintf(&out, `<rect class="frame" x="1" y="1" width="%g" height="%d" rx="8"/>`+"\n", float64(width)-2,
		height-2)
	for i, p := range pages {
		if err := p.draw(&out, i, len(pages), whole); err != nil {
			return nil, err
		}
	}
	out.WriteString("</svg>\n")
	return out.Bytes(), nil
}

// style has the colours of a dark terminal. Contrast of every one of them on the frame is above 7 to 1.
const style = `.frame{fill:#0d1117;stroke:#6e7681}
text{font:12.5px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d1d7e0;white-space:pre}
.t{fill:#ffffff;font-weight:bold}
.c{fill:#79c0ff}
.n{fill:#9ea7b3}
.page{visibility:hidden}
.first{visibility:visible}
`

func (p page) draw(out *bytes.Buffer, number, of int, whole time.Duration) error {
	class := "page"
	if number == 0 {
		class += " first"
	}
	fmt.Fprintf(out, `<g class="%s" style="animation:p%d %gs step-end infinite">`+"\n", class, number, whole.Seconds())
	if err := drawText(out, "t", padding, padding+lineHeight-4, p.title); err != nil {
		return err
	}
	if err := drawText(out, "n", columns*letter-padding, padding+lineHeight-4,
		fmt.Sprintf("%d/%d", number+1, of)); err != nil {
		return err
	}
	for i, line := range p.lines {
		class := ""
		if line.command {
			class = "c"
		}
		if line.text == "" {
			continue
		}
		if err := drawText(out, class, padding, float64(header+padding+(i+1)*lineHeight-4), line.text); err != nil {
			return err
		}
	}
	out.WriteString("</g>\n")
	return nil
}

func drawText(out *bytes.Buffer, class string, x, y float64, text string) error {
	if class != "" {
		class = ` class="` + class + `"`
	}
	fmt.Fprintf(out, `<text%s x="%g" y="%g" xml:space="preserve">`, class, x, y)
	if err := xml.EscapeText(out, []byte(strings.ReplaceAll(text, "\t", "    "))); err != nil {
		return err
	}
	out.WriteString("</text>\n")
	return nil
}

// percent is how far into the whole something begins.
func percent(at, whole time.Duration) float64 { return 100 * float64(at) / float64(whole) }
