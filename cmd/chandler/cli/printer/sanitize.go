package printer

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sanitize is text whose control characters are shown and not obeyed. Catalogs, clusters and files are written by
// others: what they call a thing must not be able to repaint, retitle or reorder what a person reads. Ends of lines and
// tabs stay.
func Sanitize(text string) string {
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

// isControl are control characters, and those that change the direction of what follows.
func isControl(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// SanitizingWriter writes to a terminal. Files and pipes get the bytes as they are, since documents have digests.
type SanitizingWriter struct {
	To io.Writer
	// begun is the beginning of a character whose end has not come yet.
	partial []byte
}

// Write implements io.Writer.
func (v *SanitizingWriter) Write(p []byte) (int, error) {
	text := slices.Concat(v.partial, p)
	whole := len(text)
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if last := text[len(text)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				whole -= i
			}
			break
		}
	}
	v.partial = slices.Clone(text[whole:])
	if _, err := io.WriteString(v.To, Sanitize(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}
