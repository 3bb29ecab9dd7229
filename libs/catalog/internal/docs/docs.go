// Package docs reads the documents of one catalog file: JSON or YAML, one or many, mixed (R-CAT-3).
//
// A file is split into documents before it is parsed, so that memory grows with the largest document
// and not with the file. Every document comes as a tree of YAML nodes with lines and columns, for JSON
// too, so that later findings can name a place. The tree is never expanded: aliases (YAML bombs),
// nesting and size meet the bounds of Limits when JSON writes them out.
package docs

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// Limits bound what one file may hold.
type Limits struct {
	FileBytes     int64 // of one file
	DocumentBytes int   // of one document
	Documents     int   // in one file
	Depth         int   // of nested mappings and sequences
	Nodes         int   // values of one document, aliases expanded
}

// Error is a document that cannot be read.
type Error struct {
	Line, Column int
	Limit        string // name of the limit that was met, else empty
	Message      string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Message) }

// Split calls each for every piece of r that may hold a document, in order, with its text and place.
// It returns what each returns, an *Error where a limit of the whole file is met, or the reader's error.
func Split(r io.Reader, l Limits, each func(Chunk) error) error {
	s := newSplitter(r, l)
	for n := 0; ; n++ {
		c, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n >= l.Documents {
			return &Error{Line: c.line, Limit: "documents", Message: fmt.Sprintf("more than %d documents in one file", l.Documents)}
		}
		if err := each(c); err != nil {
			return err
		}
	}
}

// Parse returns the root of a chunk, nil for one that holds nothing. A failure is an *Error.
func Parse(c Chunk, l Limits) (*yaml.Node, *Error) {
	if c.json {
		node, jerr := parseJSON(c.data, l.Depth)
		if jerr == nil {
			shift(node, c)
			return node, nil
		}
		// A YAML flow mapping begins like JSON; what neither reads is told in JSON's words.
		if n, err := parseYAML(c.data, l.Depth); err == nil && n != nil {
			shift(n, c)
			return n, nil
		}
		jerr.Line, jerr.Column = moved(jerr.Line, jerr.Column, c)
		return nil, jerr
	}
	node, err := parseYAML(c.data, l.Depth)
	if err != nil {
		err.Line += c.line - 1
		return nil, err
	}
	if node != nil {
		shift(node, c)
	}
	return node, nil
}

// Objects returns every document of data as Sorted JSON; the first that cannot be read is an *Error.
func Objects(data []byte, l Limits) ([][]byte, error) {
	var out [][]byte
	err := Split(bytes.NewReader(data), l, func(c Chunk) error {
		n, perr := Parse(c, l)
		if perr != nil {
			return perr
		}
		if n == nil {
			return nil
		}
		raw, jerr := Sorted(n, l)
		if jerr != nil {
			return jerr
		}
		out = append(out, raw)
		return nil
	})
	return out, err
}

// moved turns a place in a chunk into one in the file.
func moved(line, column int, c Chunk) (int, int) {
	if line == 1 {
		column += c.column - 1
	}
	return line + c.line - 1, column
}

func shift(n *yaml.Node, c Chunk) {
	if c.line == 1 && c.column == 1 {
		return
	}
	n.Line, n.Column = moved(n.Line, n.Column, c)
	for _, ch := range n.Content {
		shift(ch, c)
	}
}

// Chunk is the text of one document and where it begins, counted from 1.
type Chunk struct {
	data         []byte
	line, column int
	json         bool
}

// Line is where the chunk begins, from 1.
func (c Chunk) Line() int { return c.line }

// Text is the chunk as it was read; it must not be changed.
func (c Chunk) Text() []byte { return c.data }

// StartsLine reports whether nothing stands before the chunk on its first line.
func (c Chunk) StartsLine() bool { return c.column == 1 }

// Size is the length of its text in bytes.
func (c Chunk) Size() int { return len(c.data) }

func (c Chunk) empty() bool { return len(bytes.TrimSpace(c.data)) == 0 }
