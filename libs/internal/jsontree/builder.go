package jsontree

import (
	"bytes"
	"fmt"
	"slices"
)

// Limits bound one document.
type Limits struct {
	Depth  int // of nested objects and arrays
	Values int // of the document, aliases expanded
	Bytes  int // of its JSON text, aliases expanded; at most 1 GiB
}

// maxFaults is how many faults of one document are told.
const maxFaults = 10

// Builder writes one document after the other. What it returned is valid until Reset.
type Builder struct {
	tree   Tree
	limits Limits
	left   int // values
	open   []frame
	keys   []uint32
	err    *Error
}

// frame is an object or array that is not at its end yet.
type frame struct {
	node      uint32
	lastKey   uint32
	filled    bool
	canonical bool
	sorted    bool // no key so far is before or at the one before it
}

// keepBytes is up to which size memory is kept for the next document.
const keepBytes = 2 << 20

// Reset forgets the document, and begins another one.
func (b *Builder) Reset(l Limits) {
	t := &b.tree
	if cap(t.json) > keepBytes {
		t.json = nil
	}
	const nodeBytes = 24
	if cap(t.nodes) > keepBytes/nodeBytes {
		t.nodes = nil
	}
	b.tree = Tree{json: t.json[:0], nodes: t.nodes[:0]}
	b.limits, b.left, b.open, b.err = l, l.Values, b.open[:0], nil
}

// Expect makes room for a document of about so many bytes.
func (b *Builder) Expect(n int) {
	b.tree.json = slices.Grow(b.tree.json, n)
}

// Tree is the document that was built.
func (b *Builder) Tree() *Tree { return &b.tree }

// Err is the limit that was met, nil for none. Nothing may be added after it.
func (b *Builder) Err() *Error { return b.err }

// Doubt notes that the document holds what another reader of its format may take for something else.
func (b *Builder) Doubt() { b.tree.doubtful = true }

func (b *Builder) fail(line, column int, limit, format string, args ...any) bool {
	if b.err == nil {
		b.err = &Error{Line: line, Column: column, Limit: limit, Message: fmt.Sprintf(format, args...)}
	}
	return false
}

func (b *Builder) fault(line, column int, limit, format string, args ...any) {
	if len(b.tree.faults) < maxFaults {
		b.tree.faults = append(b.tree.faults, &Error{
			Line: line, Column: column, Limit: limit,
			Message: fmt.Sprintf(format, args...),
		})
	}
}

// begin adds the node of a value, and the comma before it.
func (b *Builder) begin(kind Kind, line, column int) bool {
	b.left--
	if b.left < 0 {
		return b.fail(line, column, "nodes",
			"too many values: aliases expand without bound, or the document is too large")
	}
	if len(b.tree.json) > b.limits.Bytes {
		return b.fail(line, column, "expanded-bytes", "a document of more than %d bytes with its aliases expanded",
			b.limits.Bytes)
	}
	if n := len(b.open); n > 0 {
		f := &b.open[n-1]
		if b.tree.nodes[f.node].kind == Array {
			if f.filled {
				b.tree.json = append(b.tree.json, ',')
			}
			f.filled = true
		}
	}
	from := uint32(len(b.tree.json))
	b.tree.nodes = append(b.tree.nodes, node{
		from: from, line: uint32(line), column: uint32(column), kind: kind,
		canonical: true,
	})
	return true
}

// end completes the node of a value that holds nothing else.
func (b *Builder) end() bool {
	i := len(b.tree.nodes)
	n := &b.tree.nodes[i-1]
	n.to, n.next = uint32(len(b.tree.json)), uint32(i)
	return true
}

// Begin opens an object or an array. It returns false where a limit is met, as all that follow do.
func (b *Builder) Begin(kind Kind, line, column int) bool {
	if len(b.open) > b.limits.Depth {
		return b.fail(line, column, "depth", "values nested more than %d deep", b.limits.Depth)
	}
	if !b.begin(kind, line, column) {
		return false
	}
	c := byte('{')
	if kind == Array {
		c = '['
	}
	b.tree.json = append(b.tree.json, c)
	b.open = append(b.open, frame{node: uint32(len(b.tree.nodes) - 1), canonical: true, sorted: true})
	return true
}

