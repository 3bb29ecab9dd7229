package edit_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/cmd/chandler/author/edit"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/fbc"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// channel finds the first channel of a file.
func channel(t *testing.T, text string) load.Document {
	t.Helper()
	var found *load.Document
	_, err := load.Visit(fstest.MapFS{"f": {Data: []byte(text)}}, func(d load.Document) error {
		if d.Schema == catalog.SchemaChannel && found == nil {
			found = &d
		}
		return nil
	})
	if err != nil || found == nil {
		t.Fatalf("no channel in %q: %v", text, err)
	}
	return *found
}

// TestAddEntry: the new entry stands behind the last, in the form that is there, and nothing else of the
// file is touched (R-CAT-62, R-CAT-65).
func TestAddEntry(t *testing.T) {
	t.Parallel()
	entry := catalog.Entry{Name: "a.v2", Replaces: "a.v1"}
	for name, c := range map[string][2]string{
		"lines at the end, no last line end": {
			"schema: olm.channel\npackage: a\nname: c\nentries:\n- name: a.v1",
			"schema: olm.channel\npackage: a\nname: c\nentries:\n- name: a.v1\n- name: a.v2\n  replaces: a.v1\n",
		},
		"indented, with comments and other keys behind": {
			"# top\nentries:\n    - name: a.v1 # old\n      skips:\n      - a.v0\n    # end\nschema: " +
				"olm.channel\npackage: a\nname: c\n--- # next\nschema: x.test/o\n",
			"# top\nentries:\n    - name: a.v1 # old\n      skips:\n      - a.v0\n    - name: a.v2\n      replaces: " +
				"a.v1\n    # end\nschema: olm.channel\npackage: a\nname: c\n--- # next\nschema: x.test/o\n",
		},
		"in one line": {
			"schema: x.test/o\n---\n{schema: olm.channel, package: a, name: c, entries: [{name: a.v1}]}\n--- # next\n",
			"schema: x.test/o\n---\nschema: olm.channel\npackage: a\nname: c\nentries:\n- name: a.v1\n- name: a.v2\n " +
				" replaces: a.v1\n--- # next\n",
		},
		"a list in one line": {
			"schema: olm.channel\npackage: a\nname: c\nentries: [{name: a.v1}]\n",
			"schema: olm.channel\npackage: a\nname: c\nentries:\n- name: a.v1\n- name: a.v2\n  replaces: a.v1\n",
		},
		"no entry yet": {
			"schema: olm.channel\npackage: a\nname: c\nentries: []\n",
			"schema: olm.channel\npackage: a\nname: c\nentries:\n- name: a.v2\n  replaces: a.v1\n",
		},
		"JSON behind JSON on a line": {
			`{"schema":"x.test/o"} {"schema":"olm.channel","package":"a","name":"c","entries":[]} {"schema":"x.test/p"}`,
			`{"schema":"x.test/o"} {
  "schema": "olm.channel",
  "package": "a",
  "name": "c",
  "entries": [
    {
      "name": "a.v2",
      "replaces": "a.v1"
    }
  ]
} {"schema":"x.test/p"}`,
		},
		"a byte order mark, and keys that Chandler does not know": {
			"\ufeffschema: olm.channel\npackage: a\nname: c\nnote: |\n  entries:\n  - name: no\nentries:\n- name: " +
				"a.v1\n",
			"\ufeffschema: olm.channel\npackage: a\nname: c\nnote: |\n  entries:\n  - name: no\nentries:\n- name: " +
				"a.v1\n- name: a.v2\n  replaces: a.v1\n",
		},
		"a last value of several lines": {
			"schema: olm.channel\npackage: a\nname: c\nentries:\n- name: a.v1\n  skipRange: >-\n    <1.0.0\n",
			"schema: olm.channel\npackage: a\nname: c\nentries:\n- name: a.v1\n  skipRange: \"<1.0.0\"\n- name: " +
				"a.v2\n  replaces: a.v1\n",
		},
	} {
		got, err := edit.AddEntry([]byte(c[0]), channel(t, c[0]), entry)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c[1], string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestMoved: a file that is not what was read is not changed.
func TestMoved(t *testing.T) {
	t.Parallel()
	text := "schema: olm.channel\npackage: a\nname: c\nentries: []\n"
	at := channel(t, text)
	for _, now := range []string{
		"", "# one more line\n" + text, strings.Replace(text, "name: c", "name: d", 1),
		"\n\n\n",
	} {
		if _, err := edit.AddEntry([]byte(now), at, catalog.Entry{Name: "a.v1"}); !errs.Is(err, errs.Conflict) {
			t.Errorf("%q: got %v", now, err)
		}
	}
}

// TestAppend: a document goes behind the last one, in the form of the file.
func TestAppend(t *testing.T) {
	t.Parallel()
	b, err := fbc.ParseBlob([]byte(`{"schema":"x.test/o"}`))
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"schema: a":          "schema: a\n---\nschema: x.test/o\n",
		"":                   "---\nschema: x.test/o\n",
		`{"schema": "a"}`:    "{\"schema\": \"a\"}\n{\n  \"schema\": \"x.test/o\"\n}\n",
		"{schema: a}\n---\n": "{schema: a}\n---\n---\nschema: x.test/o\n",
	} {
		got, err := edit.Append([]byte(in), b)
		if err != nil || string(got) != want {
			t.Errorf("%q: got %q, %v", in, got, err)
		}
	}
}
