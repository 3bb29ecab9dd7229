package readmodel

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Type is how the values of a column are written in cursors and selectors.
type Type int

// The types.
const (
	Text Type = iota
	Time
	Number
	Bool
)

// Column is a column of a list, or an expression over its columns; it is never null.
type Column struct {
	SQL  string
	Type Type
}

// Listing is how a collection with rows of type T is listed: what it is sorted by, and where a page begins.
type Listing[T any] struct {
	// Key are columns that no two rows have the same, by which rows are sorted where nothing else is asked for, and
	// within what they have in common.
	Key   []Column
	KeyOf func(T) []string
	// Newest says that the key goes down.
	Newest bool
	// Cluster is the column that names the cluster.
	Cluster string
	Sorts   map[string]Sort[T]
	// Fields are those that a field selector knows, by their paths in answers.
	Fields map[string]Column
}

// Sort is a column to sort by.
type Sort[T any] struct {
	Column

	Of func(T) string
}

// At writes a time as cursors have it, as exactly as the database keeps it.
func At(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// Narrow adds what every list is chosen by, and where the page begins.
func (l Listing[T]) Narrow(w *Where, who model.Caller, c model.Choice, after []string) error {
	if err := l.Select(w, c.FieldSelector); err != nil {
		return err
	}
	if err := w.Clusters(l.Cluster, c.ClusterSelector, who); err != nil {
		return err
	}
	return l.After(w, c.Sort, after)
}

// order is what rows are sorted by.
func (l Listing[T]) order(sort string) (columns []Column, down bool) {
	if sort == "" {
		return l.Key, l.Newest
	}
	name, down := strings.CutPrefix(sort, "-")
	return append([]Column{l.Sorts[name].Column}, l.Key...), down
}

// OrderBy is the order in SQL.
func (l Listing[T]) OrderBy(sort string) string {
	columns, down := l.order(sort)
	terms := make([]string, len(columns))
	for i, c := range columns {
		terms[i] = c.SQL
		if down {
			terms[i] += " desc"
		}
	}
	return strings.Join(terms, ", ")
}

// Next is the cursor behind a row. It names the order, so that a page of another one is not begun with it.
func (l Listing[T]) Next(sort string, last T) []string {
	if sort == "" {
		return l.KeyOf(last)
	}
	return append([]string{sort, l.Sorts[strings.TrimPrefix(sort, "-")].Of(last)}, l.KeyOf(last)...)
}

// After continues behind the last row of the page before. What changes while pages are read keeps its place among the
// others by what it is then: in an order by changes it may be seen twice, and nothing that stays is missed.
func (l Listing[T]) After(w *Where, sort string, after []string) error {
	if len(after) == 0 {
		return nil
	}
	if sort != "" {
		if after[0] != sort {
			return ForeignCursor()
		}
		after = after[1:]
	}
	columns, down := l.order(sort)
	if len(after) != len(columns) {
		return ForeignCursor()
	}
	names, marks, args := make([]string, len(columns)), make([]string, len(columns)), make([]any, len(columns))
	for i, c := range columns {
		v, ok := c.value(after[i])
		if !ok {
			return ForeignCursor()
		}
		names[i], marks[i], args[i] = c.SQL, "?", v
	}
	compare := " > "
	if down {
		compare = " < "
	}
	w.Add("("+strings.Join(names, ", ")+")"+compare+"("+strings.Join(marks, ", ")+")", args...)
	return nil
}

// value reads a value of the column.
func (c Column) value(text string) (v any, ok bool) {
	var err error
	switch c.Type {
	case Time:
		v, err = time.Parse(time.RFC3339Nano, text)
	case Number:
		v, err = strconv.ParseInt(text, 10, 64)
	case Bool:
		v, ok = text == "true", text == "true" || text == "false"
		return v, ok
	default:
		v = text
	}
	return v, err == nil
}

// Select wants the fields of a list to be those that a field selector of Kubernetes chooses, such as
// status.phase=Failed,metadata.namespace!=x. "" chooses all.
func (l Listing[T]) Select(w *Where, selector string) error {
	terms, err := parseFields(selector)
	if err != nil {
		return err
	}
	for _, t := range terms {
		c, known := l.Fields[t.field]
		if !known {
			return badField("no field %q is known to the field selector of this list: use one of %s", t.field,
				strings.Join(sortedKeys(l.Fields), ", "))
		}
		v, ok := c.value(t.value)
		if !ok {
			return badField("field %s is true or false, and not %q", t.field, t.value)
		}
		compare := " = ?"
		if t.not {
			compare = " <> ?"
		}
		w.Add(c.SQL+compare, v)
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func badField(format string, args ...any) error {
	return errs.New(errs.Invalid, format, args...).At("query.fieldSelector", "field-selector")
}
