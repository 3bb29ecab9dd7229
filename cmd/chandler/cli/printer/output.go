// Package printer writes what commands show: tables and documents, descriptions in columns, and wrapped text. On a
// terminal it makes control characters visible.
package printer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
	"github.com/chandler-fleet/chandler/libs/events"
)

// DocumentFlag is --output of what has no table.
func DocumentFlag(c *cobra.Command, o *Output) {
	c.Flags().StringVarP(&o.Format, "output", "o", "", "json or yaml")
}

// CheckDocument refuses formats of which a document has none.
func CheckDocument(o Output) error {
	if o.Format != FormatTable && o.Format != FormatJSON && o.Format != FormatYAML {
		return command.Usagef("output format %q: want json or yaml", o.Format)
	}
	return nil
}

// Formats of --output.
const (
	FormatTable = ""
	FormatWide  = "wide"
	FormatJSON  = "json"
	FormatYAML  = "yaml"
	FormatName  = "name"
)

// Output is how a command writes things.
type Output struct {
	Format    string
	noHeaders bool
}

// Flags registers --output and --no-headers. An unknown format is refused before the command runs.
func (o *Output) Flags(c *cobra.Command) {
	c.PreRunE = func(*cobra.Command, []string) error { return o.Check() }
	c.Flags().StringVarP(&o.Format, "output", "o", "", "json, yaml, wide or name")
	c.Flags().BoolVar(&o.noHeaders, "no-headers", false, "leave out the line of column names")
}

// Check refuses an unknown format.
func (o *Output) Check() error {
	switch o.Format {
	case FormatTable, FormatWide, FormatJSON, FormatYAML, FormatName:
		return nil
	}
	return command.Usagef("output format %q: want json, yaml, wide or name", o.Format)
}

// Machine says whether the format is for programs, which read no sentences.
func (o *Output) Machine() bool {
	return o.Format == FormatJSON || o.Format == FormatYAML || o.Format == FormatName
}

// Document says whether things are written whole.
func (o *Output) Document() bool { return o.Format == FormatJSON || o.Format == FormatYAML }

// Column is one column of a table; a wide one shows only with -o wide.
type Column struct {
	Name string
	Wide bool
}

// Item is one thing that can be shown.
type Item struct {
	kind  string // of documents that can be applied again; "" for other answers
	Name  string // kind/key, as delete and describe take it
	Value any    // the API's own shape
	Cells []any  // one for each column
	// describe writes it for people to read.
	Describe func(p *Page)
	// subject is the subject of its events, and stream the kind of their streams: a cluster and a catalog may have one
	// name.
	Subject string
	Stream  events.Kind
}

// Write writes items in the chosen format. A single thing that was asked for by name stands alone in
// JSON and YAML, a list under "items".
func (o *Output) Write(w io.Writer, columns []Column, items []Item, single bool) error {
	switch o.Format {
	case FormatName:
		var b strings.Builder
		for _, i := range items {
			b.WriteString(plain.Cell(i.Name) + "\n")
		}
		_, err := io.WriteString(w, b.String())
		return err
	case FormatJSON, FormatYAML:
		return o.writeDocument(w, items, single)
	default:
		return o.writeTable(w, columns, items)
	}
}

