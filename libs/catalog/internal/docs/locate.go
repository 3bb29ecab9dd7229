package docs

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/chandler-fleet/chandler/libs/internal/jsontree"
)

// Spot asks for the place of a value inside a document. Line and Column are where the document begins;
// Locate changes them to where the value stands, as near as the path leads.
type Spot struct {
	Line, Column int
	// Path is the way to the value: keys, "#2" for the third element of a list, and "olm.gvk#1" for the
	// second element of a list whose type is olm.gvk.
	Path []string
}

// errFound ends the search once every document was met.
var errFound = errors.New("found")

// Locate finds spots in one file. Documents are parsed again, but only those that are asked for: places
// of values cost nothing where nothing is wrong with them. A spot that is not found stays as it is.
func Locate(r io.Reader, l Limits, spots []*Spot) error {
	var p Parser
	open := slices.Clone(spots)
	slices.SortStableFunc(open, func(a, b *Spot) int { return a.Line - b.Line })
	err := Split(r, l, func(c Chunk) error {
		defer c.Release()
		last := c.Line() + bytes.Count(c.Text(), []byte("\n"))
		for len(open) > 0 && open[0].Line < c.Line() {
			open = open[1:]
		}
		if len(open) == 0 {
			return errFound
		}
		if open[0].Line > last {
			return nil
		}
		root, perr := p.Parse(c, l)
		if perr != nil || !root.Exists() {
			return nil // what cannot be read has told so itself
		}
		line, column := root.Line(), root.Column()
		rest := open[:0:0]
		for _, s := range open {
			if s.Line == line && s.Column == column {
				s.Line, s.Column = Place(root, s.Path...)
				continue
			}
			rest = append(rest, s)
		}
		open = rest
		return nil
	})
	if errors.Is(err, errFound) {
		return nil
	}
	return err
}

// Place returns where the value stands that a path leads to, or the last one on the way to it.
func Place(v Value, path ...string) (line, column int) {
	line, column = v.Line(), v.Column()
	for _, step := range path {
		if v = next(v, step); !v.Exists() {
			break
		}
		line, column = v.Line(), v.Column()
	}
	return line, column
}

// next takes one step, to nothing where it leads nowhere.
func next(v Value, step string) Value {
	typ, index, list := strings.Cut(step, "#")
	if !list {
		return v.Child(step)
	}
	at, err := strconv.Atoi(index)
	if err != nil || v.Kind() != jsontree.Array {
		return Value{}
	}
	for c := range v.Items() {
		if typ != "" && c.Child("type").Text() != typ {
			continue
		}
		if at == 0 {
			return c
		}
		at--
	}
	return Value{}
}

// LocateKey returns where a key is first written with the least indentation but some, in the text of
// one manifest, without parsing it; 0 where it is not. That is the key of spec or metadata that
// manifests have once, and deeper, in what they describe, again.
func LocateKey(text []byte, key string) (line, column int) {
	least := -1
	for n := 1; len(text) > 0; n++ {
		var row []byte
		row, text, _ = bytes.Cut(text, []byte("\n"))
		bare := bytes.TrimLeft(row, " \t")
		indent := len(row) - len(bare)
		if indent == 0 || least >= 0 && indent >= least {
			continue
		}
		word := bytes.TrimPrefix(bare, []byte(`"`))
		rest, ok := bytes.CutPrefix(word, []byte(key))
		if !ok {
			continue
		}
		if rest = bytes.TrimPrefix(rest, []byte(`"`)); len(rest) > 0 && rest[0] == ':' {
			least, line, column = indent, n, indent+1
		}
	}
	return line, column
}
