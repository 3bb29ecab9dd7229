package printer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Page is what describe writes: fields in aligned columns, then sections. Errors of the writer are
// kept until flush.
type Page struct {
	w      *tabwriter.Writer
	now    func() time.Time
	inRows bool // what was written last is a row of a table
}

// describedAnnotation is how much of an annotation describe shows: some hold whole documents.
const describedAnnotation = 120

// Metadata shows labels and annotations, where there are any.
func (p *Page) Metadata(m model.Metadata) {
	if len(m.Labels) > 0 {
		p.Line("Labels", Labels(m.Labels))
	}
	for _, key := range slices.Sorted(maps.Keys(m.Annotations)) {
		value := []rune(strings.Join(strings.Fields(m.Annotations[key]), " "))
		if len(value) > describedAnnotation {
			value = append(value[:describedAnnotation], '…')
		}
		p.Line("Annotation", key+"="+string(value))
	}
}

// NewPage returns a page that is written to w; now is the time from which ages are counted.
func NewPage(w io.Writer, now func() time.Time) *Page {
	return &Page{w: tabwriter.NewWriter(w, 0, 8, 2, ' ', 0), now: now}
}

// Age is how long ago a time was.
func (p *Page) Age(t time.Time) string { return Age(p.now(), t) }

// Now is the time by which ages are counted.
func (p *Page) Now() time.Time { return p.now() }

// Flush writes the page.
func (p *Page) Flush() error { return p.w.Flush() }

// Line writes a field; an empty value writes nothing.
func (p *Page) Line(name, value string) {
	if value == "" {
		return
	}
	if p.inRows { // the fields behind a table are none of its columns
		p.inRows = false
		_ = p.w.Flush() // the last one returns what went wrong
	}
	p.Printf("%s:\t%s\n", plain.Cell(name), plain.Cell(value))
}

// Section writes a heading.
func (p *Page) Section(name string) { p.Printf("%s:\n", plain.Cell(name)) }

// Row writes one row of a table.
func (p *Page) Row(cells ...string) {
	p.inRows = true
	shown := make([]string, len(cells))
	for i, c := range cells {
		shown[i] = plain.Cell(c)
	}
	p.Printf("  %s\n", strings.Join(shown, "\t"))
}

// Printf writes into the tab writer, whose first error Flush returns.
func (p *Page) Printf(format string, args ...any) {
	_, _ = io.WriteString(p.w, plain.Text(fmt.Sprintf(format, args...)))
}

// When writes a time and its age.
func (p *Page) When(name string, t time.Time) {
	if !t.IsZero() {
		p.Line(name, t.UTC().Format(time.RFC3339)+" ("+p.Age(t)+" ago)")
	}
}

// Until writes a time that may be still to come, and how far away it is.
func (p *Page) Until(name string, t time.Time) {
	away := " (" + p.Age(t) + " ago)"
	if now := p.now(); t.After(now) {
		away = " (in " + Age(t, now) + ")"
	}
	p.Line(name, t.UTC().Format(time.RFC3339)+away)
}

// Scope writes where an object is.
func (p *Page) Scope(cluster, namespace, name string) {
	p.Line("Name", name)
	p.Line("Cluster", cluster)
	p.Line("Namespace", namespace)
}

// Conditions writes conditions as a table.
func (p *Page) Conditions(list []model.Condition) {
	if len(list) == 0 {
		return
	}
	p.Section("Conditions")
	p.Row("TYPE", "STATUS", "REASON", "AGE", "MESSAGE")
	for _, c := range list {
		p.Row(c.Type, c.Status, c.Reason, p.Age(c.Since), c.Message)
	}
}

// Document writes JSON indented, below its section.
func (p *Page) Document(name string, raw json.RawMessage) {
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "  ", "  "); err != nil {
		return // the server sent it; describe shows what can be shown
	}
	p.Section(name)
	p.Printf("  %s\n", b.String())
}
