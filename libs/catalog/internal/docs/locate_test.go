package docs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/catalog/internal/docs"
)

// TestLocate proves that values are found in every form that a document may have, and that what is not
// there leaves the nearest place.
func TestLocate(t *testing.T) {
	t.Parallel()
	l := docs.Limits{FileBytes: 1 << 20, DocumentBytes: 1 << 20, Documents: 100, Depth: 50, Nodes: 1000}
	yaml := "# first\n---\nname: a\nlist:\n- type: x\n  value: 1\n- {type: y, value: {deep: 2}}\n- type: y\n  value: " +
		"{deep: 3}\n---\n\n# second\nname: b\nalias: &a {c: 1}\nuse: *a\n"
	for _, c := range []struct {
		name, text   string
		line, column int
		path         string
		want         string
	}{
		{"key", yaml, 3, 1, "name", "3:7"},
		{"list", yaml, 3, 1, "list", "5:1"},
		{"element", yaml, 3, 1, "list #1", "7:3"},
		{"element of a type", yaml, 3, 1, "list y#1 value deep", "9:17"},
		{"first of a type", yaml, 3, 1, "list y#0 value deep", "7:27"},
		{"no element of a type", yaml, 3, 1, "list z#0 value", "5:1"},
		{"too few elements", yaml, 3, 1, "list #7", "5:1"},
		{"no list", yaml, 3, 1, "name #0", "3:7"},
		{"no key", yaml, 3, 1, "other", "3:1"},
		{"key in another case", yaml, 3, 1, "NAME", "3:7"},
		{"second document", yaml, 13, 1, "name", "13:7"},
		{"another document's line", yaml, 4, 1, "name", "4:1"},
		{"JSON objects in one line", `{"a":1}{"a":2} {"a":[0,3]}`, 1, 16, "a #1", "1:24"},
		{"broken document before", "a: [\n---\nname: b\n", 3, 1, "name", "3:7"},
		{"beyond the end", "a: 1\n", 7, 1, "a", "7:1"},
	} {
		s := &docs.Spot{Line: c.line, Column: c.column, Path: strings.Fields(c.path)}
		if err := docs.Locate(strings.NewReader(c.text), l, []*docs.Spot{s}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := fmt.Sprintf("%d:%d", s.Line, s.Column); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestLocateKey proves that the outermost of several keys is found.
func TestLocateKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, key, want string }{
		{"version: 0\nspec:\n    list:\n    - name: a\n      version: v1\n    version: 1.0.0\n", "version", "6:5"},
		{"{\n  \"spec\": {\n    \"version\": \"1.0.0\"\n  }\n}\n", "version", "3:5"},
		{"metadata:\n  annotations:\n    olm.skipRange: <1.0.0\n", "olm.skipRange", "3:5"},
		{"spec:\n  versions: 1\n", "version", "0:0"},
		{"spec:\n  minVersion: 1\n", "Version", "0:0"},
		{"", "version", "0:0"},
	} {
		line, column := docs.LocateKey([]byte(c.text), c.key)
		if got := fmt.Sprintf("%d:%d", line, column); got != c.want {
			t.Errorf("%s in %q: %s, want %s", c.key, c.text, got, c.want)
		}
	}
}
