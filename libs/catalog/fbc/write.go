package fbc

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Format is how documents are written.
type Format string

// The formats (R-CAT-3).
const (
	JSON Format = "json" // objects one after the other
	YAML Format = "yaml" // documents, each begun by "---"
)

// ParseFormat reads the name of a format.
func ParseFormat(s string) (Format, error) {
	switch f := Format(s); f {
	case JSON, YAML:
		return f, nil
	}
	return "", errs.New(errs.Invalid, "format %q is not known; use json or yaml", s)
}

// Write writes documents in order, until the first error of seq or w.
func Write(w io.Writer, f Format, seq iter.Seq2[Blob, error]) error {
	out := NewWriter(w, f)
	for b, err := range seq {
		if err != nil {
			return err
		}
		if err := out.Write(b); err != nil {
			return err
		}
	}
	return out.Flush()
}

// All are blobs as a sequence.
func All(blobs []Blob) iter.Seq2[Blob, error] {
	return func(yield func(Blob, error) bool) {
		for _, b := range blobs {
			if !yield(b, nil) {
				return
			}
		}
	}
}

// Writer writes documents one by one.
type Writer struct {
	out    *bufio.Writer
	format Format
	buf    bytes.Buffer
}

// writeBuffer is large enough that small documents share a system call.
const writeBuffer = 64 << 10

// NewWriter returns a writer to w; Flush ends it.
func NewWriter(w io.Writer, f Format) *Writer {
	return &Writer{out: bufio.NewWriterSize(w, writeBuffer), format: f}
}

// Write writes one document.
func (w *Writer) Write(b Blob) error {
	t, err := parse(b.Raw)
	if err != nil {
		return err
	}
	if t.kind != '{' {
		return errs.New(errs.Invalid, "%s must be an object", b).At("", "R-CAT-6")
	}
	if known(b.Schema) {
		t.order(true)
	}
	w.buf.Reset()
	if w.format == YAML {
		w.buf.WriteString("---\n")
		yamlWriter{&w.buf}.mapping(t, 0)
	} else {
		jsonWriter{&w.buf}.value(t, 0)
		w.buf.WriteByte('\n')
	}
	_, err = w.out.Write(w.buf.Bytes())
	return err
}

// Flush hands on what was buffered.
func (w *Writer) Flush() error { return w.out.Flush() }

// rank puts what identifies a document, or an entry of a list, before what it says.
func rank(key string) int {
	if i := slices.Index([]string{"schema", "package", "name"}, key); i >= 0 {
		return i
	}
	return 3
}

// order sorts the keys of all objects. The envelope's own keys are written in lower case, which is how
// every reader knows them (R-CAT-6).
func (t *tree) order(root bool) {
	if t.kind == '{' {
		fields := make([]int, len(t.keys))
		for i := range fields {
			fields[i] = i
			if low := strings.ToLower(t.keys[i]); root && rank(low) < 3 && !slices.Contains(t.keys, low) {
				t.keys[i] = low
			}
		}
		slices.SortStableFunc(fields, func(a, b int) int {
			return cmp.Or(cmp.Compare(rank(t.keys[a]), rank(t.keys[b])), cmp.Compare(t.keys[a], t.keys[b]))
		})
		keys, items := make([]string, len(fields)), make([]tree, len(fields))
		for to, from := range fields {
			keys[to], items[to] = t.keys[from], t.items[from]
		}
		t.keys, t.items = keys, items
	}
	for i := range t.items {
		t.items[i].order(false)
	}
}

// jsonWriter writes values with two spaces for each level.
type jsonWriter struct{ out *bytes.Buffer }

func (w jsonWriter) value(t tree, level int) {
	switch t.kind {
	case '"':
		quote(w.out, t.text)
	case '{', '[':
		w.container(t, level)
	default:
		w.out.WriteString(t.text)
	}
}

func (w jsonWriter) container(t tree, level int) {
	w.out.WriteByte(t.kind)
	for i := range t.items {
		if i > 0 {
			w.out.WriteByte(',')
		}
		newline(w.out, level+1)
		if t.kind == '{' {
			quote(w.out, t.keys[i])
			w.out.WriteString(": ")
		}
		w.value(t.items[i], level+1)
	}
	if len(t.items) > 0 {
		newline(w.out, level)
	}
	w.out.WriteByte(t.kind + 2) // '}' stands two behind '{', ']' two behind '['
}

func newline(out *bytes.Buffer, level int) {
	out.WriteByte('\n')
	indent(out, level)
}

func indent(out *bytes.Buffer, level int) {
	for range level {
		out.WriteString("  ")
	}
}
