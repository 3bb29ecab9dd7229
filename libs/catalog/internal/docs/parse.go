package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseYAML returns the root node of one YAML document, nil where it is empty or null.
func parseYAML(data []byte, depth int) (*yaml.Node, *Error) {
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, yamlError(err)
	}
	root := &doc
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		root = doc.Content[0]
	}
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		return nil, nil
	}
	if n := tooDeep(root, depth); n != nil {
		return nil, deepError(n, depth)
	}
	return root, nil
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): (.*)$`)

// yamlError takes the line out of the parser's text. The parser counts some lines from 0; that is
// the nearest it tells.
func yamlError(err error) *Error {
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		n, aerr := strconv.Atoi(m[1])
		if aerr == nil {
			return &Error{Line: max(n, 1), Message: "not YAML: " + m[2]}
		}
	}
	return &Error{Line: 1, Message: "not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
}

func deepError(n *yaml.Node, depth int) *Error {
	return &Error{Line: n.Line, Column: n.Column, Limit: "depth", Message: fmt.Sprintf("values nested more than %d deep", depth)}
}

// tooDeep returns the first node below the depth. Aliases are not followed: JSON bounds them.
func tooDeep(n *yaml.Node, depth int) *yaml.Node {
	if depth < 0 {
		return n
	}
	for _, c := range n.Content {
		if d := tooDeep(c, depth-1); d != nil {
			return d
		}
	}
	return nil
}

// parseJSON reads one JSON object into the same nodes.
func parseJSON(data []byte, depth int) (*yaml.Node, *Error) {
	p := &jsonParser{dec: json.NewDecoder(bytes.NewReader(data)), data: data, line: 1}
	p.dec.UseNumber()
	n, err := p.value(depth)
	if err == nil && len(bytes.TrimSpace(data[p.dec.InputOffset():])) > 0 {
		err = errors.New("text behind the end of the object")
	}
	if err == nil {
		return n, nil
	}
	if own, ok := errors.AsType[*Error](err); ok {
		return nil, own
	}
	off := p.dec.InputOffset()
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		off = syntax.Offset - 1
	}
	p.at, p.line, p.lineStart = 0, 1, 0 // the error may lie before the token that was read ahead
	line, col := p.place(int(off))
	return nil, &Error{Line: line, Column: col, Message: "not JSON: " + err.Error()}
}

// jsonParser turns tokens into nodes. Offsets only grow, so lines are counted once.
type jsonParser struct {
	dec       *json.Decoder
	data      []byte
	at        int // offset up to which lines are counted
	line      int
	lineStart int
}

// place returns line and column of an offset that is not before the last one asked for.
func (p *jsonParser) place(off int) (line, column int) {
	for p.at < off && p.at < len(p.data) {
		if p.data[p.at] == '\n' {
			p.line++
			p.lineStart = p.at + 1
		}
		p.at++
	}
	return p.line, p.at - p.lineStart + 1
}

// start returns the place of the next token, behind space and punctuation.
func (p *jsonParser) start() (line, column int) {
	off := int(p.dec.InputOffset())
	for off < len(p.data) && strings.IndexByte(" \t\r\n,:", p.data[off]) >= 0 {
		off++
	}
	return p.place(off)
}

func (p *jsonParser) value(depth int) (*yaml.Node, error) {
	line, col := p.start()
	tok, err := p.dec.Token()
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	n := &yaml.Node{Line: line, Column: col}
	switch t := tok.(type) {
	case json.Delim:
		if depth <= 0 {
			return nil, deepError(n, depth)
		}
		return n, p.container(n, t, depth)
	case string:
		n.Kind, n.Tag, n.Value, n.Style = yaml.ScalarNode, "!!str", t, yaml.DoubleQuotedStyle
	case json.Number:
		n.Kind, n.Tag, n.Value = yaml.ScalarNode, "!!float", t.String()
	case bool:
		n.Kind, n.Tag, n.Value = yaml.ScalarNode, "!!bool", strconv.FormatBool(t)
	default:
		n.Kind, n.Tag, n.Value = yaml.ScalarNode, "!!null", "null"
	}
	return n, nil
}

func (p *jsonParser) container(n *yaml.Node, open json.Delim, depth int) error {
	n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
	if open == '{' {
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
	}
	for p.dec.More() {
		if open == '{' {
			k, err := p.value(depth - 1)
			if err != nil {
				return err
			}
			n.Content = append(n.Content, k)
		}
		v, err := p.value(depth - 1)
		if err != nil {
			return err
		}
		n.Content = append(n.Content, v)
	}
	_, err := p.dec.Token()
	return err
}
