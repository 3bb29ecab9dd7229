package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible is text whose control characters are shown and not obeyed. Catalogs, clusters and files are written by others: what
// they call a thing must not be able to repaint, retitle or reorder what a person reads. Ends of lines and tabs stay.
func visible(text string) string {
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hidden are control characters, and those that change the direction of what follows.
func hidden(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// visibly writes to a terminal. Files and pipes get the bytes as they are, since documents have digests.
type visibly struct {
	to io.Writer
	// begun is the beginning of a character whose end has not come yet.
	begun []byte
}

// Write implements io.Writer.
func (v *visibly) Write(p []byte) (int, error) {
	text := slices.Concat(v.begun, p)
	whole := len(text)
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if last := text[len(text)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				whole -= i
			}
			break
		}
	}
	v.begun = slices.Clone(text[whole:])
	if _, err := io.WriteString(v.to, visible(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}
