package cli

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

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// page is what describe writes: fields in aligned columns, then sections. Errors of the writer are
// kept until flush.
type page struct {
	w   *tabwriter.Writer
	age func(time.Time) string
}

func (a *app) page(w io.Writer) *page {
	return &page{w: tabwriter.NewWriter(w, 0, 8, 2, ' ', 0), age: a.age}
}

func (p *page) flush() error { return p.w.Flush() }

// line writes a field; an empty value writes nothing.
func (p *page) line(name, value string) {
	if value != "" {
		p.printf("%s:\t%s\n", name, value)
	}
}

func (p *page) section(name string) { p.printf("%s:\n", name) }

func (p *page) row(cells ...string) { p.printf("  %s\n", strings.Join(cells, "\t")) }

// printf writes into the tab writer, whose first error Flush returns.
func (p *page) printf(format string, args ...any) { _, _ = fmt.Fprintf(p.w, format, args...) }

func (p *page) when(name string, t time.Time) {
	if !t.IsZero() {
		p.line(name, t.UTC().Format(time.RFC3339)+" ("+p.age(t)+" ago)")
	}
}

func (p *page) scope(cluster, namespace, name string) {
	p.line("Name", name)
	p.line("Cluster", cluster)
	p.line("Namespace", namespace)
}

func (p *page) conditions(list []model.Condition) {
	if len(list) == 0 {
		return
	}
	p.section("Conditions")
	p.row("TYPE", "STATUS", "REASON", "AGE", "MESSAGE")
	for _, c := range list {
		p.row(c.Type, c.Status, c.Reason, p.age(c.Since), c.Message)
	}
}

// document writes JSON indented, below its section.
func (p *page) document(name string, raw json.RawMessage) {
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "  ", "  "); err != nil {
		return // the server sent it; describe shows what can be shown
	}
	p.section(name)
	p.printf("  %s\n", b.String())
}

func labels(m map[string]string) string {
	pairs := make([]string, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, k+"="+m[k])
	}
	return or(strings.Join(pairs, ","), none)
}
