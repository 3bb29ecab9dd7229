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
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
	"github.com/chandler-fleet/chandler/libs/events"
)

// Output is how a command writes things.
type Output struct {
	Format       string
	NoHeaders    bool
	SortBy       string
	ShowLabels   bool
	LabelColumns []string
	// Width is that of the terminal, 0 where none shows the table: then no column is left out.
	Width int

	form form // of Format, once it was read
}

// Flags registers --output, --no-headers and --sort-by. What they cannot mean is refused before the command runs.
func (o *Output) Flags(c *cobra.Command) {
	c.PreRunE = func(*cobra.Command, []string) error { return o.Check() }
	c.Flags().StringVarP(&o.Format, "output", "o", "", formatsHelp)
	c.Flags().BoolVar(&o.NoHeaders, "no-headers", false, "leave out the line of column names")
	c.Flags().StringVar(&o.SortBy, "sort-by", "", "order by this field of -o json, as a JSONPath such as .name")
	if err := c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formatNames(),
		cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag was registered twice
	}
}

// LabelFlags registers --show-labels and --label-columns.
func (o *Output) LabelFlags(c *cobra.Command) {
	c.Flags().BoolVar(&o.ShowLabels, "show-labels", false, "show all labels in the last column")
	c.Flags().StringSliceVarP(&o.LabelColumns, "label-columns", "L", nil, "show the values of these labels as columns")
}

// Machine says whether the format is for programs, which read no sentences.
func (o *Output) Machine() bool { return o.Format != FormatTable && o.Format != FormatWide }

// Document says whether things are written whole.
func (o *Output) Document() bool { return o.Machine() && o.Format != FormatName }

// Column is one column of a table; a wide one shows only with -o wide.
type Column struct {
	Name string
	Wide bool
	// Cut is what may be left out where a terminal is too narrow: the column with the greatest number goes first, one
	// with 0 never.
	Cut int
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
	if err := o.Check(); err != nil {
		return err
	}
	items, err := o.sorted(items)
	if err != nil {
		return err
	}
	switch {
	case o.Format == FormatName:
		var b strings.Builder
		for _, i := range items {
			b.WriteString(plain.Cell(i.Name) + "\n")
		}
		_, err := io.WriteString(w, b.String())
		return err
	case o.form.columns != nil:
		return o.writeCustom(w, items)
	case o.Document():
		return o.writeDocument(w, items, single)
	default:
		return o.writeTable(w, columns, items)
	}
}

func (o *Output) writeDocument(w io.Writer, items []Item, single bool) error {
	values := make([]any, len(items))
	var document any = map[string]any{"items": values}
	for i := range items {
		values[i] = items[i].document()
		if items[i].kind != "" {
			document = map[string]any{"apiVersion": "v1", "kind": "List", "items": values}
		}
	}
	if single && len(values) == 1 {
		document = values[0]
	}
	return o.writeValue(w, document)
}

// writeValue writes one document.
func (o *Output) writeValue(w io.Writer, document any) error {
	if o.form.template != nil {
		return o.writeTemplate(w, document)
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

// document is what JSON and YAML show of an item.
func (i Item) document() any {
	if i.kind == "" {
		return i.Value
	}
	return kinded{i}
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
func (o *Output) Rows(a *command.Env, names []string, rows [][]any, lines []string) error {
	columns := make([]Column, len(names))
	for i, name := range names {
		columns[i] = Column{Name: name, Wide: i == len(names)-1}
	}
	items := make([]Item, len(rows))
	for i, cells := range rows {
		items[i].Cells = cells
	}
	if len(items) > 0 {
		if err := o.Write(a.Out, columns, items, false); err != nil {
			return err
		}
	}
	for _, l := range lines {
		if _, err := fmt.Fprintln(a.Out, plain.Cell(l)); err != nil {
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

// Listed are things of one kind, and the table that they are written as.
type Listed struct {
	Table

	Items []Item
}

// Show writes items. An empty table is a sentence on standard error, where a person reads it but no program.
func (o *Output) Show(a *command.Env, t Table, items []Item, single bool) error {
	return o.ShowAll(a, []Listed{{t, items}}, single)
}

// ShowAll writes things of several kinds: a table for each kind that has some, or one document.
func (o *Output) ShowAll(a *command.Env, lists []Listed, single bool) error {
	o.Width = a.Columns
	var all []Item
	var missing []string
	documents := false // of kinds that can be applied again
	for _, l := range lists {
		for i := range l.Items {
			l.Items[i].kind = l.Kind
		}
		all = append(all, l.Items...)
		missing = append(missing, l.Plural)
		documents = documents || l.Kind != ""
	}
	if len(all) == 0 && !o.Machine() {
		_, err := fmt.Fprintf(a.Err, "No %s found.\n", strings.Join(missing, ", "))
		return err
	}
	if len(all) == 0 && documents && o.Document() { // a List that chandler apply reads, as one with items is
		all = []Item{{Value: map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{}}}}
		single = true
	}
	if o.Machine() {
		return o.Write(a.Out, nil, all, single)
	}
	return o.tables(a.Out, lists)
}

// tables writes a table for each kind; where there are several, names have their kinds.
func (o *Output) tables(w io.Writer, lists []Listed) error {
	lists = slices.DeleteFunc(slices.Clone(lists), func(l Listed) bool { return len(l.Items) == 0 })
	for i, l := range lists {
		if i > 0 && !o.NoHeaders {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		items := l.Items
		if len(lists) > 1 {
			items = withKinds(l)
		}
		if err := o.Write(w, l.Columns, items, false); err != nil {
			return err
		}
	}
	return nil
}

// withKinds puts the kind before each name.
func withKinds(l Listed) []Item {
	at := slices.IndexFunc(l.Columns, func(c Column) bool { return c.Name == "Name" })
	out := slices.Clone(l.Items)
	for i := range out {
		if kind, _, found := strings.Cut(out[i].Name, "/"); at >= 0 && found {
			out[i].Cells = slices.Clone(out[i].Cells)
			out[i].Cells[at] = kind + "/" + fmt.Sprint(out[i].Cells[at])
		}
	}
	return out
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
	return o.Show(a, t, items, false)
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

// WithChange adds what became of an object: a column before the others, or the form in which watches of Kubernetes have
// it.
func WithChange(t Table, i Item, change string, document bool) (Table, Item) {
	if document {
		i.kind = t.Kind
		i.Value = map[string]any{"type": change, "object": i.document()}
		t.Kind = ""
		return t, i
	}
	t.Columns = append([]Column{{Name: "Event"}}, t.Columns...)
	i.Cells = append([]any{change}, i.Cells...)
	return t, i
}

// YAML is an item as -o yaml writes it alone, which chandler apply reads again.
func YAML(t Table, i Item) ([]byte, error) {
	i.kind = t.Kind
	var b bytes.Buffer
	o := Output{Format: FormatYAML}
	err := o.writeValue(&b, i.document())
	return b.Bytes(), err
}
