// Package edit changes one document of a catalog file and leaves every other byte of the file as it is.
// It is pure: text in, text out.
package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/fbc"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// AddEntry adds an entry to the channel that stands at a place of a file. Where the entries are a list of
// lines, the new one becomes lines behind the last, and comments stay; any other form, JSON too, is
// written anew as a whole, in the order of render.
func AddEntry(file []byte, at load.Document, entry catalog.Entry) ([]byte, error) {
	from, err := offset(file, at)
	if err != nil {
		return nil, err
	}
	text := file[from : from+at.Size]
	b, err := fbc.ParseBlob(at.Raw)
	if err != nil {
		return nil, err
	}
	var body struct {
		Entries []catalog.Entry `json:"entries"`
	}
	if err := json.Unmarshal(at.Raw, &body); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "%s", b)
	}
	want, err := b.With("entries", append(body.Entries, entry))
	if err != nil {
		return nil, err
	}
	changed, ok := insert(text, entry)
	if ok = ok && same(changed, want); !ok {
		if changed, err = rewrite(text, want, at.Column > 1); err != nil {
			return nil, err
		}
	}
	return slices.Concat(file[:from], changed, file[from+at.Size:]), nil
}

// Append puts a document behind the last of a file, in the form that the file has.
func Append(file []byte, b fbc.Blob) ([]byte, error) {
	f := fbc.YAML
	if isJSON(file) {
		f = fbc.JSON
	}
	var out bytes.Buffer
	out.Write(file)
	if len(file) > 0 && file[len(file)-1] != '\n' {
		out.WriteByte('\n')
	}
	err := fbc.Write(&out, f, fbc.All([]fbc.Blob{b}))
	return out.Bytes(), err
}

// offset finds where a document begins, and looks whether it is still there.
func offset(file []byte, at load.Document) (int, error) {
	from := 0
	if bytes.HasPrefix(file, []byte("\xef\xbb\xbf")) {
		from = len("\xef\xbb\xbf")
	}
	for range at.Line - 1 {
		i := bytes.IndexByte(file[from:], '\n')
		if i < 0 {
			return 0, changed(at)
		}
		from += i + 1
	}
	from += at.Column - 1
	if from < 0 || from+at.Size > len(file) {
		return 0, changed(at)
	}
	var raw any
	if yaml.Unmarshal(file[from:from+at.Size], &raw) != nil {
		return 0, changed(at)
	}
	have, err := json.Marshal(raw)
	b, perr := fbc.ParseBlob(have)
	if err != nil || perr != nil || b.Schema != at.Schema || b.Name != at.Name || b.Package != at.Package {
		return 0, changed(at)
	}
	return from, nil
}

func changed(at load.Document) error {
	return errs.New(errs.Conflict,
		"%s:%d: the document cannot be changed in place; give it lines of its own, and try again", at.File, at.Line)
}

// insert adds lines behind the last item of a block list.
func insert(text []byte, entry catalog.Entry) ([]byte, bool) {
	var doc yamlv3.Node
	if yamlv3.Unmarshal(text, &doc) != nil || len(doc.Content) != 1 {
		return nil, false
	}
	list := field(doc.Content[0], "entries")
	if list == nil || list.Kind != yamlv3.SequenceNode || list.Style&yamlv3.FlowStyle != 0 || len(list.Content) == 0 {
		return nil, false
	}
	lines := strings.SplitAfter(string(text), "\n")
	last := list.Content[len(list.Content)-1]
	end := lastLine(last)
	if end > len(lines) || last.Line > len(lines) {
		return nil, false
	}
	first := lines[last.Line-1]
	indent := first[:len(first)-len(strings.TrimLeft(first, " "))]
	raw, err := yaml.Marshal(entry)
	if err != nil {
		return nil, false
	}
	var added strings.Builder
	for i, l := range strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n") {
		mark := "  "
		if i == 0 {
			mark = "- "
		}
		added.WriteString(indent + mark + l + "\n")
	}
	if !strings.HasSuffix(lines[end-1], "\n") {
		lines[end-1] += "\n"
	}
	return []byte(strings.Join(slices.Insert(lines, end, added.String()), "")), true
}

func field(n *yamlv3.Node, key string) *yamlv3.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if strings.EqualFold(n.Content[i].Value, key) {
			return n.Content[i+1]
		}
	}
	return nil
}

// lastLine is the last line that a node is known to have. One that has more, such as a text of several
// lines, makes the result differ from what is wanted, and the document is written anew.
func lastLine(n *yamlv3.Node) int {
	line := n.Line
	for _, c := range n.Content {
		line = max(line, lastLine(c))
	}
	return line
}

// same reports whether a text is a document.
func same(text []byte, want fbc.Blob) bool {
	raw, err := yaml.YAMLToJSON(text)
	if err != nil {
		return false
	}
	form := func(raw []byte) string {
		var out bytes.Buffer
		if fbc.Write(&out, fbc.JSON, fbc.All([]fbc.Blob{{Schema: want.Schema, Raw: raw}})) != nil {
			return ""
		}
		return out.String()
	}
	have := form(raw)
	return have != "" && have == form(want.Raw)
}

// rewrite writes a document anew, in the format that it had. Behind another one on a line only JSON can stand.
func rewrite(text []byte, b fbc.Blob, behind bool) ([]byte, error) {
	var out bytes.Buffer
	if behind || isJSON(text) {
		err := fbc.Write(&out, fbc.JSON, fbc.All([]fbc.Blob{b}))
		return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
	}
	err := fbc.Write(&out, fbc.YAML, fbc.All([]fbc.Blob{b}))
	lines := bytes.TrimPrefix(out.Bytes(), []byte("---\n"))
	if !bytes.HasSuffix(text, []byte("\n")) {
		lines = bytes.TrimSuffix(lines, []byte("\n"))
	}
	return lines, err
}

// isJSON reports whether a text is one or more JSON objects, and nothing else.
func isJSON(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	for n := 0; ; n++ {
		var object map[string]json.RawMessage
		if err := d.Decode(&object); err != nil {
			return n > 0 && errors.Is(err, io.EOF)
		}
	}
}
