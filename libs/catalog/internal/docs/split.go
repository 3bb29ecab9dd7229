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
	long  []byte // a line that is longer than the buffer
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
	var braces balance
	for {
		line, column := s.line, s.col
		text, err := s.nextLine()
		if err != nil {
			return c, err
		}
		if len(text) == 0 && s.eof {
			return c, nil
		}
		if column == 1 && isMark(text) {
			s.mark(text)
			return c, nil
		}
		if c.data == nil {
			if isBlank(text) || text[0] == '%' {
				continue // what stands before a document
			}
			c = begin(text, line, column)
		}
		end := -1
		if c.json {
			end = braces.feed(text)
		}
		if end >= 0 {
			c.data = append(c.data, text[:end]...)
			s.unread(text[end:], line, column+end)
			return c, nil
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

// begin is a document of which the first line is known.
func begin(text []byte, line, column int) Chunk {
	return Chunk{line: line, column: column, data: buffer(), json: bytes.TrimLeft(text, " \t")[0] == '{'}
}

// mark goes over a line such as "---" or "--- # text", which ends a document; what stands behind the mark
// begins the next one.
func (s *splitter) mark(text []byte) {
	if behind := text[3:]; text[0] == '-' && !isBlank(behind) {
		s.unread(behind, s.line-1, 4)
	}
}

// unread puts back what is left of a line. It is not copied: a line may hold thousands of documents.
func (s *splitter) unread(b []byte, line, col int) {
	if len(bytes.TrimLeft(b, " \t\r\n")) > 0 {
		s.rest, s.line, s.col = b, line, col
	}
}

// nextLine returns a line with its end, or what was put back. It is valid until the next one.
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
	line, err := s.readLine()
	if err != nil {
		return nil, err
	}
	s.line, s.col = s.line+1, 1
	if s.first {
		s.first = false
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line, nil
}

// readLine reads up to a line's end within the limits. Only a line longer than the buffer is copied.
func (s *splitter) readLine() ([]byte, error) {
	s.long = s.long[:0]
	for {
		part, err := s.in.ReadSlice('\n')
		s.read += int64(len(part))
		switch {
		case s.read > s.l.FileBytes:
			return nil, &Error{
				Line: s.line, Limit: "file-bytes",
				Message: fmt.Sprintf("a file of more than %d bytes", s.l.FileBytes),
			}
		case len(s.long)+len(part) > s.l.DocumentBytes:
			return nil, &Error{
				Line: s.line, Limit: "document-bytes",
				Message: fmt.Sprintf("a line of more than %d bytes", s.l.DocumentBytes),
			}
		case errors.Is(err, bufio.ErrBufferFull):
			s.long = append(s.long, part...)
			continue
		case err == io.EOF:
			s.eof = true
		case err != nil:
			return nil, err
		}
		if len(s.long) == 0 {
			return part, nil
		}
		s.long = append(s.long, part...)
		return s.long, nil
	}
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
	t := bytes.TrimLeft(line, " \t\r\n\v\f")
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
