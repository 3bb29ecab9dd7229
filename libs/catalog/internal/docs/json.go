package docs

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// JSON writes a node as JSON with its keys in the order of the source. Aliases are expanded and merge
// keys applied within the limits; a key that occurs twice is an error.
func JSON(n *yaml.Node, l Limits) (json.RawMessage, *Error) {
	return write(n, &writer{depth: l.Depth, nodes: l.Nodes})
}

// Sorted is JSON with the keys of every object in order. It is the canonical form of RFC 8785 wherever
// all numbers are integers, which saves a later step that makes it so.
func Sorted(n *yaml.Node, l Limits) (json.RawMessage, *Error) {
	return write(n, &writer{depth: l.Depth, nodes: l.Nodes, sorted: true})
}

func write(n *yaml.Node, w *writer) (json.RawMessage, *Error) {
	if err := w.value(n, 0); err != nil {
		return nil, err
	}
	return w.out.Bytes(), nil
}

type writer struct {
	out    bytes.Buffer
	depth  int
	nodes  int
	sorted bool
}

func (w *writer) value(n *yaml.Node, depth int) *Error {
	w.nodes--
	if w.nodes < 0 {
		return &Error{Line: n.Line, Column: n.Column, Limit: "nodes", Message: "too many values: aliases expand without bound, or the document is too large"}
	}
	if depth > w.depth {
		return deepError(n, w.depth)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return w.value(n.Alias, depth+1)
	case yaml.MappingNode:
		return w.mapping(n, depth)
	case yaml.SequenceNode:
		w.out.WriteByte('[')
		for i, c := range n.Content {
			if i > 0 {
				w.out.WriteByte(',')
			}
			if err := w.value(c, depth+1); err != nil {
				return err
			}
		}
		w.out.WriteByte(']')
		return nil
	default:
		return w.scalar(n)
	}
}

func (w *writer) mapping(n *yaml.Node, depth int) *Error {
	pairs, err := w.pairs(n, depth)
	if err != nil {
		return err
	}
	if w.sorted {
		slices.SortFunc(pairs, func(a, b pair) int { return cmp.Compare(a.key.Value, b.key.Value) })
	}
	w.out.WriteByte('{')
	for i, p := range pairs {
		if i > 0 {
			w.out.WriteByte(',')
		}
		w.str(p.key.Value)
		w.out.WriteByte(':')
		if err := w.value(p.value, depth+1); err != nil {
			return err
		}
	}
	w.out.WriteByte('}')
	return nil
}

// pair is one entry of a mapping.
type pair struct{ key, value *yaml.Node }

// pairs returns the entries with merge keys ("<<") applied: own keys win, then earlier merges.
func (w *writer) pairs(n *yaml.Node, depth int) ([]pair, *Error) {
	if depth > w.depth {
		return nil, deepError(n, w.depth)
	}
	own := make([]pair, 0, len(n.Content)/2)
	seen := newKeySet(len(n.Content) / 2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			return nil, &Error{Line: k.Line, Column: k.Column, Message: "a key must be a plain value"}
		}
		if k.Value == "<<" && k.ShortTag() == "!!merge" {
			merges = append(merges, v)
			continue
		}
		if !seen.add(k.Value, own) {
			return nil, &Error{Line: k.Line, Column: k.Column, Message: fmt.Sprintf("key %q occurs twice", k.Value)}
		}
		own = append(own, pair{k, v})
	}
	for _, m := range merges {
		more, err := w.merged(m, depth+1)
		if err != nil {
			return nil, err
		}
		for _, p := range more {
			if seen.add(p.key.Value, own) {
				own = append(own, p)
			}
		}
	}
	return own, nil
}

// smallMapping is up to how many keys comparing all of them is cheaper than a map.
const smallMapping = 8

// keySet finds keys that occur twice.
type keySet struct{ seen map[string]bool }

func newKeySet(n int) keySet {
	if n <= smallMapping {
		return keySet{}
	}
	return keySet{seen: make(map[string]bool, n)}
}

