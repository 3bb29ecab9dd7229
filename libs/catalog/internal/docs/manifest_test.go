package docs

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/digest"
)

// TestManifestAsOLM: a file of a bundle is read as the library reads it that OLM and Kubernetes use, to the letter, and
// what its author should fix is told with its line (R-CAT-51).
func TestManifestAsOLM(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in    string
		notes string // line: and a part of each message, with " | " between
	}{
		"plain":           {"a: 1\nb: {c: [1, x]}\n", ""},
		"key twice":       {"a: 1\nb: 2\na: 3\n", "3: key \"a\" occurs twice; the last one counts"},
		"key three times": {"a: 1\na: 2\na: 3\n", "2: key \"a\" occurs twice"},
		"nested":          {"spec:\n  x: {k: 1, m: 2}\n  y: 1\n  x: {k: 3}\n", "4: key \"x\" occurs twice"},
		"in a list": {
			"l:\n- a: 1\n  b: 2\n  a: 3\n- a: 4\n  a: [5]\n",
			"4: key \"a\" occurs twice | 6: key \"a\" occurs twice",
		},
		"in a flow mapping": {"a: {b: 1, b: 2}\n", "1: key \"b\" occurs twice"},
		"quoted and plain":  {"a: 1\n\"a\": 2\n", "2: key \"a\" occurs twice"},
		"the last is null":  {"a: {b: 1}\na:\n", "2: key \"a\" occurs twice"},
		//nolint:dupword // it is the fault
		"the first is null": {"a:\na: {b: 1}\n", "2: key \"a\" occurs twice"},
		"another type":      {"a: [1]\na: {b: 1}\n", "2: key \"a\" occurs twice"},
		"with an anchor":    {"a: &x {b: 1}\nc: *x\na: 2\n", "3: key \"a\" occurs twice"},
		"in JSON": {
			`{"a": 1, "b": {"c": 1, "c": {"d": 2}}, "a": 2}`,
			"1: key \"c\" occurs twice | 1: key \"a\" occurs twice",
		},
		"in JSON over lines":   {"{\n \"a\": {\"x\": 1},\n \"a\": {\"y\": 2}\n}\n", "3: key \"a\" occurs twice"},
		"a number in JSON":     {`{"a": 12345678901234567, "a": 12345678901234567}`, "1: key"},
		"several documents":    {"a: 1\n---\nb: 2\n---\nc: 3\n", "3: more than one document"},
		"a mark before":        {"---\na: 1\n", ""},
		"the end of a file":    {"a: 1\n---\n", ""},
		"a broken second one":  {"a: 1\n---\nb: [\n", "3: more than one document"},
		"booleans of YAML 1.1": {"a: yes\nb: on\nc: No\ne: 'yes'\n", ""},
		"the word y":           {"a: y\n", "1: YAML 1.1"},
		"the words in a list":  {"a: [n, 'y', Y]\n", "1: YAML 1.1"},
		"keys of YAML 1.1":     {"x: {type: string}\ny: {type: string}\non: 1\n", "1: YAML 1.1"},
		"keys of numbers":      {"1.50: a\n0x10: b\n010: c\n1.0.0: d\n", "1: YAML 1.1"},
		"merge behind a key":   {"x: &x {a: 1, b: 2}\nz:\n  b: 3\n  <<: *x\n", "1: YAML 1.1"},
		"numbers": {"a: 010\nb: 0o10\nc: 1_000\nd: 1.50\ne: 0x1F\nf: 1e3\ng: .5\nh: '007'\ni: " +
			"08\nj: 1:30\n", ""},
		"a date":                    {"createdAt: 2020-01-02T03:04:05Z\nday: 2020-01-02\n", ""},
		"null words":                {"a: ~\nb: null\nc: ''\nd:\n", ""},
		"carriage returns":          {"a: 1\r\nb:\r\n  c: x\r\n", ""},
		"a mark of byte order":      {"\ufeffa: 1\nb: 2\n", ""},
		"a mark and a document":     {"\ufeff---\na: 1\n", ""},
		"tabs behind values":        {"a: 1\t\nb:\t2\n", ""},
		"text of many lines":        {"a: |\n  x\n   y\n\nb: >-\n  x\n  y\n", ""},
		"a merge key":               {"x: &x {a: 1, b: 2}\nz:\n  <<: *x\n  b: 3\n", ""},
		"only a comment":            {"# nothing\n", ""},
		"nothing":                   {"", ""},
		"keys that are no strings":  {"1: a\ntrue: b\n", ""},
		"a creation time of null":   {"metadata:\n  creationTimestamp: null\n  name: x\n", ""},
		"an escape of a character":  {"a: \"\\x41\\u00e9\\n\"\n", ""},
		"a key without its space":   {"a:1\n", ""},
		"a tag":                     {"a: !!str 1\nb: !!int '2'\n", ""},
		"two keys twice, one level": {"a: 1\nb: 1\na: 2\nb: 2\n", "3: key \"a\" occurs twice"},
	} {
		var p Parser
		got, notes, err := p.Manifest([]byte(c.in), wide)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := asLibrary(t, c.in); !bytes.Equal(got, want) {
			t.Errorf("%s: got  %s\nwant %s", name, got, want)
		}
		if c.notes == "" && len(notes) > 0 {
			t.Errorf("%s: notes %v", name, notes)
		}
		for i, want := range strings.Split(c.notes, " | ") {
			line, says, _ := strings.Cut(want, ": ")
			if c.notes != "" && (i >= len(notes) || line != strings.TrimPrefix(
				strings.SplitN(notes[i].Error(), ":", 2)[0], "line ") || !strings.Contains(notes[i].Message, says)) {
				t.Errorf("%s: notes %v, want %s", name, notes, c.notes)
			}
		}
	}
}

// asLibrary is the first document of a text as sigs.k8s.io/yaml has it, in canonical form.
func asLibrary(t *testing.T, text string) []byte {
	t.Helper()
	dec := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return nil
	}
	var v any
	if err := sigsyaml.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	if v == nil {
		return nil
	}
	// Numbers of JSON that YAML would round are compared as they are written.
	var exact any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&exact); err != nil {
		t.Fatal(err)
	}
	out, err := digest.Canonical(exact)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestManifestRefused: what OLM cannot read either, and what meets a limit, is an error.
func TestManifestRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, says string }{
		"broken":         {"a: [\n", "line "},
		"tabs":           {"a:\n\tb: 1\n", "line 2"},
		"no number":      {`{"a": 1, "a": 1e999}`, ""},
		"too deep":       {strings.Repeat("[", 60) + strings.Repeat("]", 60), "depth"},
		"too many":       {"a: [" + strings.Repeat("1,", 2000) + "1]\n", "nodes"},
		"deep and twice": {"a: 1\na: " + strings.Repeat("[", 60) + strings.Repeat("]", 60) + "\n", "depth"},
	} {
		var p Parser
		object, _, err := p.Manifest([]byte(c.in), wide)
		if err == nil || object != nil {
			t.Errorf("%s: got %s", name, object)
			continue
		}
		//nolint:errorlint // Manifest promises this type
		if e, ok := err.(*Error); !ok || !strings.Contains(e.Error()+e.Limit, c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