// End closes what Begin opened last.
func (b *Builder) End() bool {
	last := len(b.open) - 1
	f := b.open[last]
	b.open = b.open[:last]
	n := &b.tree.nodes[f.node]
	if n.kind == Object {
		b.tree.json = append(b.tree.json, '}')
		b.checkKeys(f)
	} else {
		b.tree.json = append(b.tree.json, ']')
	}
	n.to, n.next = uint32(len(b.tree.json)), uint32(len(b.tree.nodes))
	n.canonical = f.canonical && f.sorted
	if !n.canonical && last > 0 {
		b.open[last-1].canonical = false
	}
	return true
}

// checkKeys finds keys that occur twice.
func (b *Builder) checkKeys(f frame) {
	if f.sorted {
		return
	}
	var twice uint32
	if twice, b.keys = b.tree.duplicate(f.node, b.keys); twice > 0 {
		k := b.tree.nodes[twice]
		b.fault(int(k.line), int(k.column), LimitKeys, "key %s occurs twice", b.tree.quoted(twice))
	}
}

// Key adds a key to the object that is open.
func (b *Builder) Key(text []byte, line, column int) {
	f := &b.open[len(b.open)-1]
	t := &b.tree
	if f.filled {
		t.json = append(t.json, ',')
	}
	from := len(t.json)
	t.json = appendString(t.json, text)
	quoted := t.json[from:]
	i := uint32(len(t.nodes))
	if f.sorted {
		f.sorted = simpleKey(quoted) && (!f.filled || bytes.Compare(bytes.TrimSuffix(t.quoted(f.lastKey), []byte{'"'}),
			quoted[:len(quoted)-1]) < 0)
	}
	f.lastKey, f.filled = i, true
	t.nodes = append(t.nodes, node{
		from: uint32(from), to: uint32(len(t.json)), next: i + 1,
		line: uint32(line), column: uint32(column), kind: String, canonical: true,
	})
	t.json = append(t.json, ':')
}

// String adds a string.
func (b *Builder) String(text []byte, line, column int) bool {
	if !b.begin(String, line, column) {
		return false
	}
	b.tree.json = appendString(b.tree.json, text)
	return b.end()
}

// Bool adds true or false.
func (b *Builder) Bool(v bool, line, column int) bool {
	if !b.begin(Bool, line, column) {
		return false
	}
	if v {
		b.tree.json = append(b.tree.json, "true"...)
	} else {
		b.tree.json = append(b.tree.json, "false"...)
	}
	return b.end()
}

// Null adds null.
func (b *Builder) Null(line, column int) bool {
	if !b.begin(Null, line, column) {
		return false
	}
	b.tree.json = append(b.tree.json, "null"...)
	return b.end()
}

// Number adds a number, whose text must be JSON.
func (b *Builder) Number(text []byte, line, column int) bool {
	if !b.begin(Number, line, column) {
		return false
	}
	b.tree.json = append(b.tree.json, text...)
	if !smallInteger(text) {
		b.tree.nodes[len(b.tree.nodes)-1].canonical = false
		if n := len(b.open); n > 0 {
			b.open[n-1].canonical = false
		}
		if !inRange(text) {
			b.fault(line, column, LimitNumbers, "the number %.40s is out of range: no reader holds it", text)
		}
	}
	return b.end()
}

// plainByte says which bytes stand in a JSON string as they are.
var plainByte = func() (t [256]bool) {
	for i := range t {
		t[i] = i >= 0x20 && i != '"' && i != '\\'
	}
	return t
}()

// appendString appends a JSON string with the escapes of RFC 8785 alone. Text is UTF-8.
func appendString(b, text []byte) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	from := 0
	for i, c := range text {
		if plainByte[c] {
			continue
		}
		b = append(b, text[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		case '\r':
			b = append(b, '\\', 'r')
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(b, text[from:]...), '"')
}