// add notes a key; have are the pairs before it. It returns false for a key that is there.
func (s *keySet) add(key string, have []pair) bool {
	if s.seen == nil && len(have) > smallMapping {
		s.seen = make(map[string]bool, 2*len(have))
		for _, p := range have {
			s.seen[p.key.Value] = true
		}
	}
	if s.seen == nil {
		return !slices.ContainsFunc(have, func(p pair) bool { return p.key.Value == key })
	}
	if s.seen[key] {
		return false
	}
	s.seen[key] = true
	return true
}

// merged returns the pairs of a merge value: a mapping, an alias of one, or a list of them.
func (w *writer) merged(m *yaml.Node, depth int) ([]pair, *Error) {
	w.nodes -= 1 + len(m.Content)
	if w.nodes < 0 || depth > w.depth {
		return nil, &Error{Line: m.Line, Column: m.Column, Limit: "nodes", Message: "merge keys expand without bound"}
	}
	switch m.Kind {
	case yaml.AliasNode:
		return w.merged(m.Alias, depth+1)
	case yaml.MappingNode:
		return w.pairs(m, depth)
	case yaml.SequenceNode:
		var all []pair
		for _, c := range m.Content {
			more, err := w.merged(c, depth+1)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
		return all, nil
	default:
		return nil, &Error{Line: m.Line, Column: m.Column, Message: "a merge key needs a mapping"}
	}
}

func (w *writer) scalar(n *yaml.Node) *Error {
	tag := n.ShortTag()
	switch tag {
	case "!!null":
		w.out.WriteString("null")
	case "!!bool":
		w.out.WriteString(strconv.FormatBool(strings.EqualFold(n.Value, "true")))
	case "!!int", "!!float":
		return w.number(n)
	case "!!binary":
		b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
		if err != nil {
			return &Error{Line: n.Line, Column: n.Column, Message: "!!binary is not base64: " + err.Error()}
		}
		w.str(strings.ToValidUTF8(string(b), "\ufffd"))
	default:
		if b, ok := oldBool(n); ok {
			w.out.WriteString(strconv.FormatBool(b))
			return nil
		}
		w.str(strings.ToValidUTF8(n.Value, "\ufffd"))
	}
	return nil
}

// oldBool reads the booleans of YAML 1.1 that every Kubernetes tool accepts in plain style.
func oldBool(n *yaml.Node) (value, ok bool) {
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) != 0 {
		return false, false
	}
	switch n.Value {
	case "yes", "Yes", "YES", "on", "On", "ON":
		return true, true
	case "no", "No", "NO", "off", "Off", "OFF":
		return false, true
	}
	return false, false
}

func (w *writer) number(n *yaml.Node) *Error {
	if json.Valid([]byte(n.Value)) {
		w.out.WriteString(n.Value)
		return nil
	}
	if n.ShortTag() == "!!int" {
		var i int64
		if n.Decode(&i) == nil {
			w.out.WriteString(strconv.FormatInt(i, 10))
			return nil
		}
	}
	var f float64
	if err := n.Decode(&f); err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return &Error{Line: n.Line, Column: n.Column, Message: fmt.Sprintf("%q is not a number that JSON can hold", n.Value)}
	}
	w.out.WriteString(strconv.FormatFloat(f, 'g', -1, 64))
	return nil
}

// str writes a JSON string with the escapes of RFC 8785 alone.
func (w *writer) str(s string) {
	const hex = "0123456789abcdef"
	w.out.WriteByte('"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		w.out.WriteString(s[from:i])
		from = i + 1
		switch c {
		case '"', '\\':
			w.out.WriteByte('\\')
			w.out.WriteByte(c)
		case '\n':
			w.out.WriteString(`\n`)
		case '\t':
			w.out.WriteString(`\t`)
		case '\r':
			w.out.WriteString(`\r`)
		case '\b':
			w.out.WriteString(`\b`)
		case '\f':
			w.out.WriteString(`\f`)
		default:
			w.out.WriteString(`\u00`)
			w.out.WriteByte(hex[c>>4])
			w.out.WriteByte(hex[c&15])
		}
	}
	w.out.WriteString(s[from:])
	w.out.WriteByte('"')
}
