package docs

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// startsPlain reports whether a plain scalar can begin at an offset.
func (y *blockReader) startsPlain(at int) bool {
	switch y.peek(at) {
	case '\n', '\t', ' ', ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`', '?', ':':
		return false
	case '-':
		c := y.peek(at + 1)
		return c != ' ' && c != '\n' && c != '\t'
	}
	return true
}

// plain reads a plain scalar, which goes on in lines that are deeper than its parent.
func (y *blockReader) plain(parent int) bool {
	if !y.startsPlain(y.pos) {
		return false
	}
	line, column := y.place(y.pos)
	text, ok := y.plainLine()
	if !ok || !y.finish() {
		return false
	}
	if y.indent <= parent {
		return y.addPlain(text, line, column)
	}
	y.scratch = append(y.scratch[:0], text...)
	for y.indent > parent {
		if y.comments {
			return false
		}
		y.fold(y.blanks)
		if text, ok = y.plainLine(); !ok || len(text) == 0 {
			return false
		}
		y.scratch = append(y.scratch, text...)
		if !y.finish() {
			return false
		}
	}
	return y.addPlain(y.scratch, line, column)
}

// fold appends what a line's end and so many blank lines behind it become.
func (y *blockReader) fold(blanks int) {
	if blanks == 0 {
		y.scratch = append(y.scratch, ' ')
	}
	for range blanks {
		y.scratch = append(y.scratch, '\n')
	}
}

// plainLine goes to the end of a plain scalar's line, or to the spaces before a comment.
func (y *blockReader) plainLine() ([]byte, bool) {
	from := y.pos
	at := from
	for ; at < len(y.data); at++ {
		c := y.data[at]
		if c == '\n' || c == '#' && at > from && y.data[at-1] == ' ' {
			break
		}
		if c == '\t' || c == ':' && y.endsKey(at+1) {
			return nil, false
		}
	}
	for at > from && y.data[at-1] == ' ' {
		at--
	}
	y.pos = at
	return y.data[from:at], true
}

// longestWord is the length of the longest plain scalar of letters that is no string.
const longestWord = 5

// addPlain adds a plain scalar as what it means.
func (y *blockReader) addPlain(text []byte, line, column int) bool {
	switch c := text[0]; {
	case c >= '0' && c <= '9', c == '-', c == '+', c == '.', c == '~', c == '<', c == '=':
		if integer(text) {
			return y.b.Number(text, line, column)
		}
	case len(text) > longestWord || c < 'A' || c > 'z':
		return y.b.String(text, line, column)
	case string(text) == "true":
		return y.b.Bool(true, line, column)
	case string(text) == "false":
		return y.b.Bool(false, line, column)
	}
	if ambiguous(string(text), false) {
		y.b.Doubt()
	}
	w := writer{b: y.b}
	return w.scalar(&yaml.Node{Kind: yaml.ScalarNode, Value: string(text), Line: line, Column: column})
}

// integer reports whether a text is an integer that JSON and YAML write alike.
func integer(text []byte) bool {
	const most = 18
	digits := bytes.TrimPrefix(text, []byte("-"))
	if len(digits) == 0 || len(digits) > most || digits[0] == '0' && len(text) > 1 {
		return false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// quoted reads a quoted scalar and goes behind it. What it returns is valid until the next scalar. One
// that must be on a single line gives up at the line's end.
func (y *blockReader) quoted(single bool) ([]byte, bool) {
	quote := y.data[y.pos]
	y.pos++
	from := y.pos
	y.scratch = y.scratch[:0]
	for y.pos < len(y.data) {
		c := y.data[y.pos]
		switch {
		case c == quote && quote == '\'' && y.peek(y.pos+1) == quote:
			y.scratch = append(y.scratch, y.data[from:y.pos+1]...)
			y.pos += 2
			from = y.pos
		case c == quote:
			text := y.data[from:y.pos]
			if len(y.scratch) > 0 {
				y.scratch = append(y.scratch, text...)
				text = y.scratch
			}
			y.pos++
			return text, true
		case c == '\t':
			return nil, false
		case c == '\n':
			if single || !y.foldQuoted(from) {
				return nil, false
			}
			from = y.pos
		case c == '\\' && quote == '"':
			y.scratch = append(y.scratch, y.data[from:y.pos]...)
			if y.peek(y.pos+1) == '\n' {
				if single || !y.joinQuoted() {
					return nil, false
				}
			} else if !y.escape() {
				return nil, false
			}
			from = y.pos
		default:
			y.pos++
		}
	}
	return nil, false
}

// foldQuoted folds the end of a line inside quotes; from is where the text begins that is not in scratch.
func (y *blockReader) foldQuoted(from int) bool {
	y.scratch = append(y.scratch, bytes.TrimRight(y.data[from:y.pos], " ")...)
	blanks, ok := y.blankLines()
	if !ok {
		return false
	}
	y.fold(blanks)
	return true
}

// joinQuoted goes over an escaped end of a line.
func (y *blockReader) joinQuoted() bool {
	y.pos++
	blanks, ok := y.blankLines()
	if !ok {
		return false
	}
	for range blanks {
		y.scratch = append(y.scratch, '\n')
	}
	return true
}

// blankLines goes over a line's end and the blank lines and spaces behind it, and counts the blank lines.
// A sign of a document's end, and the end of the text, make it give up.
func (y *blockReader) blankLines() (int, bool) {
	for blanks := 0; ; blanks++ {
		y.newline()
		y.pos = y.skipSpaces(y.pos)
		switch c := y.peek(y.pos); {
		case y.pos >= len(y.data), c == '\t', c == '-' && y.pos == y.lineStart, c == '.' && y.pos == y.lineStart:
			return 0, false
		case c != '\n':
			return blanks, true
		}
	}
}

// short are the escapes of one letter in double quotes.
var short = [256]byte{
	'0': 0x80, 'a': '\a', 'b': '\b', 't': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r', 'e': 0x1b,
	' ': ' ', '"': '"', '\\': '\\',
}

// escape appends what an escape in double quotes stands for.
func (y *blockReader) escape() bool {
	letter := y.peek(y.pos + 1)
	y.pos += 2
	var digits int
	switch letter {
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	default:
		c := short[letter]
		if c == 0 {
			return false // the rare ones, and what is no escape
		}
		if c == short['0'] {
			c = 0
		}
		y.scratch = append(y.scratch, c)
		return true
	}
	if y.pos+digits > len(y.data) {
		return false
	}
	var r rune
	for _, c := range y.data[y.pos : y.pos+digits] {
		d := strings.IndexByte("0123456789abcdef", c|0x20)
		if d < 0 || c < '0' || r > utf8.MaxRune {
			return false
		}
		r = r<<4 | rune(d)
	}
	if utf16.IsSurrogate(r) || r > utf8.MaxRune {
		return false
	}
	y.pos += digits
	y.scratch = utf8.AppendRune(y.scratch, r)
	return true
}
