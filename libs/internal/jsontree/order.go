package jsontree

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// compareKeys orders quoted keys as RFC 8785 has it: by their UTF-16 code units. Bytes sort alike where
// nothing is escaped and nothing lies beyond U+DFFF.
func compareKeys(a, b []byte) int {
	if simpleKey(a) && simpleKey(b) {
		return bytes.Compare(a[1:len(a)-1], b[1:len(b)-1])
	}
	return slices.Compare(utf16.Encode([]rune(unquote(a))), utf16.Encode([]rune(unquote(b))))
}

// beyondBMP is the first byte of characters whose order differs between UTF-8 and UTF-16.
const beyondBMP = 0xee

func simpleKey(quoted []byte) bool {
	for _, c := range quoted {
		if c == '\\' || c >= beyondBMP {
			return false
		}
	}
	return true
}

// maxExactDigits is how many digits an integer may have that every reader holds exactly.
const maxExactDigits = 15

// smallInteger reports whether a JSON number is its own canonical form.
func smallInteger(text []byte) bool {
	digits := bytes.TrimPrefix(text, []byte("-"))
	if len(digits) == 0 || len(digits) > maxExactDigits || digits[0] == '0' && len(text) > 1 {
		return false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// inRange reports whether a JSON number is one that a reader of doubles can hold.
func inRange(text []byte) bool {
	const always = 300 // digits and signs without an exponent that no double is too small for
	if len(text) < always && bytes.IndexByte(text, 'e') < 0 && bytes.IndexByte(text, 'E') < 0 {
		return true
	}
	_, err := strconv.ParseFloat(string(text), 64)
	return err == nil
}

// appendNumber appends the canonical form of a JSON number.
func appendNumber(b []byte, text string) []byte {
	if !strings.ContainsAny(text, ".eE") {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return strconv.AppendInt(b, i, 10)
		}
		if u, err := strconv.ParseUint(text, 10, 64); err == nil {
			return strconv.AppendUint(b, u, 10)
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return append(b, text...) // a fault has been told
	}
	if f == 0 { // RFC 8785 has no negative zero
		return append(b, '0')
	}
	raw, err := json.Marshal(f) // writes doubles as ECMAScript does
	if err != nil {
		return append(b, text...)
	}
	return append(b, raw...)
}

// duplicate finds a key that occurs twice in the last object: it returns the later one, 0 for none.
func (t *Tree) duplicate(object uint32, scratch []uint32) (uint32, []uint32) {
	keys := scratch[:0]
	for i := object + 1; int(i) < len(t.nodes); i = t.nodes[i+1].next {
		keys = append(keys, i)
	}
	slices.SortFunc(keys, func(x, y uint32) int {
		return cmp.Or(bytes.Compare(t.quoted(x), t.quoted(y)), cmp.Compare(x, y))
	})
	var found uint32
	for i := 1; i < len(keys); i++ {
		if bytes.Equal(t.quoted(keys[i-1]), t.quoted(keys[i])) && (found == 0 || keys[i] < found) {
			found = keys[i]
		}
	}
	return found, keys
}
