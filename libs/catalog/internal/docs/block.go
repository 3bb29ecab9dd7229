package docs

import (
	"unicode/utf8"

	"github.com/chandler-fleet/chandler/libs/internal/jsontree"
)

// blockReader reads YAML as programs write it: block mappings and sequences, plain, quoted and block
// scalars, flow collections on their own. Whatever else it meets, or is not sure of, it gives up on by
// returning false; then nothing that it built counts, and the library reads the document.
//
// Between two values it stands at the first character of a line's content, and indent says in which
// column that is.
type blockReader struct {
	b         *jsontree.Builder
	data      []byte
	pos       int
	line      int // from 1
	lineStart int
	indent    int  // of the line where it stands; end where there is none
	blanks    int  // blank lines before that line
	comments  bool // comments before that line, or behind the value before
	ascii     bool
	key       keySpan
	scratch   []byte
	counted   int // offset up to which characters of the line are counted
	column    int // characters of the line before counted
}

// end is the indentation behind the last line.
const end = -1

// keySpan is where the key of the line stands.
type keySpan struct {
	from, to int // of its text, quotes included
	behind   int // offset behind the colon
}

// maxKey is the length from which on the library takes no text for a key.
const maxKey = 1000

// read reads a whole document. It returns false where the library must look at it.
func (y *blockReader) read(data []byte, b *jsontree.Builder) bool {
	*y = blockReader{b: b, data: data, line: 1, scratch: y.scratch[:0]}
	if !y.printable() {
		return false
	}
	b.Expect(len(data))
	y.advance()
	return y.indent != end && y.node(end) && y.indent == end
}

// printable reports whether all characters are ones that mean in YAML what they mean elsewhere.
func (y *blockReader) printable() bool {
	y.ascii = true
	for i := 0; i < len(y.data); i++ {
		c := y.data[i]
		if c >= 0x20 && c < 0x7f || c == '\n' || c == '\t' {
			continue
		}
		if c < utf8.RuneSelf {
			return false
		}
		y.ascii = false
		r, n := utf8.DecodeRune(y.data[i:])
		// What follows are controls, line ends of YAML 1.1, and marks of byte order.
		if r == utf8.RuneError && n == 1 || r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe ||
			r == 0xffff {
			return false
		}
		i += n - 1
	}
	return true
}

// place is the line and column of an offset of the line. Offsets of one line are asked for in order.
func (y *blockReader) place(at int) (line, column int) {
	if y.ascii {
		return y.line, at - y.lineStart + 1
	}
	if y.counted < y.lineStart || y.counted > at {
		y.counted, y.column = y.lineStart, 0
	}
	y.column += utf8.RuneCount(y.data[y.counted:at])
	y.counted = at
	return y.line, y.column + 1
}

// peek returns the character at an offset, a line's end behind the last one.
func (y *blockReader) peek(at int) byte {
	if at < len(y.data) {
		return y.data[at]
	}
	return '\n'
}

// advance goes from the beginning of a line to the next content.
func (y *blockReader) advance() {
	y.blanks, y.comments = 0, false
	for {
		i := y.pos
		for i < len(y.data) && y.data[i] == ' ' {
			i++
		}
		if i >= len(y.data) {
			y.pos, y.indent = len(y.data), end
			return
		}
		switch y.data[i] {
		case '\n':
			y.blanks++
		case '#':
			y.comments = true
			i = y.lineEnd(i)
		default:
			y.pos, y.indent = i, i-y.lineStart
			return
		}
		y.pos = i
		y.newline()
	}
}

// lineEnd returns the offset of the line's end at or behind at.
func (y *blockReader) lineEnd(at int) int {
	for at < len(y.data) && y.data[at] != '\n' {
		at++
	}
	return at
}

// newline goes over the line's end where it stands.
func (y *blockReader) newline() {
	if y.pos < len(y.data) {
		y.pos++
	}
	y.line++
	y.lineStart = y.pos
}

// finish goes to the next content, where nothing but a comment stands behind a value.
func (y *blockReader) finish() bool {
	at := y.skipSpaces(y.pos)
	if !y.atEnd(y.pos, at) {
		return false
	}
	comment := y.peek(at) == '#'
	y.pos = y.lineEnd(at)
	y.newline()
	y.advance()
	y.comments = y.comments || comment
	return true
}

func (y *blockReader) skipSpaces(at int) int {
	for at < len(y.data) && y.data[at] == ' ' {
		at++
	}
	return at
}

// atEnd reports whether the line ends at an offset, or a comment begins there; from is where the spaces
// before it begin.
func (y *blockReader) atEnd(from, at int) bool {
	c := y.peek(at)
	return c == '\n' || c == '#' && at > from
}

// isDash reports whether an entry of a sequence begins here.
func (y *blockReader) isDash() bool {
	if y.peek(y.pos) != '-' {
		return false
	}
	c := y.peek(y.pos + 1)
	return c == ' ' || c == '\n'
}

