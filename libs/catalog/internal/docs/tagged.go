package docs

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/chandler-fleet/chandler/libs/internal/jsontree"
)

func (w *writer) scalar(n *yaml.Node) bool {
	tagged := n.Style&yaml.TaggedStyle != 0
	tag := n.ShortTag()
	switch {
	case tagged && !w.allowed(n):
		return false
	case n.Style == 0 && w.text.bare(n.Line, n.Column):
		// The mark "!" alone says that what follows is a string, and leaves no trace in the node.
		return w.b.String([]byte(n.Value), n.Line, n.Column)
	}
	switch tag {
	case "!!null":
		return w.b.Null(n.Line, n.Column)
	case "!!bool":
		return w.b.Bool(booleans[n.Value], n.Line, n.Column)
	case "!!int", "!!float":
		return w.number(n)
	case "!!binary":
		b, ok := w.binary(n)
		return ok && w.b.String(b, n.Line, n.Column)
	case "!!str":
		if b, ok := oldBool(n); ok {
			return w.b.Bool(b, n.Line, n.Column)
		}
	}
	return w.b.String([]byte(n.Value), n.Line, n.Column)
}

// booleans are the words of YAML 1.1 that a tag !!bool allows.
var booleans = func() map[string]bool {
	out := map[string]bool{}
	for word, value := range map[string]bool{
		"y": true, "yes": true, "true": true, "on": true, "n": false, "no": false,
		"false": false, "off": false,
	} {
		out[word], out[strings.ToUpper(word)], out[strings.ToUpper(word[:1])+word[1:]] = value, value, value
	}
	return out
}()

// ambiguous reports a plain scalar that YAML 1.1, by which Kubernetes reads, takes for something else than this package
// does: the words y and n, and keys that are no strings there.
func ambiguous(text string, key bool) bool {
	if text == "" || len(text) > longestWord && !key {
		return false
	}
	if !key {
		return text == "y" || text == "n" || text == "Y" || text == "N"
	}
	switch c := text[0]; {
	case c >= '0' && c <= '9', c == '-', c == '+', c == '.', c == '~':
		return true
	case len(text) > longestWord:
		return false
	}
	_, word := booleans[text]
	return word || strings.EqualFold(text, "null")
}

// allowed reports whether a scalar is what its tag says; where it is not, the library's readers of values
// refuse the document, too.
func (w *writer) allowed(n *yaml.Node) bool {
	ok := true
	switch n.ShortTag() {
	case "!!null":
		switch n.Value {
		case "", "~", "null", "Null", "NULL":
		default:
			ok = false
		}
	case "!!bool":
		_, ok = booleans[n.Value]
	case "!!int":
		var i int64
		var u uint64
		ok = n.Decode(&i) == nil || n.Decode(&u) == nil
	case "!!float":
		var f float64
		ok = n.Decode(&f) == nil
	case "!!timestamp":
		var t time.Time
		ok = n.Decode(&t) == nil
	}
	return ok || w.fail(n, "", "%.40q is not what its tag %s allows; correct it, or leave the tag out", n.Value,
		n.ShortTag())
}

func (w *writer) binary(n *yaml.Node) ([]byte, bool) {
	b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
	if err != nil {
		return nil, w.fail(n, "", "!!binary is not base64: %v", err)
	}
	if !utf8.Valid(b) {
		return nil, w.fail(n, "utf-8", "!!binary is not UTF-8, so that no string can hold it")
	}
	return b, true
}

// oldBool reads the booleans of YAML 1.1 that every Kubernetes tool accepts in plain style.
func oldBool(n *yaml.Node) (value, ok bool) {
	if n.Style != 0 {
		return false, false
	}
	switch n.Value {
	case "yes", "Yes", "YES", "on", "On", "ON":
		return true, true
	case "no", "No", "NO", "off", "Off", "OFF":
		return false, true
	}
	return false, false
}

func (w *writer) number(n *yaml.Node) bool {
	if text := []byte(n.Value); json.Valid(text) {
		return w.b.Number(text, n.Line, n.Column)
	}
	if n.ShortTag() == "!!int" {
		var i int64
		if n.Decode(&i) == nil {
			return w.b.Number(strconv.AppendInt(nil, i, 10), n.Line, n.Column)
		}
		var u uint64
		if n.Decode(&u) == nil {
			return w.b.Number(strconv.AppendUint(nil, u, 10), n.Line, n.Column)
		}
	}
	var f float64
	if err := n.Decode(&f); err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return w.fail(n, jsontree.LimitNumbers, "%.40q is not a number that JSON can hold", n.Value)
	}
	return w.b.Number(strconv.AppendFloat(nil, f, 'g', -1, 64), n.Line, n.Column)
}

// spot is a place in a text as the library tells it.
type spot struct{ line, column int }

// source is a text that is asked where the mark "!" stands alone.
type source struct {
	data  []byte
	alone map[spot]bool // nil before the first question
}

// bare reports whether a lone "!" stands at a place.
func (s *source) bare(line, column int) bool {
	if s.data == nil {
		return false
	}
	if s.alone == nil {
		s.find()
	}
	return s.alone[spot{line, column}]
}

// find goes through the text once, by the lines that YAML 1.1 has.
func (s *source) find() {
	s.alone = map[spot]bool{}
	if bytes.IndexByte(s.data, '!') < 0 {
		return
	}
	at := spot{1, 1}
	for i := 0; i < len(s.data); {
		r, n := utf8.DecodeRune(s.data[i:])
		i += n
		if r == '!' && (i == len(s.data) || s.data[i] <= ' ' || s.data[i] >= utf8.RuneSelf) {
			s.alone[at] = true
		}
		at.column++
		if r == '\n' || r == '\u0085' || r == '\u2028' || r == '\u2029' || r == '\r' &&
			(i == len(s.data) || s.data[i] != '\n') {
			at = spot{at.line + 1, 1}
		}
	}
}