func (o *Output) writeDocument(w io.Writer, items []Item, single bool) error {
	values := make([]any, len(items))
	var document any = map[string]any{"items": values}
	for i := range items {
		values[i] = items[i].Value
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
	if o.Format == FormatYAML {
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
type kinded struct{ Item }

// MarshalJSON implements json.Marshaler.
func (k kinded) MarshalJSON() ([]byte, error) {
	raw, err := json.Marshal(k.Value)
	if err != nil {
		return nil, err
	}
	head := fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q`, olm.Own, k.kind)
	if rest := bytes.TrimPrefix(raw, []byte("{")); len(rest) > 1 {
		return append(append(head, ','), rest...), nil
	}
	return append(head, '}'), nil
}

func (o *Output) writeTable(w io.Writer, columns []Column, items []Item) error {
	table := &metav1.Table{}
	for _, c := range columns {
		d := metav1.TableColumnDefinition{Name: c.Name, Type: "string"}
		if c.Wide {
			d.Priority = 1
		}
		table.ColumnDefinitions = append(table.ColumnDefinitions, d)
	}
	for _, i := range items {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells(i.Cells)})
	}
	p := printers.NewTablePrinter(printers.PrintOptions{Wide: o.Format == FormatWide, NoHeaders: o.noHeaders})
	return p.PrintObj(table, w)
}

// cells are those of a row, each on one line.
func cells(in []any) []any {
	out := make([]any, len(in))
	for i, c := range in {
		out[i] = plain.Cell(fmt.Sprint(c))
	}
	return out
}

// None stands for an empty cell, as in kubectl's tables.
const None = "<none>"

// Or is s, or other where s is empty.
func Or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// Short is enough of a digest for people.
func Short(digest string) string {
	const digits = 12
	hex := strings.TrimPrefix(digest, "sha256:")
	return Or(hex[:min(digits, len(hex))], None)
}

// Labels are labels on one line.
func Labels(m map[string]string) string {
	pairs := make([]string, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, k+"="+m[k])
	}
	return Or(strings.Join(pairs, ","), None)
}

// Rows writes rows, if there are any, and sentences below. The last column shows with -o wide.
func (o *Output) Rows(w io.Writer, names []string, rows [][]any, lines []string) error {
	columns := make([]Column, len(names))
	for i, name := range names {
		columns[i] = Column{Name: name, Wide: i == len(names)-1}
	}
	items := make([]Item, len(rows))
	for i, cells := range rows {
		items[i].Cells = cells
	}
	if len(items) > 0 {
		if err := o.Write(w, columns, items, false); err != nil {
			return err
		}
	}
	for _, l := range lines {
		if _, err := fmt.Fprintln(w, plain.Cell(l)); err != nil {
			return err
		}
	}
	return nil
}

// Table is what a list of one kind of thing is written as.
type Table struct {
	Kind    string // of documents that can be applied again; "" for other answers
	Plural  string
	Columns []Column
}

// Show writes items to w. An empty table is a sentence on errw, where a person reads it but no program.
func (o *Output) Show(w, errw io.Writer, t Table, items []Item, single bool) error {
	if len(items) == 0 && (o.Format == FormatTable || o.Format == FormatWide) {
		_, err := fmt.Fprintf(errw, "No %s found.\n", t.Plural)
		return err
	}
	for i := range items {
		items[i].kind = t.Kind
	}
	if len(items) == 0 && t.Kind != "" && o.Document() { // a List that chandler apply reads, as one with items is
		return o.Write(w, t.Columns, []Item{
			{Value: map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{}}},
		}, true)
	}
	return o.Write(w, t.Columns, items, single)
}

// Items turns a list of the API into items.
func Items[T any](list []T, err error, one func(T) Item) ([]Item, error) {
	if err != nil {
		return nil, err
	}
	items := make([]Item, len(list))
	for i, v := range list {
		items[i] = one(v)
	}
	return items, nil
}

// List writes a list of the API as a table, with one row for each value; err is the error of the call that returned it.
func List[T any](a *command.Env, o *Output, t Table, list []T, err error, one func(T) Item) error {
	items, err := Items(list, err, one)
	if err != nil {
		return err
	}
	return o.Show(a.Out, a.Err, t, items, false)
}

// Columns are columns that are always shown.
func Columns(names ...string) []Column {
	out := make([]Column, len(names))
	for i, name := range names {
		out[i].Name = name
	}
	return out
}

// OneItem turns one answer of the API into an item.
func OneItem[T any](v T, err error, show func(T) Item) (Item, error) {
	if err != nil {
		return Item{}, err
	}
	return show(v), nil
}
