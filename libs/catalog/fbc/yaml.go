package fbc

import (
	"bytes"
	"regexp"
	"strings"
)

// yamlWriter writes values in block style. It writes less than YAML allows, so that every reader, of
// YAML 1.1 or 1.2, reads what was meant: a string stands plain only where it can be nothing else.
type yamlWriter struct{ out *bytes.Buffer }

// mapping writes the entries of an object, each on lines of its own; the first begins where the
// writer stands.
func (w yamlWriter) mapping(t tree, level int) {
	if len(t.keys) == 0 {
		w.out.WriteString("{}\n")
		return
	}
	for i, key := range t.keys {
		if i > 0 {
			indent(w.out, level)
		}
		w.key(key, level)
		w.child(t.items[i], level)
	}
}

// maxSimpleKey is how long a key may be in most readers if no question mark stands before it (the
// specification says 1,024 characters with what quotes it).
const maxSimpleKey = 128

func (w yamlWriter) key(key string, level int) {
	if len(key) > maxSimpleKey {
		w.out.WriteString("? ")
		w.str(key)
		newline(w.out, level)
		w.out.WriteByte(':')
		return
	}
	w.str(key)
	w.out.WriteByte(':')
}

// child writes the value of a key.
func (w yamlWriter) child(t tree, level int) {
	switch {
	case len(t.items) == 0:
		w.out.WriteByte(' ')
		w.scalar(t, level)
	case t.kind == '{':
		newline(w.out, level+1)
		w.mapping(t, level+1)
	default:
		w.out.WriteByte('\n')
		w.sequence(t, level, false)
	}
}

// sequence writes the items of a list at the level of its key, as people write them.
func (w yamlWriter) sequence(t tree, level int, inline bool) {
	for i, item := range t.items {
		if i > 0 || !inline {
			indent(w.out, level)
		}
		w.out.WriteString("- ")
		switch {
		case len(item.items) == 0:
			w.scalar(item, level)
		case item.kind == '{':
			w.mapping(item, level+1)
		default:
			w.sequence(item, level+1, true)
		}
	}
}

// scalar writes a value without items, and ends its line.
func (w yamlWriter) scalar(t tree, level int) {
	switch {
	case t.kind == '{':
		w.out.WriteString("{}")
	case t.kind == '[':
		w.out.WriteString("[]")
	case t.kind == '"' && literal(t.text):
		w.literal(t.text, level)
		return
	case t.kind == '"':
		w.str(t.text)
	default:
		w.out.WriteString(t.text)
	}
	w.out.WriteByte('\n')
}

// literal reports whether a text of several lines can stand as a block without any escape: printable,
// no space at the begin of the first line or the end of a line, at most one line end behind the last.
func literal(s string) bool {
	if !strings.Contains(strings.TrimSuffix(s, "\n"), "\n") || strings.HasSuffix(s, "\n\n") {
		return false
	}
	if strings.ContainsAny(s[:1], " \t\n") {
		return false
	}
	for line := range strings.SplitSeq(s, "\n") {
		if strings.HasSuffix(line, " ") || strings.HasSuffix(line, "\t") || strings.HasPrefix(line, "\t") {
			return false
		}
	}
	for _, r := range s {
		if r != '\n' && r != '\t' && !printable(r) {
			return false
		}
	}
	return true
}

func (w yamlWriter) literal(s string, level int) {
	w.out.WriteByte('|')
	if !strings.HasSuffix(s, "\n") {
		w.out.WriteByte('-')
	}
	w.out.WriteByte('\n')
	for line := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
		if line != "" {
			indent(w.out, level+1)
			w.out.WriteString(line)
		}
		w.out.WriteByte('\n')
	}
}

// plain is what no reader takes for anything but a string: words that begin with a letter or a slash, and
// versions of three numbers. What looks like a number, a date or a version such as 1.10 is quoted.
var plain = regexp.MustCompile(
	`^[0-9]+\.[0-9]+\.[0-9]+([-+][-0-9A-Za-z.+]+)?$|^[A-Za-z/][-+A-Za-z0-9_./@]*(:[-A-Za-z0-9_./@]+)*( [-A-Za-z0-9_./@(]+[-A-Za-z0-9_./@(),+=]*)*$`)

// words are plain strings that some reader takes for a boolean, null or a number.
var words = map[string]bool{
	"y": true, "n": true, "yes": true, "no": true, "on": true, "off": true,
	"true": true, "false": true, "null": true, "nan": true, "inf": true,
}

// maxPlain bounds what is looked at: longer texts are quoted, which every reader takes as well.
const maxPlain = 256

func (w yamlWriter) str(s string) {
	if len(s) <= maxPlain && plain.MatchString(s) && !words[strings.ToLower(s)] {
		w.out.WriteString(s)
		return
	}
	quote(w.out, s)
}
