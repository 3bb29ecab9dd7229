// Package plain makes text that others wrote fit to be shown: catalogs, clusters and files name things, and what they
// call them must not be able to repaint, retitle or reorder what a person reads, nor to look like a line of ours. It is
// for what people read, on terminals and in the logs of pipelines alike; documents for programs stay exact.
package plain

import (
	"fmt"
	"strings"
	"unicode"
)

// Text is text whose control characters are shown and not obeyed. Ends of lines and tabs stay.
func Text(text string) string {
	if strings.IndexFunc(text, isControl) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if isControl(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Cell is text on one line, for a cell of a table, a field or a sentence: an end of a line would begin a row of the
// author's own, and a tab a column.
func Cell(text string) string {
	if strings.ContainsAny(text, "\n\r\t\v\f") {
		ends := func(r rune) bool { return strings.ContainsRune("\n\r\t\v\f", r) }
		text = strings.Join(strings.FieldsFunc(text, ends), " ")
	}
	return Text(text)
}

// isControl are control characters, separators that some programs take for ends of lines, and characters that change
// the direction of what follows.
func isControl(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || r == '\u2028' || r == '\u2029' ||
		unicode.Is(unicode.Bidi_Control, r)
}
