package printer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
)

// labelsColumn is the column of all labels; tables of kinds that have labels have it with -o wide.
const labelsColumn = "Labels"

func (o *Output) writeTable(w io.Writer, columns []Column, items []Item) error {
	columns, rows, err := o.table(columns, items)
	if err != nil {
		return err
	}
	cut := o.cut(columns, rows)
	table := &metav1.Table{}
	for i, c := range columns {
		if !cut[i] {
			table.ColumnDefinitions = append(table.ColumnDefinitions,
				metav1.TableColumnDefinition{Name: c.Name, Type: "string"})
		}
	}
	for _, row := range rows {
		var cells []any
		for i, cell := range row {
			if !cut[i] {
				cells = append(cells, cell)
			}
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	p := printers.NewTablePrinter(printers.PrintOptions{NoHeaders: o.NoHeaders})
	return p.PrintObj(table, w)
}

// table is what is shown: the columns of the format and of labels, and a row of cells, each on one line, for each item.
func (o *Output) table(columns []Column, items []Item) ([]Column, [][]string, error) {
	shown := func(c Column) bool {
		return (!c.Wide || o.Format == FormatWide) && (c.Name != labelsColumn || !o.ShowLabels)
	}
	own := len(columns)
	out := slices.DeleteFunc(slices.Clone(columns), func(c Column) bool { return !shown(c) })
	for _, key := range o.LabelColumns {
		out = append(out, Column{Name: key[strings.LastIndex(key, "/")+1:]})
	}
	if o.ShowLabels {
		out = append(out, Column{Name: labelsColumn})
	}
	rows := make([][]string, len(items))
	for i, item := range items {
		if len(item.Cells) != own {
			return nil, nil, fmt.Errorf("a row of %s has %d cells of %d", item.Name, len(item.Cells), own)
		}
		for j, cell := range item.Cells {
			if shown(columns[j]) {
				rows[i] = append(rows[i], plain.Cell(fmt.Sprint(cell)))
			}
		}
		if len(o.LabelColumns) == 0 && !o.ShowLabels {
			continue
		}
		labels, err := item.labels()
		if err != nil {
			return nil, nil, err
		}
		for _, key := range o.LabelColumns {
			rows[i] = append(rows[i], plain.Cell(Or(labels[key], None)))
		}
		if o.ShowLabels {
			rows[i] = append(rows[i], plain.Cell(Labels(labels)))
		}
	}
	return out, rows, nil
}

// labels are those of an object of the API; a kind without labels has none.
func (i Item) labels() (map[string]string, error) {
	raw, err := json.Marshal(i.Value)
	if err != nil {
		return nil, err
	}
	var v struct {
		Labels map[string]string `json:"labels"`
	}
	err = json.Unmarshal(raw, &v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field == "labels" {
		return nil, nil // these are no labels of an object
	}
	return v.Labels, err
}

// columnGap is what stands between two columns, and columnLeast the least width of one, as the table printer of kubectl
// has them.
const (
	columnGap   = 3
	columnLeast = 6
)

// cut chooses the columns that are left out so that a table fits the terminal, the least important first. With -o wide
// nothing is.
func (o *Output) cut(columns []Column, rows [][]string) []bool {
	out := make([]bool, len(columns))
	if o.Width == 0 || o.Format == FormatWide {
		return out
	}
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = max(columnLeast, utf8.RuneCountInString(c.Name)+columnGap)
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i])+columnGap)
		}
	}
	for {
		total, first := -columnGap, -1
		for i, c := range columns {
			if out[i] {
				continue
			}
			total += widths[i]
			if c.Cut > 0 && (first < 0 || c.Cut > columns[first].Cut) {
				first = i
			}
		}
		if total <= o.Width || first < 0 {
			return out
		}
		out[first] = true
	}
}

// customColumn is one of -o custom-columns.
type customColumn struct {
	name string
	path path
}

// readColumns reads NAME:PATH,... or, of a file, a line of names and a line of paths.
func readColumns(text string, file bool) ([]customColumn, error) {
	var names, paths []string
	if file {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if len(lines) != 2 {
			return nil, fmt.Errorf("the file has %d lines: want one with the names and one with the paths", len(lines))
		}
		names, paths = strings.Fields(lines[0]), strings.Fields(lines[1])
		if len(names) != len(paths) {
			return nil, fmt.Errorf("the file has %d names and %d paths", len(names), len(paths))
		}
	} else {
		for part := range strings.SplitSeq(text, ",") {
			name, p, found := strings.Cut(part, ":")
			if !found || name == "" || p == "" {
				return nil, fmt.Errorf("%q: want NAME:PATH, such as CLUSTER:.cluster", part)
			}
			names, paths = append(names, name), append(paths, p)
		}
	}
	out := make([]customColumn, len(names))
	for i, name := range names {
		p, err := readPath(paths[i])
		if err != nil {
			return nil, err
		}
		out[i] = customColumn{name, p}
	}
	return out, nil
}

// writeCustom writes a table of the columns that the user chose.
func (o *Output) writeCustom(w io.Writer, items []Item) error {
	columns := make([]Column, len(o.form.columns))
	for i, c := range o.form.columns {
		columns[i].Name = c.name
	}
	rows := make([]Item, len(items))
	for i, item := range items {
		v, err := asJSON(item.document())
		if err != nil {
			return err
		}
		for _, c := range o.form.columns {
			found, err := c.path.find(v)
			if err != nil {
				return err
			}
			cells := make([]string, len(found))
			for j := range found {
				cells[j] = cellText(found[j])
			}
			rows[i].Cells = append(rows[i].Cells, Or(strings.Join(cells, ","), None))
		}
	}
	table := Output{NoHeaders: o.NoHeaders}
	return table.writeTable(w, columns, rows)
}

// cellText is a value in a table: JSON, but for text.
func cellText(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
