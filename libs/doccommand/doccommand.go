// Package doccommand finds the command lines that documents show, so that tests can check them against the program.
// It is pure: it reads the text of a document and runs nothing.
package doccommand

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	joined = regexp.MustCompile(` (\||&&) `) // commands on one line
	word   = regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)
)

// Command is one call of a program in a document.
type Command struct {
	Place string // file and line
	Words []string
	// Into is the file that takes the output, "" for none.
	Into string
	// Appends says that the output goes behind what Into holds.
	Appends bool
}

// String is the command without the program, as a person reads it.
func (c Command) String() string { return strings.Join(c.Words, " ") }

const (
	fence      = "```"
	shellFence = fence + "sh"
)

// Blocks are the calls of a program in the shell blocks of a document, in their order.
func Blocks(file, text, program string) (out []Command) {
	shell := false
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, fence) {
			shell = line == shellFence
			continue
		}
		if shell && strings.HasPrefix(strings.TrimSpace(line), program+" ") {
			out = append(out, command(fmt.Sprintf("%s:%d", file, i+1), line))
		}
	}
	return out
}

// Script is what the shell blocks of a document hold, in their order: what somebody runs who copies them all.
func Script(text string) string {
	var b strings.Builder
	shell := false
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, fence) {
			shell = line == shellFence
			continue
		}
		if shell {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// Spans are the calls of a program that a document names in its text. They may leave out arguments.
func Spans(file, text, program string) (out []Command) {
	span := regexp.MustCompile("`" + program + " [^`\n]*`")
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, fence) {
			fenced = !fenced
		}
		if fenced {
			continue
		}
		for _, s := range span.FindAllString(line, -1) {
			out = append(out, command(fmt.Sprintf("%s:%d", file, i+1), strings.Trim(s, "`")))
		}
	}
	return out
}

// Examples are the calls of a program among lines of a help text; what a pipe or redirection adds is left out.
func Examples(place, text, program string) (out []Command) {
	for line := range strings.SplitSeq(text, "\n") {
		for _, part := range joined.Split(line, -1) {
			if part = strings.TrimSpace(part); strings.HasPrefix(part, program+" ") {
				out = append(out, command(place, part))
			}
		}
	}
	return out
}

func command(place, line string) Command {
	words := Words(line)[1:]
	c := Command{Place: place, Words: words}
	for i, w := range words {
		if w != ">" && w != ">>" && w != "<" {
			continue
		}
		c.Words = words[:i]
		if w != "<" && i+1 < len(words) {
			c.Into, c.Appends = words[i+1], w == ">>"
		}
		break
	}
	return c
}

// Words are the words of a line as a shell reads it, as far as documents write: quotes, and a comment at the end.
func Words(line string) (words []string) {
	for _, w := range word.FindAllString(line, -1) {
		if strings.HasPrefix(w, "#") {
			break
		}
		if q := w[0]; len(w) > 1 && (q == '\'' || q == '"') && w[len(w)-1] == q {
			w = w[1 : len(w)-1]
		}
		words = append(words, w)
	}
	return words
}
