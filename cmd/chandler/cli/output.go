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

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Formats of --output.
const (
	formatTable = ""
	formatWide  = "wide"
	formatJSON  = "json"
	formatYAML  = "yaml"
	formatName  = "name"
)

// output is how a command writes things.
type output struct {
	format    string
	noHeaders bool
}

func (o *output) flags(c *cobra.Command) {
	c.Flags().StringVarP(&o.format, "output", "o", "", "json, yaml, wide or name")
	c.Flags().BoolVar(&o.noHeaders, "no-headers", false, "leave out the line of column names")
}

func (o *output) check() error {
	switch o.format {
	case formatTable, formatWide, formatJSON, formatYAML, formatName:
		return nil
	}
	return usagef("output format %q: want json, yaml, wide or name", o.format)
}

// machine says whether the format is for programs, which read no sentences.
func (o *output) machine() bool {
	return o.format == formatJSON || o.format == formatYAML || o.format == formatName
}

// document says whether things are written whole.
func (o *output) document() bool { return o.format == formatJSON || o.format == formatYAML }

// column is one column of a table; a wide one shows only with -o wide.
type column struct {
	name string
	wide bool
}

// item is one thing that can be shown.
type item struct {
	kind  string // of documents that can be applied again; "" for other answers
	name  string // kind/key, as delete and describe take it
	value any    // the API's own shape
	cells []any  // one for each column
	// describe writes it for people to read.
	describe func(p *page)
	// subject is the subject of its events, and stream the kind of their streams: a cluster and a catalog may have one name.
	subject string
	stream  events.Kind
}

// write writes items in the chosen format. A single thing that was asked for by name stands alone in
// JSON and YAML, a list under "items".
func (o *output) write(w io.Writer, columns []column, items []item, single bool) error {
	switch o.format {
	case formatName:
		var b strings.Builder
		for _, i := range items {
			b.WriteString(i.name + "\n")
		}
		_, err := io.WriteString(w, b.String())
		return err
	case formatJSON, formatYAML:
		return o.writeDocument(w, items, single)
	default:
		return o.writeTable(w, columns, items)
	}
}

func (o *output) writeDocument(w io.Writer, items []item, single bool) error {
	values := make([]any, len(items))
	var document any = map[string]any{"items": values}
	for i := range items {
		values[i] = items[i].value
		if items[i].kind != "" {
			values[i] = kinded{items[i]}
			document = map[string]any{"apiVersion": "v1", "kind": "List", "items": values}
		}
	}
	if single && len(values) == 1 {
		document = values[0]
	}
	raw, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	if o.format == formatYAML {
		if raw, err = yaml.JSONToYAML(raw); err != nil {
			return err
		}
		_, err = w.Write(raw)
		return err
	}
	_, err = w.Write(append(raw, '\n'))
	return err
}

// kinded writes the API's own shape with the apiVersion and kind by which chandler apply reads it again.
type kinded struct{ item }

// MarshalJSON implements json.Marshaler.
func (k kinded) MarshalJSON() ([]byte, error) {
	raw, err := json.Marshal(k.value)
	if err != nil {
		return nil, err
	}
	head := fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q`, olm.Own, k.kind)
	if rest := bytes.TrimPrefix(raw, []byte("{")); len(rest) > 1 {
		return append(append(head, ','), rest...), nil
	}
	return append(head, '}'), nil
}

func (o *output) writeTable(w io.Writer, columns []column, items []item) error {
	table := &metav1.Table{}
	for _, c := range columns {
		d := metav1.TableColumnDefinition{Name: c.name, Type: "string"}
		if c.wide {
			d.Priority = 1
		}
		table.ColumnDefinitions = append(table.ColumnDefinitions, d)
	}
	for _, i := range items {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: i.cells})
	}
	p := printers.NewTablePrinter(printers.PrintOptions{Wide: o.format == formatWide, NoHeaders: o.noHeaders})
	return p.PrintObj(table, w)
}

// age is how kubectl writes how long ago something was.
func (a *app) age(t time.Time) string {
	if t.IsZero() {
		return none
	}
	return duration.HumanDuration(a.Now().Sub(t))
}

// none stands for an empty cell, as in kubectl's tables.
const none = "<none>"

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// short is enough of a digest for people.
func short(digest string) string {
	const digits = 12
	hex := strings.TrimPrefix(digest, "sha256:")
	return or(hex[:min(digits, len(hex))], none)
}

// page is what describe writes: fields in aligned columns, then sections. Errors of the writer are
// kept until flush.
type page struct {
	w      *tabwriter.Writer
	age    func(time.Time) string
	inRows bool // what was written last is a row of a table
}

func (a *app) page(w io.Writer) *page {
	return &page{w: tabwriter.NewWriter(w, 0, 8, 2, ' ', 0), age: a.age}
}

func (p *page) flush() error { return p.w.Flush() }

// line writes a field; an empty value writes nothing.
func (p *page) line(name, value string) {
	if value == "" {
		return
	}
	if p.inRows { // the fields behind a table are none of its columns
		p.inRows = false
		_ = p.w.Flush() // the last one returns what went wrong
	}
	p.printf("%s:\t%s\n", name, value)
}

func (p *page) section(name string) { p.printf("%s:\n", name) }

func (p *page) row(cells ...string) {
	p.inRows = true
	p.printf("  %s\n", strings.Join(cells, "\t"))
}

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

// table writes rows, unless there are none, and sentences below. The last column shows with -o wide.
func (a *app) table(o output, names []string, rows [][]any, lines []string) error {
	columns := make([]column, len(names))
	for i, name := range names {
		columns[i] = column{name: name, wide: i == len(names)-1}
	}
	items := make([]item, len(rows))
	for i, cells := range rows {
		items[i].cells = cells
	}
	if len(items) > 0 {
		if err := o.write(a.Out, columns, items, false); err != nil {
			return err
		}
	}
	for _, l := range lines {
		if err := a.say("%s", l); err != nil {
			return err
		}
	}
	return nil
}
