package docs

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/chandler-fleet/chandler/libs/internal/jsontree"
)

// readYAML reads one YAML document by way of the library's nodes.
func readYAML(data []byte, b *jsontree.Builder, l Limits) *Error {
	if e := tooMany(data, l.Nodes); e != nil {
		return e
	}
	if !utf8.Valid(data) {
		return notUTF8(data)
	}
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return yamlError(err)
	}
	root := &doc
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		root = doc.Content[0]
	}
	w := writer{b: b, merges: l.Nodes}
	if w.value(root) {
		return nil
	}
	if w.err != nil {
		return w.err
	}
	return b.Err()
}

// marksPerValue is how many marks of structure stand in a document for each of its values at most.
const marksPerValue = 2

// tooMany refuses what could become more nodes than memory should hold: the library makes all of them
// before they can be counted. A value needs a line, a comma, a bracket or a colon of its own.
func tooMany(data []byte, nodes int) *Error {
	marks := 0
	for _, c := range data {
		switch c {
		case '\n', ',', '[', '{', ':':
			marks++
		}
	}
	if marks <= marksPerValue*nodes {
		return nil
	}
	return &Error{Line: 1, Limit: "nodes", Message: fmt.Sprintf("the document may hold more than %d values and is not plain enough to count them; write it as JSON, or split it", nodes)}
}

func notUTF8(data []byte) *Error {
	at := 0
	for at < len(data) {
		r, n := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && n <= 1 {
			break
		}
		at += n
	}
	line := data[bytes.LastIndexByte(data[:at], '\n')+1 : at]
	return &Error{Line: 1 + bytes.Count(data[:at], []byte("\n")), Column: 1 + utf8.RuneCount(line), Limit: "utf-8", Message: "the text is not UTF-8"}
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): (.*)$`)

// yamlError takes the line out of the parser's text. The parser counts some lines from 0; that is
// the nearest it tells.
func yamlError(err error) *Error {
	e := &Error{Line: 1, Message: "not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		n, aerr := strconv.Atoi(m[1])
		if aerr == nil {
			e = &Error{Line: max(n, 1), Message: "not YAML: " + m[2]}
		}
	}
	if strings.Contains(e.Message, "exceeded max depth") { // the library's own bound, far above ours
		e.Limit = "depth"
	}
	return e
}

// writer copies nodes into a builder. Aliases are expanded and merge keys applied within the limits.
type writer struct {
	b      *jsontree.Builder
	merges int // values that merge keys may still name
	err    *Error
}

func (w *writer) fail(n *yaml.Node, limit, format string, args ...any) bool {
	if w.err == nil {
		w.err = &Error{Line: n.Line, Column: n.Column, Limit: limit, Message: fmt.Sprintf(format, args...)}
	}
	return false
}

func (w *writer) value(n *yaml.Node) bool {
	switch n.Kind {
	case yaml.AliasNode:
		return w.value(n.Alias)
	case yaml.MappingNode:
		return w.mapping(n)
	case yaml.SequenceNode:
		if !w.b.Begin(jsontree.Array, n.Line, n.Column) {
			return false
		}
		for _, c := range n.Content {
			if !w.value(c) {
				return false
			}
		}
		return w.b.End()
	default:
		return w.scalar(n)
	}
}

// mapping writes own keys in their order, then those that merges ("<<") add: own keys win, then earlier
// merges.
func (w *writer) mapping(n *yaml.Node) bool {
	if !w.b.Begin(jsontree.Object, n.Line, n.Column) {
		return false
	}
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if isMerge(k) {
			merges = append(merges, v)
			continue
		}
		if !w.pair(k, v) {
			return false
		}
	}
	if len(merges) > 0 && !w.addMerges(n, merges) {
		return false
	}
	return w.b.End()
}

func isMerge(k *yaml.Node) bool {
	return k.Kind == yaml.ScalarNode && k.Value == "<<" && k.ShortTag() == "!!merge"
}

func (w *writer) pair(k, v *yaml.Node) bool {
	if k.Kind != yaml.ScalarNode {
		return w.fail(k, "", "a key must be a plain value")
	}
	w.b.Key([]byte(k.Value), k.Line, k.Column)
	return w.value(v)
}

func (w *writer) addMerges(n *yaml.Node, merges []*yaml.Node) bool {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !isMerge(n.Content[i]) {
			seen[n.Content[i].Value] = true
		}
	}
	for _, m := range merges {
		if !w.merge(m, seen, 0) {
			return false
		}
	}
	return true
}

// maxMergeDepth bounds merges of merges, and so aliases that name themselves.
const maxMergeDepth = 50

// merge adds the pairs of a merge value: a mapping, an alias of one, or a list of them.
func (w *writer) merge(m *yaml.Node, seen map[string]bool, depth int) bool {
	w.merges -= 1 + len(m.Content)
	if w.merges < 0 || depth > maxMergeDepth {
		return w.fail(m, "nodes", "merge keys expand without bound")
	}
	switch m.Kind {
	case yaml.AliasNode:
		return w.merge(m.Alias, seen, depth+1)
	case yaml.SequenceNode:
		for _, c := range m.Content {
			if !w.merge(c, seen, depth+1) {
				return false
			}
		}
		return true
	case yaml.MappingNode:
		return w.mergeMapping(m, seen, depth)
	default:
		return w.fail(m, "", "a merge key needs a mapping")
	}
}

func (w *writer) mergeMapping(m *yaml.Node, seen map[string]bool, depth int) bool {
	var merges []*yaml.Node
	for i := 0; i+1 < len(m.Content); i += 2 {
		k, v := m.Content[i], m.Content[i+1]
		switch {
		case isMerge(k):
			merges = append(merges, v)
		case !seen[k.Value]:
			seen[k.Value] = true
			if !w.pair(k, v) {
				return false
			}
		}
	}
	for _, more := range merges {
		if !w.merge(more, seen, depth+1) {
			return false
		}
	}
	return true
}

func (w *writer) scalar(n *yaml.Node) bool {
	switch n.ShortTag() {
	case "!!null":
		return w.b.Null(n.Line, n.Column)
	case "!!bool":
		return w.b.Bool(strings.EqualFold(n.Value, "true"), n.Line, n.Column)
	case "!!int", "!!float":
		return w.number(n)
	case "!!binary":
		b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
		if err != nil {
			return w.fail(n, "", "!!binary is not base64: %v", err)
		}
		if !utf8.Valid(b) {
			return w.fail(n, "utf-8", "!!binary is not UTF-8, so that no string can hold it")
		}
		return w.b.String(b, n.Line, n.Column)
	default:
		if b, ok := oldBool(n); ok {
			return w.b.Bool(b, n.Line, n.Column)
		}
		return w.b.String([]byte(n.Value), n.Line, n.Column)
	}
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

func (w *writer) number(n *yaml.Node) bool {
	if text := []byte(n.Value); json.Valid(text) {
		return w.b.Number(text, n.Line, n.Column)
	}
	if n.ShortTag() == "!!int" {
		var i int64
		if n.Decode(&i) == nil {
			return w.b.Number(strconv.AppendInt(nil, i, 10), n.Line, n.Column)
		}
		var u uint64
		if n.Decode(&u) == nil {
			return w.b.Number(strconv.AppendUint(nil, u, 10), n.Line, n.Column)
		}
	}
	var f float64
	if err := n.Decode(&f); err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return w.fail(n, jsontree.LimitNumbers, "%.40q is not a number that JSON can hold", n.Value)
	}
	return w.b.Number(strconv.AppendFloat(nil, f, 'g', -1, 64), n.Line, n.Column)
}
