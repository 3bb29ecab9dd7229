// Package conformance has the commands that resolve cases offline: chandler resolve shows what comes of one, chandler
// conformance compares all cases of a folder with what OLM Classic did. Neither needs a server. The form of
// a case is told in docs/conformance.md; services/resolver/conformance holds the rules, this package the files.
package conformance

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/author"
)

// Env is what the commands take from their process.
type Env struct {
	In  io.Reader
	Out io.Writer
}

// exitNot is the status of what was done and does not come out well: something is impossible. What cannot be
// done at all has status 2, as the commands for authors have it.
const exitNot = 1

// Commands returns the commands resolve and conformance.
func Commands(env Env) []*cobra.Command {
	all := []*cobra.Command{resolveCommand(env), compareCommand(env)}
	for _, c := range all {
		author.Statuses(c)
	}
	return all
}

// width is what a line of text for people has at most, where words allow it.
const width = 80

// wrapped writes text in lines that begin with indent, the first one with lead instead.
func wrapped(w io.Writer, lead, indent, text string) {
	line, begun := lead, false
	for word := range strings.FieldsSeq(clean(text)) {
		if begun && len([]rune(line))+1+len([]rune(word)) > width {
			fmt.Fprintln(w, line)
			line, begun = indent, false
		}
		if begun {
			line += " "
		}
		line += word
		begun = true
	}
	fmt.Fprintln(w, line)
}

// clean keeps names of a hostile catalog from steering the terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// count is "1 case" or "3 cases".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
