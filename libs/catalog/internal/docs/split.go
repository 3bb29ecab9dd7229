package docs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// splitter cuts a stream at YAML document marks and between JSON objects that follow one another.
type splitter struct {
	in    *bufio.Reader
	l     Limits
	read  int64
	line  int    // of rest, or of the next line to be read
	col   int    // of rest
	rest  []byte // what is left of a line behind a JSON object
	eof   bool
	first bool
}

const readBuffer = 64 << 10

func newSplitter(r io.Reader, l Limits) *splitter {
	return &splitter{in: bufio.NewReaderSize(r, readBuffer), l: l, line: 1, col: 1, first: true}
}

// next returns the next chunk that is not blank, or io.EOF.
func (s *splitter) next() (Chunk, error) {
	for {
		c, err := s.collect()
		if err != nil {
			return Chunk{}, err
		}
		if !c.empty() {
			return c, nil
		}
		if s.eof && len(s.rest) == 0 {
			return Chunk{}, io.EOF
		}
	}
}

// collect gathers lines up to a document mark, or up to the end of a JSON object.
func (s *splitter) collect() (Chunk, error) {
	c := Chunk{line: s.line, column: s.col}
	started := false
	var braces balance
	for {
		startLine, startCol := s.line, s.col
		text, err := s.nextLine()
		if err != nil {
			return c, err
		}
		if len(text) == 0 && s.eof {
			return c, nil
		}
		if startCol == 1 && isMark(text) {
			return s.mark(c, text, started)
		}
		if !started {
			if isBlank(text) || text[0] == '%' {
				continue
			}
			started = true
			c.line, c.column = startLine, startCol
			c.json = bytes.TrimLeft(text, " \t")[0] == '{'
		}
		if c.json {
			if end := braces.feed(text); end >= 0 {
				s.unread(text[end:], startLine, startCol+end)
				c.data = append(c.data, text[:end]...)
				return c, nil
			}
		}
		if len(c.data)+len(text) > s.l.DocumentBytes {
			return c, &Error{
				Line: c.line, Column: c.column, Limit: "document-bytes",
				Message: fmt.Sprintf("a document of more than %d bytes", s.l.DocumentBytes),
			}
		}
		c.data = append(c.data, text...)
	}
}

// mark ends a chunk at a line such as "---" or "--- # text"; what stands behind the mark begins the next document.
func (s *splitter) mark(c Chunk, text []byte, started bool) (Chunk, error) {
	if behind := text[3:]; text[0] == '-' && !isBlank(behind) {
		s.unread(behind, s.line-1, 4)
	}
	if !started {
		c.data = nil
	}
	return c, nil
}

func (s *splitter) unread(b []byte, line, col int) {
	if len(bytes.TrimSpace(b)) == 0 {
		return
	}
	s.rest, s.line, s.col = bytes.Clone(b), line, col
}

// nextLine returns a line with its end, or what was put back.
func (s *splitter) nextLine() ([]byte, error) {
	if len(s.rest) > 0 {
		b := s.rest
		s.rest = nil
		s.line, s.col = s.line+1, 1
		return b, nil
	}
	if s.eof {
		return nil, nil
	}
	var line []byte
	for {
		part, err := s.in.ReadSlice('\n')
		line = append(line, part...)
		s.read += int64(len(part))
		switch {
		case s.read > s.l.FileBytes:
			return nil, &Error{Line: s.line, Limit: "file-bytes", Message: fmt.Sprintf("a file of more than %d bytes", s.l.FileBytes)}
		case len(line) > s.l.DocumentBytes:
			return nil, &Error{Line: s.line, Limit: "document-bytes", Message: fmt.Sprintf("a line of more than %d bytes", s.l.DocumentBytes)}
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == io.EOF:
			s.eof = true
		case err != nil:
			return nil, err
		}
		break
	}
	s.line, s.col = s.line+1, 1
	if s.first {
		s.first = false
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line, nil
}

// isMark reports whether a line ends a YAML document.
func isMark(line []byte) bool {
	if !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("...")) {
		return false
	}
	return len(line) == 3 || line[3] == ' ' || line[3] == '\t' || line[3] == '\n' || line[3] == '\r'
}

// isBlank reports whether a line holds nothing but space or a comment.
func isBlank(line []byte) bool {
	t := bytes.TrimSpace(line)
	return len(t) == 0 || t[0] == '#'
}

// balance finds the end of a JSON object in a stream of its lines.
type balance struct {
	depth            int
	inString, escape bool
}

// feed returns the index behind the object's closing brace, or -1.
func (b *balance) feed(text []byte) int {
	for i, ch := range text {
		switch {
		case b.escape:
			b.escape = false
		case b.inString:
			b.inString = ch != '"'
			b.escape = ch == '\\'
			if b.escape {
				b.inString = true
			}
		case ch == '"':
			b.inString = true
		case ch == '{' || ch == '[':
			b.depth++
		case ch == '}' || ch == ']':
			b.depth--
			if b.depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
