package docs

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var wide = Limits{FileBytes: 1 << 20, DocumentBytes: 1 << 16, Documents: 100, Depth: 50, Nodes: 1000}

// values returns "line:column json" for every document, or "line error".
func values(t *testing.T, text string, l Limits) []string {
	t.Helper()
	var out []string
	var p Parser
	err := Split(strings.NewReader(text), l, func(c Chunk) error {
		v, perr := p.Parse(c, l)
		if perr != nil {
			out = append(out, fmt.Sprintf("%d %s", perr.Line, perr.Message))
			return nil //nolint:nilerr // noted; the stream goes on
		}
		if faults := p.Faults(); len(faults) > 0 {
			out = append(out, fmt.Sprintf("%d %s", faults[0].Line, faults[0].Message))
			return nil
		}
		if v.Exists() {
			out = append(out, fmt.Sprintf("%d:%d %s", v.Line(), v.Column(), v.JSON()))
		}
		return nil
	})
	if err != nil {
		out = append(out, err.Error())
	}
	return out
}

// TestDocuments proves how streams of documents are cut and placed (R-CAT-3).
func TestDocuments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"empty", "", nil},
		{"comments only", "# a\n---\n# b\n", nil},
		{"null", "---\nnull\n---\n~\n", nil},
		{"one", "a: 1", []string{`1:1 {"a":1}`}},
		{"two", "a: 1\n---\nb: 2\n", []string{`1:1 {"a":1}`, `3:1 {"b":2}`}},
		{"leading mark and comment", "# c\n\n---\n# d\na: 1\n", []string{`5:1 {"a":1}`}},
		{"directive", "%YAML 1.2\n---\na: 1\n", []string{`3:1 {"a":1}`}},
		{"end mark", "a: 1\n...\nb: 2\n", []string{`1:1 {"a":1}`, `3:1 {"b":2}`}},
		{
			"value on the mark's line", "a: 1\n--- {b: 2}\n--- # c\nd: 3\n",
			[]string{`1:1 {"a":1}`, `2:5 {"b":2}`, `4:1 {"d":3}`},
		},
		{"dashes inside a block", "a: |\n  ---\n  x\n", []string{`1:1 {"a":"---\nx\n"}`}},
		{
			"json stream", `{"a":1}{"b":{"c":[]}} ` + "\n" + ` {"d":"}{"}`,
			[]string{`1:1 {"a":1}`, `1:8 {"b":{"c":[]}}`, `2:2 {"d":"}{"}`},
		},
		{"json over lines", "{\n  \"a\": [\n 1, \"\\\"}\"\n]}\n{}", []string{`1:1 {"a":[1,"\"}"]}`, `5:1 {}`}},
		{
			"json between yaml", "a: 1\n---\n{\"b\": 2}\n{\"c\": 3}\n---\nd: 4\n",
			[]string{`1:1 {"a":1}`, `3:1 {"b":2}`, `4:1 {"c":3}`, `6:1 {"d":4}`},
		},
		{"flow yaml", "{a: 1, b: [x, y]}\n", []string{`1:1 {"a":1,"b":["x","y"]}`}},
		{
			"bad one in the middle", "a: 1\n---\nb: [\n---\nc: 3\n",
			[]string{`1:1 {"a":1}`, "3 not YAML: did not find expected node content", `5:1 {"c":3}`},
		},
		{"bad json", "{\"a\": 1}\n{\"b\": tru}\n{\"c\": 3}", []string{`1:1 {"a":1}`, `2:1 {"b":"tru"}`, `3:1 {"c":3}`}},
		{"broken json", "{\n \"a\": 1,,\n}", []string{
			"2 not JSON: invalid character ',' looking for beginning of object key string",
		}},
		{"unfinished json", "{\n \"a\": [1,\n", []string{"2 not JSON: unexpected EOF"}},
		{"tab", "a:\n\t- b\n", []string{"2 not YAML: found character that cannot start any token"}},
	} {
		if diff := cmp.Diff(c.want, values(t, c.in, wide)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestValues proves that YAML becomes the JSON that Kubernetes tools make of it.
func TestValues(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a: yes":                                `{"a":true}`,
		"a: 'yes'":                              `{"a":"yes"}`,
		"a: Off":                                `{"a":false}`,
		"a: y":                                  `{"a":"y"}`,
		"a: True":                               `{"a":true}`,
		"a: 010":                                `{"a":8}`,
		"a: 0x1F":                               `{"a":31}`,
		"a: 1_000":                              `{"a":1000}`,
		"a: +1":                                 `{"a":1}`,
		"a: 1.50":                               `{"a":1.50}`,
		"a: 1e3":                                `{"a":1e3}`,
		"a: 1e999":                              `{"a":"1e999"}`, // what YAML cannot hold as a number it holds as text
		"a: .5":                                 `{"a":0.5}`,
		"a: 18446744073709551615":               `{"a":18446744073709551615}`,
		"a: 2020-01-02":                         `{"a":"2020-01-02"}`,
		"a: ~":                                  `{"a":null}`,
		"a:":                                    `{"a":null}`,
		"a: !!str 1":                            `{"a":"1"}`,
		"a: !!binary aGk=":                      `{"a":"hi"}`,
		"1: a":                                  `{"1":"a"}`,
		"a: '<>&\u2028\"\\'":                    `{"a":"<>&` + "\u2028" + `\"\\"}`,
		"a: \"\\x01\\t\\b\\f\\r\"":              `{"a":"\u0001\t\b\f\r"}`,
		"a: &x {b: 1}\nc: *x":                   `{"a":{"b":1},"c":{"b":1}}`,
		"x: &x {b: 1, c: 1}\ny: {<<: *x, b: 2}": `{"x":{"b":1,"c":1},"y":{"b":2,"c":1}}`,
		"y: {<<: [{a: 1}, {a: 2, b: 2}]}":       `{"y":{"a":1,"b":2}}`,
		"a: {b: 1, b: 2}":                       `1 key "b" occurs twice`,
		"a: {b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1, c: 2}": `1 key "c" occurs twice`,
		"? [a]\n: b":      `1 a key must be a plain value`,
		"a: .inf":         `1 ".inf" is not a number that JSON can hold`,
		"a: {<<: 1}":      `1 a merge key needs a mapping`,
		"a: !!binary '*'": "1 !!binary is not base64: illegal base64 data at input byte 0",
	} {
		got := strings.TrimPrefix(strings.Join(values(t, in, wide), "|"), "1:1 ")
		if got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}

// TestCanonical proves that keys are put in order at every depth, and numbers in one form.
func TestCanonical(t *testing.T) {
	t.Parallel()
	var p Parser
	var got []string
	err := Split(strings.NewReader("b: {z: 1.0, a: [{y: 1, x: 9223372036854775807}]}\na: 1\n---\nc: 3\n"), wide,
		func(c Chunk) error {
			v, perr := p.Parse(c, wide)
			if perr != nil {
				return perr
			}
			got = append(got, string(v.Canonical()))
			return nil
		})
	want := []string{`{"a":1,"b":{"a":[{"x":9223372036854775807,"y":1}],"z":1}}`, `{"c":3}`}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestLimits proves that every limit of a file is met by name.
func TestLimits(t *testing.T) {
	t.Parallel()
	for want, in := range map[string]string{
		"file-bytes":     strings.Repeat("a: 1\n---\n", 1<<17),
		"document-bytes": "a: " + strings.Repeat("x", wide.DocumentBytes),
		"documents":      strings.Repeat("a: 1\n---\n", wide.Documents+1),
	} {
		err := Split(strings.NewReader(in), wide, func(Chunk) error { return nil })
		var e *Error
		if want == "file-bytes" {
			l := wide
			l.Documents = 1 << 20
			err = Split(strings.NewReader(in), l, func(Chunk) error { return nil })
		}
		if !errors.As(err, &e) || e.Limit != want {
			t.Errorf("want the limit %s, got %v", want, err)
		}
	}
}

// TestHostile proves that what would take memory or time without bound is refused by the name of a limit,
// whichever reader meets it.
func TestHostile(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1,
			c-1, c-1)
	}
	for _, c := range []struct{ name, limit, in string }{
		{"deep JSON", "depth", strings.Repeat(`{"a":`, wide.Depth+2) + "1" + strings.Repeat("}", wide.Depth+2)},
		{"deep flow", "depth", "a: " + strings.Repeat("[", wide.Depth+2) + strings.Repeat("]", wide.Depth+2)},
		{"deep flow with an anchor", "depth", "a: &x " + strings.Repeat("[", wide.Depth+2) +
			strings.Repeat("]", wide.Depth+2)},
		{"UTF-16", "utf-8", "\xff\xfea\x00:\x00 \x00b\x00"},
		{"deep block", "depth", deep(wide.Depth + 2)},
		{"many values", "nodes", strings.Repeat("- a\n", wide.Nodes+1)},
		{"many values in JSON", "nodes", `{"a":[` + strings.Repeat("1,", wide.Nodes) + "1]}"},
		{"many values with an anchor", "nodes", "- &a b\n" + strings.Repeat("- a\n", 2*wide.Nodes)},
		{"aliases", "nodes", "a: &a [" + strings.Repeat("x,", 100) + "x]\nb: [" + strings.Repeat("*a,", 20) + "*a]"},
		{"aliases of aliases", "nodes", bomb},
		{"an alias of itself", "depth", "a: &a [*a]"},
		{"aliases of a long text", "expanded-bytes", "a: &a " + strings.Repeat("x", 40<<10) + "\nb: [" +
			strings.Repeat("*a,", 20) + "*a]"},
		{"merge keys", "nodes", "a: &a {<<: *a}"},
		{"JSON that is not UTF-8", "utf-8", "{\"a\": \"\xff\"}"},
		{"YAML that is not UTF-8", "utf-8", "a: b\nc: \xff\n"},
		{"half a character", "utf-8", `{"a": "\ud800"}`},
		{"bytes", "utf-8", "a: !!binary /w=="},
		{"a large number in JSON", "number-range", `{"a": [-1e999]}`},
		{"no number", "number-range", "a: .inf"},
		{"a key twice", "duplicate-key", "a: {b: {c: 1, d: 2, c: 3}}"},
		{"a key twice in JSON", "duplicate-key", `{"a": {"b": 1, "\u0062": 2}}`},
		{"a key twice with an anchor", "duplicate-key", "a: &x {b: 1, b: 2}"},
	} {
		var p Parser
		err := Split(strings.NewReader(c.in), wide, func(ch Chunk) error {
			_, perr := p.Parse(ch, wide)
			if faults := p.Faults(); perr == nil && len(faults) > 0 {
				perr = faults[0]
			}
			if perr == nil {
				return nil
			}
			return perr
		})
		if e, ok := errors.AsType[*Error](err); !ok || e.Limit != c.limit || e.Line == 0 {
			t.Errorf("%s: want the limit %s, got %+v", c.name, c.limit, err)
		}
	}
}

func deep(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%sa:\n", strings.Repeat(" ", i))
	}
	return b.String()
}
