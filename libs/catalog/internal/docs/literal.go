package docs

// header is the first line of a block scalar.
type header struct {
	folded bool
	chomp  byte // '+' keeps all line ends, '-' none
	indent int  // of its lines, 0 where the first one says it
}

// blockHeader reads "|", ">-", "|2+" and the like, and goes to the next line.
func (y *blockReader) blockHeader(parent int) (h header, ok bool) {
	h.folded = y.data[y.pos] == '>'
	for y.pos++; ; y.pos++ {
		switch c := y.peek(y.pos); {
		case (c == '+' || c == '-') && h.chomp == 0:
			h.chomp = c
			continue
		case c >= '1' && c <= '9' && h.indent == 0:
			h.indent = max(parent, 0) + int(c-'0')
			continue
		}
		break
	}
	at := y.skipSpaces(y.pos)
	if !y.atEnd(y.pos, at) {
		return h, false
	}
	y.pos = y.lineEnd(at)
	y.newline()
	return h, true
}

// blockScalar reads a literal or folded scalar.
func (y *blockReader) blockScalar(parent int) bool {
	line, column := y.place(y.pos)
	h, ok := y.blockHeader(parent)
	if !ok {
		return false
	}
	y.scratch = y.scratch[:0]
	breaks, ok := y.blockBreaks(&h, parent)
	lastBreak, lastBlank := 0, false // line ends that the last line brought, and whether it began with a blank
	for ok && y.pos < len(y.data) && y.pos-y.lineStart == h.indent {
		c := y.data[y.pos]
		blank := c == ' ' || c == '\t'
		switch {
		case !h.folded || lastBreak == 0 || lastBlank || blank:
			y.breaks(lastBreak)
		case breaks == 0:
			y.scratch = append(y.scratch, ' ')
		}
		y.breaks(breaks)
		lastBlank = blank
		to := y.lineEnd(y.pos)
		y.scratch = append(y.scratch, y.data[y.pos:to]...)
		lastBreak = 0
		if y.pos = to; to < len(y.data) {
			lastBreak = 1
		}
		y.newline()
		breaks, ok = y.blockBreaks(&h, parent)
	}
	if !ok {
		return false
	}
	if h.chomp != '-' {
		y.breaks(lastBreak)
	}
	if h.chomp == '+' {
		y.breaks(breaks)
	}
	y.pos = y.lineStart
	text := y.scratch
	y.advance()
	return y.b.String(text, line, column)
}

func (y *blockReader) breaks(n int) {
	for range n {
		y.scratch = append(y.scratch, '\n')
	}
}

// blockBreaks goes over indentation and blank lines, and counts those. Before the first line of text it
// finds the indentation out.
func (y *blockReader) blockBreaks(h *header, parent int) (n int, ok bool) {
	deepest := 0
	for {
		at := y.pos
		for at < len(y.data) && y.data[at] == ' ' && (h.indent == 0 || at-y.lineStart < h.indent) {
			at++
		}
		column := at - y.lineStart
		deepest = max(deepest, column)
		y.pos = at
		if at < len(y.data) && y.data[at] == '\t' && (h.indent == 0 || column < h.indent) {
			return 0, false
		}
		if at >= len(y.data) || y.data[at] != '\n' {
			break
		}
		n++
		y.newline()
	}
	if h.indent == 0 {
		h.indent = max(deepest, parent+1, 1)
	}
	return n, true
}
