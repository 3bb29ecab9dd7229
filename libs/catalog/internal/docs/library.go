package docs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/chandler-fleet/chandler/libs/internal/jsontree"
)

// Bounds on what is given to the library, which needs some thirty times as much memory as the text has and
// cannot be told to need less.
const (
	// maxLibraryBytes is the size of one document; the largest real one that the block reader leaves has 27 kB, and the
	// largest YAML document of any kind 2 MB.
	maxLibraryBytes = 4 << 20
	// maxLibraryMarks is the number of its marks of structure, each of which stands for three values at most; those
	// real documents have 2,000 and 100,000.
	maxLibraryMarks = 400_000
	// smallLibraryBytes is up to which size documents are given to the library at the same time.
	smallLibraryBytes = 256 << 10
)

// large lets one large document at a time into the library, so that memory does not grow with the workers.
var large sync.Mutex

// readYAML reads one YAML document by way of the library's nodes, where those do not need too much memory.
func readYAML(data []byte, b *jsontree.Builder, l Limits) *Error {
	if e := tooMuch(data, l.Nodes); e != nil {
		return e
	}
	if len(data) > smallLibraryBytes {
		large.Lock()
		defer large.Unlock()
	}
	return decodeYAML(data, b, l)
}

// decodeYAML is readYAML whatever it needs.
func decodeYAML(data []byte, b *jsontree.Builder, l Limits) *Error {
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
	w := writer{b: b, merges: l.Nodes, text: source{data: data}}
	if !w.value(root) {
		if w.err != nil {
			return w.err
		}
		return b.Err()
	}
	return rest(dec)
}

// rest refuses what stands behind a document and is not separated from it by a line that begins with "---":
// the reader of files cuts there and nowhere else, so it would be lost.
func rest(dec *yaml.Decoder) *Error {
	const fix = "; indent it as what stands before it is, or put a line --- between them, with line ends that are " +
		"line feeds"
	var more yaml.Node
	err := dec.Decode(&more)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		return &Error{
			Line: max(more.Line, 1), Column: more.Column,
			Message: "not YAML: another document begins here without a line of its own before it" + fix,
		}
	}
	e := yamlError(err)
	if strings.Contains(e.Message, "<document start>") {
		if yamlLine.MatchString(err.Error()) {
			e.Line++ // this one is counted from 0
		}
		e.Message = "not YAML: the document ends before this text, which belongs to nothing" + fix
	}
	return e
}

// tooMuch refuses what could become more nodes than memory should hold: the library makes all of them
// before they can be counted. A value needs a mark of structure of its own, or shares one with two others.
func tooMuch(data []byte, nodes int) *Error {
	if len(data) > maxLibraryBytes {
		return &Error{Line: 1, Limit: "bytes", Message: fmt.Sprintf(
			"the document has %d bytes and is not plain enough to be read beyond %d: it uses anchors, tags, tabs or "+
				"line ends that are no line feeds; write it without them or as JSON, or split it", len(data),
			maxLibraryBytes)}
	}
	if marks(data) <= min(marksPerValue*nodes, maxLibraryMarks) {
		return nil
	}
	return &Error{Line: 1, Limit: "nodes", Message: fmt.Sprintf(
		"the document may hold more than %d values and is not plain enough to count them; write it as JSON, or split it", min(nodes, maxLibraryMarks/marksPerValue))}
}

// marksPerValue is how many marks of structure stand in a document for each of its values at most.
const marksPerValue = 2

// marks counts what begins a value, or a comment, which the library keeps beside it.
func marks(data []byte) int {
	n := 0
	for i, c := range data {
		switch c {
		case ',', '[', '{', ':', '?', '#', '!', '\n', '\r':
			n++
		case '-':
			// Behind the dash of an entry stands a blank or a line's end, and some of those are not ASCII.
			if i+1 == len(data) || data[i+1] <= ' ' || data[i+1] >= utf8.RuneSelf {
				n++
			}
		}
	}
	return n
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
	return &Error{
		Line: 1 + bytes.Count(data[:at], []byte("\n")), Column: 1 + utf8.RuneCount(line), Limit: "utf-8",
		Message: "the text is not UTF-8",
	}
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
	text   source
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
		if n.Style == 0 && ambiguous(n.Value, false) {
			w.b.Doubt()
		}
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
	if len(merges) > 0 {
		w.b.Doubt() // readers do not agree on which of two equal keys wins
		if !w.addMerges(n, merges) {
			return false
		}
	}
	return w.b.End()
}

func isMerge(k *yaml.Node) bool {
	return k.Kind == yaml.ScalarNode && k.Value == "<<" && k.ShortTag() == "!!merge"
}

func (w *writer) pair(k, v *yaml.Node) bool {
	name := aliased(k)
	if name.Kind != yaml.ScalarNode {
		return w.fail(k, "", "a key must be a plain value")
	}
	if name.Style&yaml.TaggedStyle != 0 && !w.allowed(name) {
		return false
	}
	if name.Style == 0 && ambiguous(name.Value, true) {
		w.b.Doubt()
	}
	w.b.Key([]byte(name.Value), k.Line, k.Column)
	return w.value(v)
}

// aliased is the node that an alias stands for, any other node itself.
func aliased(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func (w *writer) addMerges(n *yaml.Node, merges []*yaml.Node) bool {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !isMerge(n.Content[i]) {
			seen[aliased(n.Content[i]).Value] = true
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
		case !seen[aliased(k).Value]:
			seen[aliased(k).Value] = true
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
