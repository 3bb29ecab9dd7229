package printer

import (
	"io"
	"slices"
	"unicode/utf8"

	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
)

// SanitizingWriter writes to a terminal, whatever it is. What people read is made plain where it is composed, too;
// documents in files and pipes are the bytes as they are, since they have digests.
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
	if _, err := io.WriteString(v.To, plain.Text(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}
