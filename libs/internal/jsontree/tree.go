// Package jsontree holds one JSON document as text and as a tree at once: the text with its keys in the
// order of the source, and for every value where it stands in that text and where it stood in the source.
// So a part of a document is had as JSON without writing it again, a finding can name line and column, and
// what is in canonical order already is copied as it is.
//
// A Builder makes trees, from JSON text here and from YAML in libs/catalog/internal/docs. It writes strings
// with the escapes of RFC 8785 alone, so that equal strings are equal bytes.
//
// The canonical form is RFC 8785 with one difference: integers that 64 bits hold stay digit for digit,
// where the RFC rounds those beyond 2^53. Manifests bring such numbers (9223372036854775807 is a usual
// maximum), and a cluster reads them exactly.
package jsontree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Kind is what a value is.
type Kind uint8

// The kinds.
const (
	Nothing Kind = iota // of the zero Value
	Null
	Bool
	Number
	String
	Array
	Object
)

// Tree is one document. The zero Tree holds nothing.
type Tree struct {
	json     []byte
	nodes    []node
	faults   []*Error
	doubtful bool
}

// node is one value or one key. A container is followed by what it holds, a key by its value.
type node struct {
	from, to     uint32 // in Tree.json
	next         uint32 // index of the node behind the subtree
	line, column uint32 // in the source, from 1
	kind         Kind
	canonical    bool // its text is in canonical form
}

// Error is what is wrong with a document, and where.
type Error struct {
	Line, Column int
	Limit        string // name of the limit that was met, else empty
	Message      string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Text()) }

// Text is the message with the name of the limit, for those who tell the place in another way.
func (e *Error) Text() string {
	if e.Limit == "" {
		return e.Message
	}
	return e.Message + " (limit " + e.Limit + ")"
}

// IsLimit reports a bound that was met, rather than a document that is not well formed, or a fault.
func (e *Error) IsLimit() bool {
	return e.Limit != "" && e.Limit != LimitKeys && e.Limit != LimitNumbers
}

// The names of what a document that can be read may break all the same.
const (
	LimitKeys    = "duplicate-key"
	LimitNumbers = "number-range"
)

// Faults are keys that occur twice and numbers that no reader holds. The rest of the document can be
// looked at, so that a finding can tell what it belongs to; it must not be used.
func (t *Tree) Faults() []*Error { return t.faults }

// Doubtful reports what Builder.Doubt noted.
func (t *Tree) Doubtful() bool { return t.doubtful }

// Root is the whole document, the zero Value where there is none.
func (t *Tree) Root() Value {
	if len(t.nodes) == 0 {
		return Value{}
	}
	return Value{t: t}
}

// Value is one value of a tree. The zero Value is nothing: nothing is in it.
type Value struct {
	t *Tree
	i uint32
}

func (v Value) node() *node { return &v.t.nodes[v.i] }

// Kind is Nothing for the zero Value.
func (v Value) Kind() Kind {
	if v.t == nil {
		return Nothing
	}
	return v.node().kind
}

// Exists reports whether there is a value.
func (v Value) Exists() bool { return v.t != nil }

// Line is where the value begins, from 1.
func (v Value) Line() int { return int(v.node().line) }

// Column is where the value begins in its line, in characters from 1.
func (v Value) Column() int { return int(v.node().column) }

// JSON is the text of the value, its keys in the order of the source. It belongs to the tree.
func (v Value) JSON() json.RawMessage {
	n := v.node()
	return json.RawMessage(v.t.json[n.from:n.to:n.to])
}

// Text is the content of a string, empty for anything else.
func (v Value) Text() string {
	if v.Kind() != String {
		return ""
	}
	return unquote(v.JSON())
}

// Plain is the content of a string that has no escapes, without a copy; ok is false for others.
func (v Value) Plain() (text []byte, ok bool) {
	if v.Kind() != String {
		return nil, false
	}
	raw := v.JSON()
	raw = raw[1 : len(raw)-1]
	return raw, bytes.IndexByte(raw, '\\') < 0
}

// unquote returns what a JSON string of ours says.
func unquote(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return string(inner) // cannot be: a builder wrote it
	}
	return s
}

// Items are the elements of an array; nothing for anything else.
func (v Value) Items() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.Kind() != Array {
			return
		}
		for i := v.i + 1; i < v.node().next; i = v.t.nodes[i].next {
			if !yield(Value{v.t, i}) {
				return
			}
		}
	}
}

// Members are keys and values of an object, in the order of the source; nothing for anything else.
func (v Value) Members() iter.Seq2[Value, Value] {
	return func(yield func(Value, Value) bool) {
		if v.Kind() != Object {
			return
		}
		for i := v.i + 1; i < v.node().next; i = v.t.nodes[i+1].next {
			if !yield(Value{v.t, i}, Value{v.t, i + 1}) {
				return
			}
		}
	}
}

// Child is the value of a key as Go's JSON decoder finds it: exactly so, else in any case.
func (v Value) Child(key string) Value {
	var loose Value
	for k, c := range v.Members() {
		raw, ok := k.Plain()
		switch {
		case !ok:
		case string(raw) == key:
			return c
		case !loose.Exists() && strings.EqualFold(string(raw), key):
			loose = c
		}
	}
	return loose
}

// Canonical returns the value in canonical form. It may share memory with the tree.
func (v Value) Canonical() json.RawMessage {
	if n := v.node(); n.canonical {
		return v.JSON()
	}
	n := v.node()
	return v.AppendCanonical(make([]byte, 0, n.to-n.from))
}

// AppendCanonical appends the canonical form to b.
func (v Value) AppendCanonical(b []byte) []byte {
	n := v.node()
	switch {
	case n.canonical:
		return append(b, v.t.json[n.from:n.to]...)
	case n.kind == Object:
		return v.appendObject(b)
	case n.kind == Array:
		b = append(b, '[')
		for c := range v.Items() {
			b = append(c.AppendCanonical(b), ',')
		}
		b[len(b)-1] = ']' // it is not empty, or it would be canonical
		return b
	default:
		return appendNumber(b, string(v.t.json[n.from:n.to]))
	}
}

func (v Value) appendObject(b []byte) []byte {
	var few [16]uint32
	keys := few[:0]
	for i := v.i + 1; i < v.node().next; i = v.t.nodes[i+1].next {
		keys = append(keys, i)
	}
	slices.SortFunc(keys, func(x, y uint32) int { return compareKeys(v.t.quoted(x), v.t.quoted(y)) })
	b = append(b, '{')
	for _, k := range keys {
		b = append(append(b, v.t.quoted(k)...), ':')
		b = append(Value{v.t, k + 1}.AppendCanonical(b), ',')
	}
	b[len(b)-1] = '}'
	return b
}

func (t *Tree) quoted(i uint32) []byte { return t.json[t.nodes[i].from:t.nodes[i].to] }

// Move changes all places, of values and of faults.
func (t *Tree) Move(to func(line, column int) (int, int)) {
	for i := range t.nodes {
		n := &t.nodes[i]
		line, column := to(int(n.line), int(n.column))
		n.line, n.column = uint32(line), uint32(column)
	}
	for _, f := range t.faults {
		f.Line, f.Column = to(f.Line, f.Column)
	}
}
