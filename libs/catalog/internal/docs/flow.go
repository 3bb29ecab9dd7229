package docs

import "github.com/chandler-fleet/chandler/libs/internal/jsontree"

// flow reads a flow collection: [a, "b", {c: d}]. It gives up on empty entries, on comments inside and on
// plain scalars of several lines.
func (y *blockReader) flow() bool {
	line, column := y.place(y.pos)
	open := y.data[y.pos]
	kind, closing := jsontree.Array, byte(']')
	if open == '{' {
		kind, closing = jsontree.Object, '}'
	}
	y.pos++
	if !y.b.Begin(kind, line, column) || !y.flowSpace() {
		return false
	}
	if y.data[y.pos] == closing {
		y.pos++
		return y.b.End()
	}
	for {
		if kind == jsontree.Object && !y.flowKey() || !y.flowValue() || !y.flowSpace() {
			return false
		}
		c := y.data[y.pos]
		y.pos++
		switch {
		case c == closing:
			return y.b.End()
		case c != ',' || !y.flowSpace():
			return false
		}
	}
}

// flowSpace goes over spaces and line ends. It returns false at the end of the text.
func (y *blockReader) flowSpace() bool {
	for {
		y.pos = y.skipSpaces(y.pos)
		if y.pos >= len(y.data) {
			return false
		}
		if y.data[y.pos] != '\n' {
			return true
		}
		y.newline()
	}
}

// flowKey reads a key and the colon behind it.
func (y *blockReader) flowKey() bool {
	line, column := y.place(y.pos)
	from := y.pos
	var text []byte
	var ok bool
	c := y.data[y.pos]
	quoted := c == '"' || c == '\''
	if quoted {
		text, ok = y.quoted(true)
	} else {
		text, ok = y.flowPlain()
	}
	if !ok || !quoted && string(text) == "<<" || y.pos-from > maxKey {
		return false
	}
	if !quoted && ambiguous(string(text), true) {
		y.b.Doubt()
	}
	y.b.Key(text, line, column)
	y.pos = y.skipSpaces(y.pos)
	if y.peek(y.pos) != ':' || !quoted && y.peek(y.pos+1) != ' ' {
		return false
	}
	y.pos++
	return y.flowSpace()
}

func (y *blockReader) flowValue() bool {
	line, column := y.place(y.pos)
	switch y.data[y.pos] {
	case '[', '{':
		return y.flow()
	case '"', '\'':
		text, ok := y.quoted(false)
		return ok && y.b.String(text, line, column)
	default:
		text, ok := y.flowPlain()
		return ok && y.addPlain(text, line, column)
	}
}

// flowPlain reads a plain scalar inside a flow collection.
func (y *blockReader) flowPlain() ([]byte, bool) {
	from := y.pos
	if !y.startsPlain(from) || y.data[from] == '-' && y.peek(from+1) < '0' {
		return nil, false
	}
	at := from
scan:
	for {
		switch c := y.peek(at); c {
		case ',', ']', '}':
			break scan
		case '\n', '\t', '#', '[', '{', '?':
			return nil, false
		case ':':
			if next := y.peek(at + 1); next == ' ' {
				break scan
			} else if next == ',' || next == '[' || next == ']' || next == '{' || next == '}' || next == '\n' ||
				next == '?' || next == '\t' {
				return nil, false
			}
		}
		at++
	}
	to := at
	for y.data[to-1] == ' ' {
		to--
	}
	y.pos = at
	return y.data[from:to], true
}
