package printer

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
)

// Warnings are sentences as the command line warns with them.
func Warnings(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = "warning: " + t
	}
	return out
}

// ShownChanges is how many single changes of one kind are listed: what is more stands in -o json.
const ShownChanges = 20

// Limit keeps the first lines and counts the others.
func Limit(lines []string) []string {
	if len(lines) <= ShownChanges {
		return lines
	}
	return append(lines[:ShownChanges:ShownChanges], fmt.Sprintf("… and %d more; see -o json", len(lines)-ShownChanges))
}

// textWidth is the width of a line, so that a little may stand before it; longer words, such as digests, exceed it.
const textWidth = 96

// Narrow is the width of a terminal as it comes.
const Narrow = 80

// Text is text for people, in lines of some width.
type Text struct {
	strings.Builder

	Width int // of a line; 0 is textWidth
}

// String is the text without the end of its last line.
func (t *Text) String() string { return plain.Text(strings.TrimRight(t.Builder.String(), "\n")) }

// Put writes a paragraph; its first line stands behind lead, the others below the text.
func (t *Text) Put(lead, text string) {
	width := cmp.Or(t.Width, textWidth)
	indent := strings.Repeat(" ", len(lead))
	line := lead
	for word := range strings.FieldsSeq(text) {
		switch {
		case len(line) == len(lead):
			line += word
		case len(line)+1+len(word) > width:
			t.WriteString(line + "\n")
			line = indent + word
			lead = indent
		default:
			line += " " + word
		}
	}
	t.WriteString(line + "\n")
}

// Heading writes a heading behind an empty line.
func (t *Text) Heading(text string) { t.WriteString("\n" + plain.Cell(text) + "\n") }

// Age is how kubectl writes how long ago something was.
func Age(now, t time.Time) string {
	if t.IsZero() {
		return None
	}
	return duration.HumanDuration(now.Sub(t))
}

// Plural is a number with its noun.
func Plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}
