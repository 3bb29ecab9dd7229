package jsontree

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Read adds the JSON text of one document. Where it returns an error, the builder holds none. Text that
// is not UTF-8, and escapes of half a character, are refused: no other form can hold them.
func (b *Builder) Read(data []byte) *Error {
	r := reader{data: data, b: b, line: 1}
	r.space()
	if r.value() {
		r.space()
		if r.pos == len(data) {
			return nil
		}
		r.message = "text behind the end of the document"
	}
	if b.err != nil {
		return b.err
	}
	return r.explain()
}

// reader reads JSON text. Lines and columns are counted once, as it goes on.
type reader struct {
	data    []byte
	pos     int
	b       *Builder
	line    int
	counted int // offset up to which columns are counted
	column  int // characters of the line before counted
	message string
	limit   string
	scratch []byte
}

// place counts up to where the reader is.
func (r *reader) place() (line, column int) {
	for _, c := range r.data[r.counted:r.pos] {
		if c < utf8.RuneSelf || c >= 0xc0 {
			r.column++
		}
	}
	r.counted = r.pos
	return r.line, r.column + 1
}

// explain says what is wrong where the reader stopped; what it has no words for, encoding/json has.
func (r *reader) explain() *Error {
	line, column := r.place()
	e := &Error{Line: line, Column: column, Limit: r.limit, Message: "not JSON: " + r.message}
	if r.message != "" {
		return e
	}
	err := json.Unmarshal(r.data, new(json.RawMessage))
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		if int(syntax.Offset) >= len(r.data) && strings.HasPrefix(syntax.Error(), "unexpected end") {
			err = io.ErrUnexpectedEOF
		}
		before := r.data[:min(max(int(syntax.Offset)-1, 0), len(r.data))]
		e.Line = 1 + bytes.Count(before, []byte{'\n'})
		e.Column = 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	}
	e.Message = "not JSON: it cannot be read"
	if err != nil {
		e.Message = "not JSON: " + err.Error()
	}
	return e
}

func (r *reader) space() {
	for r.pos < len(r.data) {
		switch r.data[r.pos] {
		case ' ', '\t', '\r':
			r.pos++
		case '\n':
			r.pos++
			r.line++
			r.counted, r.column = r.pos, 0
		default:
			return
		}
	}
}

func (r *reader) peek() byte {
	if r.pos < len(r.data) {
		return r.data[r.pos]
	}
	return 0
}

func (r *reader) take(c byte) bool {
	if r.peek() != c {
		return false
	}
	r.pos++
	return true
}

func (r *reader) value() bool {
	line, column := r.place()
	switch r.peek() {
	case '{':
		return r.b.Begin(Object, line, column) && r.object() && r.b.End()
	case '[':
		return r.b.Begin(Array, line, column) && r.array() && r.b.End()
	case '"':
		text, ok := r.str()
		return ok && r.b.String(text, line, column)
	case 't':
		return r.word("true") && r.b.Bool(true, line, column)
	case 'f':
		return r.word("false") && r.b.Bool(false, line, column)
	case 'n':
		return r.word("null") && r.b.Null(line, column)
	default:
		text, ok := r.number()
		return ok && r.b.Number(text, line, column)
	}
}

func (r *reader) word(w string) bool {
	if len(r.data)-r.pos < len(w) || string(r.data[r.pos:r.pos+len(w)]) != w {
		return false
	}
	r.pos += len(w)
	return true
}

// then goes over space and takes one character.
func (r *reader) then(c byte) bool {
	r.space()
	return r.take(c)
}

func (r *reader) array() bool {
	r.pos++
	if r.then(']') {
		return true
	}
	for {
		r.space()
		if !r.value() {
			return false
		}
		if r.then(']') {
			return true
		}
		if !r.take(',') {
			return false
		}
	}
}

func (r *reader) object() bool {
	r.pos++
	if r.then('}') {
		return true
	}
	for {
		r.space()
		line, column := r.place()
		key, ok := r.str()
		if !ok {
			return false
		}
		r.b.Key(key, line, column)
		if !r.then(':') {
			return false
		}
		r.space()
		if !r.value() {
			return false
		}
		if r.then('}') {
			return true
		}
		if !r.take(',') {
			return false
		}
	}
}

// number returns the text of a number.
func (r *reader) number() ([]byte, bool) {
	start := r.pos
	r.take('-')
	switch {
	case r.take('0'):
	case r.digits() == 0:
		return nil, false
	}
	if r.take('.') && r.digits() == 0 {
		return nil, false
	}
	if r.take('e') || r.take('E') {
		if !r.take('+') {
			r.take('-')
		}
		if r.digits() == 0 {
			return nil, false
		}
	}
	return r.data[start:r.pos], true
}

func (r *reader) digits() int {
	start := r.pos
	for r.pos < len(r.data) && r.data[r.pos] >= '0' && r.data[r.pos] <= '9' {
		r.pos++
	}
	return r.pos - start
}

// str returns what a string says. It is valid until the next one is read.
func (r *reader) str() ([]byte, bool) {
	if !r.take('"') {
		return nil, false
	}
	start := r.pos
	r.scratch = r.scratch[:0]
	for r.pos < len(r.data) {
		c := r.data[r.pos]
		switch {
		case plainByte[c] && c < utf8.RuneSelf:
			r.pos++
		case c == '"':
			text := r.data[start:r.pos]
			r.pos++
			if len(r.scratch) == 0 {
				return text, true
			}
			r.scratch = append(r.scratch, text...)
			return r.scratch, true
		case c == '\\':
			r.scratch = append(r.scratch, r.data[start:r.pos]...)
			if !r.escape() {
				return nil, false
			}
			start = r.pos
		case c < 0x20:
			return nil, false
		default:
			if _, n := utf8.DecodeRune(r.data[r.pos:]); n > 1 {
				r.pos += n
				continue
			}
			r.message, r.limit = "the text is not UTF-8", "utf-8"
			return nil, false
		}
	}
	return nil, false
}

// escapes are the short ones, by their letter.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escape appends what an escape stands for.
func (r *reader) escape() bool {
	if r.pos+1 >= len(r.data) {
		return false
	}
	letter := r.data[r.pos+1]
	if letter != 'u' {
		c := escapes[letter]
		r.scratch = append(r.scratch, c)
		r.pos += 2
		return c != 0
	}
	u, ok := r.unit()
	if !ok {
		return false
	}
	if utf16.IsSurrogate(u) {
		var low rune
		if r.peek() == '\\' {
			low, _ = r.unit()
		}
		if u = utf16.DecodeRune(u, low); u == utf8.RuneError {
			r.message, r.limit = "an escape stands for half a character", "utf-8"
			return false
		}
	}
	r.scratch = utf8.AppendRune(r.scratch, u)
	return true
}

// unit reads \uXXXX.
func (r *reader) unit() (rune, bool) {
	const length = 6
	if len(r.data)-r.pos < length || r.data[r.pos+1] != 'u' {
		return 0, false
	}
	var u rune
	for _, c := range r.data[r.pos+2 : r.pos+length] {
		u <<= 4
		switch {
		case c >= '0' && c <= '9':
			u |= rune(c - '0')
		case c >= 'a' && c <= 'f':
			u |= rune(c-'a') + 10
		case c >= 'A' && c <= 'F':
			u |= rune(c-'A') + 10
		default:
			return 0, false
		}
	}
	r.pos += length
	return u, true
}
