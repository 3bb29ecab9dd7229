package fbc

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// tree is a JSON value with the keys of its objects in the order of the source. Kind is '{', '[' or '"',
// or 'x' for numbers, booleans and null; text is what the string says, or the token as it stands.
type tree struct {
	kind  byte
	text  string
	keys  []string
	items []tree
}

// parse reads one JSON value that libs/catalog would take: its bounds hold here, too.
func parse(raw []byte) (tree, error) {
	if len(raw) > catalog.MaxDocumentBytes {
		return tree{}, errs.New(errs.TooLarge, "a catalog document has %d bytes, more than %d; split it", len(raw),
			catalog.MaxDocumentBytes).At("", "R-CAT-1")
	}
	if !json.Valid(raw) || !utf8.Valid(raw) {
		return tree{}, errs.New(errs.Invalid, "a catalog document is no valid JSON").At("", "R-CAT-1")
	}
	p := parser{raw: raw}
	t := p.value(0)
	return t, p.err
}

// parser walks text that is known to be JSON.
type parser struct {
	raw []byte
	i   int
	err error
}

func (p *parser) space() {
	for p.i < len(p.raw) && strings.IndexByte(" \t\r\n,:", p.raw[p.i]) >= 0 {
		p.i++
	}
}

func (p *parser) value(depth int) tree {
	p.space()
	if depth > catalog.MaxNesting {
		p.err = errs.New(errs.TooLarge, "values of a catalog document nest more than %d deep", catalog.MaxNesting).At(
			"", "R-CAT-1")
	}
	if p.err != nil {
		return tree{}
	}
	switch c := p.raw[p.i]; c {
	case '{', '[':
		return p.container(c, depth)
	case '"':
		return tree{kind: '"', text: p.str()}
	default:
		return tree{kind: 'x', text: p.token()}
	}
}

func (p *parser) container(kind byte, depth int) tree {
	t := tree{kind: kind}
	p.i++
	seen := map[string]bool{}
	for p.err == nil {
		p.space()
		if c := p.raw[p.i]; c == '}' || c == ']' {
			p.i++
			break
		}
		if kind == '{' {
			key := p.str()
			if seen[key] {
				p.err = errs.New(errs.Invalid, "key %q occurs twice in one object of a catalog document; keep one",
					key).At("", "R-CAT-1")
			}
			seen[key] = true
			t.keys = append(t.keys, key)
		}
		t.items = append(t.items, p.value(depth+1))
	}
	return t
}

// token reads a number, true, false or null.
func (p *parser) token() string {
	from := p.i
	for p.i < len(p.raw) && strings.IndexByte(" \t\r\n,:]}", p.raw[p.i]) < 0 {
		p.i++
	}
	return string(p.raw[from:p.i])
}

func (p *parser) str() string {
	from := p.i
	p.i++
	plain := true
	for p.raw[p.i] != '"' {
		if p.raw[p.i] == '\\' {
			plain = false
			p.i++
		}
		p.i++
	}
	p.i++
	if plain {
		return string(p.raw[from+1 : p.i-1])
	}
	var s string
	if err := json.Unmarshal(p.raw[from:p.i], &s); err != nil {
		p.err = errs.Wrap(errs.Invalid, err, "a catalog document is no valid JSON")
	}
	return s
}

// quote writes a string between double quotes, so that readers of JSON and of YAML read the same: with
// JSON's escapes, also for characters that YAML does not let stand.
func quote(out *bytes.Buffer, s string) {
	out.WriteByte('"')
	from := 0
	for i, r := range s {
		if r != '"' && r != '\\' && printable(r) {
			continue
		}
		out.WriteString(s[from:i])
		from = i + utf8.RuneLen(r)
		escape(out, r)
	}
	out.WriteString(s[from:])
	out.WriteByte('"')
}

// escape writes one character of the basic plane, with a short escape where there is one.
func escape(out *bytes.Buffer, r rune) {
	const short, letters, hex = "\"\\\b\f\n\r\t", "\"\\bfnrt", "0123456789abcdef"
	out.WriteByte('\\')
	if i := strings.IndexRune(short, r); i >= 0 {
		out.WriteByte(letters[i])
		return
	}
	out.WriteByte('u')
	for shift := 12; shift >= 0; shift -= 4 {
		out.WriteByte(hex[r>>shift&15])
	}
}

// printable reports whether YAML lets a character stand as it is, in its strictest reading: no controls,
// no line and paragraph separators, no byte order mark, no characters without meaning.
func printable(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0xfffe, r == 0xffff:
		return false
	}
	return true
}
