package digest

import "unicode/utf8"

// isCanonical reports whether b is RFC 8785 JSON already, in one pass and without memory. It says no
// where it is not sure (numbers that are no small integers, keys beyond the range in which bytes and
// UTF-16 sort alike), so that a no costs time and a yes is always right. Manifests of catalogs come
// through here by the gigabyte, written canonically by their decoder.
func isCanonical(b []byte) bool {
	c := canonicalReader{b: b}
	return c.value(0) && c.i == len(b)
}

// maxCheckedDepth bounds recursion; what is nested deeper takes the slow way.
const maxCheckedDepth = 500

type canonicalReader struct {
	b []byte
	i int
}

func (c *canonicalReader) peek() byte {
	if c.i < len(c.b) {
		return c.b[c.i]
	}
	return 0
}

func (c *canonicalReader) take(ch byte) bool {
	if c.peek() != ch {
		return false
	}
	c.i++
	return true
}

func (c *canonicalReader) value(depth int) bool {
	if depth > maxCheckedDepth {
		return false
	}
	switch c.peek() {
	case '{':
		return c.object(depth)
	case '[':
		return c.array(depth)
	case '"':
		_, ok := c.str()
		return ok
	case 't':
		return c.word("true")
	case 'f':
		return c.word("false")
	case 'n':
		return c.word("null")
	default:
		return c.integer()
	}
}

func (c *canonicalReader) word(w string) bool {
	if len(c.b)-c.i < len(w) || string(c.b[c.i:c.i+len(w)]) != w {
		return false
	}
	c.i += len(w)
	return true
}

func (c *canonicalReader) array(depth int) bool {
	c.i++
	if c.take(']') {
		return true
	}
	for c.value(depth + 1) {
		if c.take(']') {
			return true
		}
		if !c.take(',') {
			return false
		}
	}
	return false
}

func (c *canonicalReader) object(depth int) bool {
	c.i++
	if c.take('}') {
		return true
	}
	last, first := "", true
	for {
		key, ok := c.key()
		if !ok || !first && key <= last {
			return false
		}
		last, first = key, false
		if !c.take(':') || !c.value(depth+1) {
			return false
		}
		if c.take('}') {
			return true
		}
		if !c.take(',') {
			return false
		}
	}
}

// key reads a key that sorts by bytes as it does by UTF-16: without escapes, and below U+E000.
func (c *canonicalReader) key() (string, bool) {
	raw, ok := c.str()
	if !ok {
		return "", false
	}
	for _, ch := range raw {
		if ch == '\\' || ch >= 0xee {
			return "", false
		}
	}
	return string(raw), true
}

// str reads a string and returns what stands between its quotes.
func (c *canonicalReader) str() ([]byte, bool) {
	if !c.take('"') {
		return nil, false
	}
	start := c.i
	for c.i < len(c.b) {
		switch ch := c.b[c.i]; {
		case ch == '"':
			c.i++
			return c.b[start : c.i-1], true
		case ch == '\\':
			if !c.escape() {
				return nil, false
			}
		case ch < 0x20:
			return nil, false
		case ch < utf8.RuneSelf:
			c.i++
		default:
			r, n := utf8.DecodeRune(c.b[c.i:])
			if r == utf8.RuneError && n == 1 {
				return nil, false
			}
			c.i += n
		}
	}
	return nil, false
}

// escape reads one of the escapes that the canonical form has.
func (c *canonicalReader) escape() bool {
	if c.i+1 >= len(c.b) {
		return false
	}
	switch c.b[c.i+1] {
	case '"', '\\', 'b', 'f', 'n', 'r', 't':
		c.i += 2
		return true
	}
	return false // \u00xx exists in the canonical form, and is rare
}

// integer reads an integer that every double holds exactly and prints as it stands.
func (c *canonicalReader) integer() bool {
	const maxDigits = 15
	neg := c.take('-')
	start := c.i
	for c.i < len(c.b) && c.b[c.i] >= '0' && c.b[c.i] <= '9' {
		c.i++
	}
	n := c.i - start
	if n == 0 || n > maxDigits || n > 1 && c.b[start] == '0' || neg && c.b[start] == '0' {
		return false
	}
	switch c.peek() {
	case '.', 'e', 'E':
		return false
	}
	return true
}
