// Package docs reads the documents of one catalog file: JSON or YAML, one or many, mixed (R-CAT-3).
//
// A file is split into documents before it is parsed, so that memory grows with the largest document
// and not with the file. Every document comes as a jsontree, whose values know line and column, so that
// later findings can name a place. Three readers make it:
//
//   - JSON text is read by jsontree itself;
//   - YAML as programs write it, block by block, is read by blockReader, several times as fast as by way
//     of the library's nodes. It gives up on all that it is not sure of, and never guesses;
//   - what it gives up on (anchors, tags, merge keys, odd layouts) is read by the YAML library, as far as its
//     memory can be bounded. What stands behind the document that it reads is refused, never lost.
//
// Plain words mean what the library (YAML 1.2 with the old booleans yes, no, on and off) makes of them, so that y
// and n are strings; a tag !!bool takes all words of YAML 1.1, and a value that its tag does not allow is refused.
//
// Sizes, nesting, numbers of values and expanded aliases (YAML bombs) meet the bounds of Limits.
package docs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/chandler-fleet/chandler/libs/internal/jsontree"
)

// Limits bound what one file may hold.
type Limits struct {
	FileBytes     int64 // of one file
	DocumentBytes int   // of one document
	Documents     int   // in one file
	Depth         int   // of nested mappings and sequences
	Nodes         int   // values of one document, aliases expanded
}

// expansion is how many times as large as its source a document may become as JSON: an escape of six
// letters can stand for one, and an alias for anything.
const expansion = 4

func (l Limits) tree() jsontree.Limits {
	return jsontree.Limits{Depth: l.Depth, Values: l.Nodes, Bytes: expansion * l.DocumentBytes}
}

// Error is a document that cannot be read.
type Error = jsontree.Error

// Value is a part of a document.
type Value = jsontree.Value

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
			return &Error{
				Line: c.line, Limit: "documents",
				Message: fmt.Sprintf("more than %d documents in one file", l.Documents),
			}
		}
		if err := each(c); err != nil {
			return err
		}
	}
}

// Parser reads one document after the other. What it returned is valid until the next one.
type Parser struct {
	builder jsontree.Builder
	block   blockReader
}

// Faults are what forbids to use the document that was parsed, which can be read all the same.
func (p *Parser) Faults() []*Error { return p.builder.Tree().Faults() }

// Parse returns the root of a chunk, nothing for one that holds nothing. A failure is an *Error.
func (p *Parser) Parse(c Chunk, l Limits) (Value, *Error) {
	if err := p.read(c, l); err != nil {
		err.Line, err.Column = c.moved(err.Line, err.Column)
		return Value{}, err
	}
	tree := p.builder.Tree()
	if c.line > 1 || c.column > 1 {
		tree.Move(c.moved)
	}
	root := tree.Root()
	if root.Kind() == jsontree.Null {
		return Value{}, nil
	}
	return root, nil
}

func (p *Parser) read(c Chunk, l Limits) *Error {
	b := &p.builder
	b.Reset(l.tree())
	if c.json {
		jerr := b.Read(c.data)
		if jerr == nil || jerr.Limit != "" {
			return jerr
		}
		// A YAML flow mapping begins like JSON; what neither reads is told in JSON's words.
		b.Reset(l.tree())
		if err := readYAML(c.data, b, l); err == nil && b.Tree().Root().Kind() != jsontree.Null {
			return nil
		}
		return jerr
	}
	if c.column == 1 && p.block.read(c.data, b) {
		return nil
	}
	if b.Err() != nil {
		return b.Err()
	}
	b.Reset(l.tree())
	return readYAML(c.data, b, l)
}

// whole returns data as one chunk, without a copy, where it looks like one document with at most a mark
// before it. JSON may turn out to be several.
func whole(data []byte, l Limits) (Chunk, bool) {
	c := Chunk{data: data, line: 1, column: 1}
	if rest, ok := bytes.CutPrefix(data, []byte("---\n")); ok {
		c.data, c.line = rest, 2
	}
	if len(c.data) == 0 || len(data) > l.DocumentBytes || isMark(c.data) || bytes.Contains(data, []byte("\n---")) ||
		bytes.Contains(data, []byte("\n...")) {
		return c, false
	}
	switch b := c.data[0]; {
	case b == '{':
		c.json = true
		return c, true
	case b == '#', b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z':
		return c, true
	}
	return c, false
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

// moved turns a place in a chunk into one in the file.
func (c Chunk) moved(line, column int) (int, int) {
	if line == 1 && column > 0 {
		column += c.column - 1
	}
	return line + c.line - 1, column
}

// buffers are texts of chunks to be used again.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, readBuffer); return &b }}

// maxKept is up to which size a text is used again: a few large documents must not stay in memory.
const maxKept = 1 << 20

func buffer() []byte {
	b, ok := buffers.Get().(*[]byte)
	if !ok {
		return nil
	}
	return (*b)[:0]
}

// Release gives the chunk's text back for the next one. It must not be used any more.
func (c Chunk) Release() {
	if n := cap(c.data); n >= readBuffer && n <= maxKept {
		b := c.data[:0]
		buffers.Put(&b)
	}
}