// node reads the value that stands on its own line, deeper than its parent.
func (y *blockReader) node(parent int) bool {
	switch {
	case y.isDash():
		return y.sequence(y.indent, false)
	case y.findKey():
		return y.mapping(y.indent)
	default:
		return y.inline(parent)
	}
}

// mapping reads a block mapping, whose first key has been found.
func (y *blockReader) mapping(indent int) bool {
	line, column := y.place(y.pos)
	if !y.b.Begin(jsontree.Object, line, column) {
		return false
	}
	for {
		if !y.addKey() || !y.value(indent) {
			return false
		}
		if y.indent != indent {
			break
		}
		if !y.findKey() {
			return false
		}
	}
	return y.indent < indent && y.b.End()
}

// value reads what stands behind the colon of a key.
func (y *blockReader) value(indent int) bool {
	at := y.skipSpaces(y.pos)
	if !y.atEnd(y.pos, at) {
		y.pos = at
		return y.inline(indent)
	}
	line, column := y.place(y.pos)
	if !y.finish() {
		return false
	}
	switch {
	case y.indent > indent:
		return y.node(indent)
	case y.indent == indent && y.isDash():
		return y.sequence(indent, true)
	default:
		return y.b.Null(line, column)
	}
}

// sequence reads a block sequence. A compact one stands in the column of the key that it belongs to, so
// that another key may follow.
func (y *blockReader) sequence(indent int, compact bool) bool {
	line, column := y.place(y.pos)
	if !y.b.Begin(jsontree.Array, line, column) {
		return false
	}
	for y.indent == indent && y.isDash() {
		y.pos++
		if !y.entry(indent) {
			return false
		}
	}
	return (y.indent < indent || compact && y.indent == indent) && y.b.End()
}

// entry reads what stands behind a dash.
func (y *blockReader) entry(indent int) bool {
	at := y.skipSpaces(y.pos)
	if y.atEnd(y.pos, at) {
		line, column := y.place(y.pos)
		if !y.finish() {
			return false
		}
		if y.indent > indent {
			return y.node(indent)
		}
		return y.b.Null(line, column)
	}
	y.pos, y.indent = at, at-y.lineStart // nothing but dashes and spaces stands before
	return y.node(indent)
}

// inline reads a scalar or a flow collection.
func (y *blockReader) inline(parent int) bool {
	switch y.peek(y.pos) {
	case '"', '\'':
		line, column := y.place(y.pos)
		text, ok := y.quoted(false)
		return ok && y.b.String(text, line, column) && y.finish()
	case '|', '>':
		return y.blockScalar(parent)
	case '[', '{':
		return y.flow() && y.finish()
	default:
		return y.plain(parent)
	}
}

// findKey looks for a key and its colon from where it stands to the end of the line.
func (y *blockReader) findKey() bool {
	at := y.pos
	switch c := y.peek(at); {
	case c == '"' || c == '\'':
		if at = y.skipQuoted(at); at < 0 {
			return false
		}
		y.key = keySpan{from: y.pos, to: at}
		at = y.skipSpaces(at)
		y.key.behind = at + 1
		return at-y.pos < maxKey && y.peek(at) == ':' && y.endsKey(at+1)
	case !y.startsPlain(at):
		return false
	}
	for ; at-y.pos < maxKey; at++ {
		switch c := y.peek(at); {
		case c == '\n' || c == '\t' || c == '#' && y.data[at-1] == ' ':
			return false
		case c == ':' && y.endsKey(at+1):
			to := at
			for y.data[to-1] == ' ' {
				to--
			}
			y.key = keySpan{from: y.pos, to: to, behind: at + 1}
			return true
		}
	}
	return false
}

func (y *blockReader) endsKey(at int) bool {
	c := y.peek(at)
	return c == ' ' || c == '\n'
}

// addKey adds the key that was found, and goes behind its colon.
func (y *blockReader) addKey() bool {
	line, column := y.place(y.pos)
	text := y.data[y.key.from:y.key.to]
	behind := y.key.behind
	switch {
	case text[0] == '"' || text[0] == '\'':
		quoted, ok := y.quoted(true)
		if !ok {
			return false
		}
		text = quoted
	case string(text) == "<<":
		return false
	case ambiguous(string(text), true):
		y.b.Doubt()
	}
	y.b.Key(text, line, column)
	y.pos = behind
	return true
}

// skipQuoted returns the offset behind a quoted scalar that ends on its line, else -1.
func (y *blockReader) skipQuoted(at int) int {
	quote := y.data[at]
	for at++; at < len(y.data); at++ {
		switch c := y.data[at]; {
		case c == '\n':
			return -1
		case c == '\\' && quote == '"':
			at++
		case c == quote && quote == '\'' && y.peek(at+1) == quote:
			at++
		case c == quote:
			return at + 1
		}
	}
	return -1
}
