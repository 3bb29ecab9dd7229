package load_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

// storable reports the first text of a catalog's report that a database would refuse.
func storable(c *load.Catalog) string {
	texts := []string{}
	for _, f := range c.Findings {
		texts = append(texts, f.File, f.Message, f.Package, f.Rule)
	}
	for _, q := range c.Quarantined {
		texts = append(texts, q.Package, q.First.File, q.First.Message, q.First.Package)
	}
	for _, b := range c.Blobs {
		texts = append(texts, b.Package, b.Schema, b.Name)
	}
	for _, p := range c.Packages {
		for _, b := range p.Bundles {
			texts = append(texts, b.Name)
		}
		for _, ch := range p.Channels {
			texts = append(texts, ch.Name)
			for _, e := range ch.Entries {
				texts = append(texts, e.Replaces)
				texts = append(texts, e.Skips...)
			}
		}
	}
	for _, s := range texts {
		if !utf8.ValidString(s) || strings.ContainsRune(s, 0) || len(s) > catalog.MaxMessageBytes+8 {
			return s
		}
	}
	return ""
}

// TestNamesThatNobodyCanStore proves that names with control characters or without end are told, with their
// rule, before they reach a database, that other packages are served, and that no finding quotes them as they
// are (R-CAT-6, R-CAT-23, R-CAT-51, R-CAT-55).
func TestNamesThatNobodyCanStore(t *testing.T) {
	t.Parallel()
	const nul = `"a\u0000b"`
	long := strings.Repeat("n", 6<<10)
	entry := func(text string) files {
		return files{"buoy/a": pkg + strings.Replace(channel, "{name: buoy.v1.0.0}", text, 1) + oneBundle}
	}
	csv := func(name, spec string) files {
		return directory("1.0.0", manifestCSV("buoy.v1.0.0", "1.0.0", spec), channels("steady"),
			files{"manifests/csv.yaml": strings.ReplaceAll(manifestCSV("NAME", "1.0.0", spec), "NAME", name)})
	}
	for name, c := range map[string]struct {
		in   files
		want string
	}{
		"a blob's name": {files{
			"buoy/a": valid,
			"buoy/b": `{"schema":"sea.test/note","package":"buoy","name":` + nul + "}",
		}, "error R-CAT-6"},
		"a blob's schema": {
			files{"buoy/a": valid, "buoy/b": `{"schema":` + nul + `,"package":"buoy"}`},
			"error R-CAT-6",
		},
		"a blob's package": {files{"buoy/a": valid, "buoy/b": `{"schema":"sea.test/note","package":` + nul +
			"}"}, "error R-CAT-6"},
		"a long name": {files{
			"buoy/a": valid,
			"buoy/b": `{"schema":"sea.test/note","package":"buoy","name":"` + long + `"}`,
		}, "error R-CAT-6"},
		"a long schema": {
			files{"buoy/a": valid, "buoy/b": `{"schema":"` + long + `","package":"buoy"}`},
			"error R-CAT-6",
		},
		"a package": {
			files{"buoy/a": valid, "buoy/b": `{"schema":"olm.package","name":` + nul + "}"},
			"error R-CAT-6",
		},
		"a channel": {files{
			"buoy/a": valid,
			"buoy/b": `{"schema":"olm.channel","package":"buoy","name":` + nul +
				`,"entries":[{"name":"buoy.v1.0.0"}]}`,
		}, "error R-CAT-6"},
		"a bundle": {files{
			"buoy/a": valid,
			"buoy/b": `{"schema":"olm.bundle","package":"buoy","name":` + nul + "}",
		}, "error R-CAT-6"},
		"what an entry replaces": {entry(`{name: buoy.v1.0.0, replaces: "a\0"}`), "error R-CAT-23"},
		"what an entry skips":    {entry(`{name: buoy.v1.0.0, skips: ["a\0"]}`), "error R-CAT-23"},
		"the type of a property": {files{"buoy/a": pkg + channel +
			another("buoy.v1.0.0", "1.0.0", `{type: "a\0", value: 1}`)}, "error R-CAT-25"},
		"an entry without a bundle": {entry(`{name: "a\0"}`), "error R-CAT-30"},
		"a CSV":                     {csv(`"a\0"`, ""), "warning R-CAT-51"},
		"what a CSV replaces":       {csv("buoy.v1.0.0", "  replaces: \"a\\0\"\n"), "warning R-CAT-23"},
		"a channel of a directory": {directory("1.0.0", manifestCSV("buoy.v1.0.0", "1.0.0", ""), channels(`"a\0"`),
			nil), "warning R-CAT-55"},
		"a long channel": {
			directory("1.0.0", manifestCSV("buoy.v1.0.0", "1.0.0", ""), channels(long), nil),
			"warning R-CAT-55",
		},
		"a text that a finding says": {files{
			"buoy/b": valid,
			"buoy/a": "a: \"\\0\"\nschema: [\"\\0\"]\n\"\\0 \": 1\n\"\\0 \": 2\n",
		}, "error R-CAT-"},
		"a file": {files{"buoy/a": valid, "buoy/bad\xff.yaml": "a"}, "error R-CAT-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := maps.Clone(c.in)
			in["tide/catalog.yaml"] = named("tide")
			got := lenient(t, in)
			if packages(got) != "tide" || !strings.Contains(lines(got), c.want) || got.Err() != nil {
				t.Errorf("served %q, %v; want tide and %s in\n%.2000s", packages(got), got.Err(), c.want, lines(got))
			}
			strict := loadFiles(t, in)
			if bad := storable(got) + storable(strict); bad != "" {
				t.Errorf("%.100q cannot be stored", bad)
			}
			if _, err := load.Visit(in.fs(), func(load.Document) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	if found := loadFiles(t, files{"bad\xff.yaml": "a"}).Findings; len(found) == 0 ||
		found[0].File != "bad\uFFFD.yaml" {
		t.Errorf("a file name that is not UTF-8: %v", found)
	}
	if got := loadFiles(t, files{"a": strings.ReplaceAll(valid, "buoy.v1.0.0", strings.Repeat("b", 240)+
		".v1.0.0")}); len(got.Packages) != 1 {
		t.Errorf("a name as long as Kubernetes takes it:\n%s", lines(got))
	}
}

// TestOneImageOfTwoBundles proves that bundles which name the same image are told, with both places (R-CAT-50).
func TestOneImageOfTwoBundles(t *testing.T) {
	t.Parallel()
	two := pkg + strings.Replace(channel, "{name: buoy.v1.0.0}",
		"{name: buoy.v1.0.0}, {name: buoy.v2.0.0, replaces: buoy.v1.0.0}", 1)
	bundle := func(name, version, image string) string {
		return "schema: olm.bundle\npackage: buoy\nname: " + name + "\nimage: " + image +
			"\nproperties: [{type: olm.package, value: {packageName: buoy, version: " + version + "}}]\n---\n"
	}
	first, second := bundle("buoy.v1.0.0", "1.0.0", "a.test/b:1"), bundle("buoy.v2.0.0", "2.0.0", "a.test/b:1")
	one := pkg + channel + first
	for name, c := range map[string]struct {
		in   files
		want []string
	}{
		"of one package": {
			files{"a": two + first, "b": second},
			[]string{"b:4:", "warning R-CAT-50", `"buoy.v2.0.0"`, `"buoy.v1.0.0"`, " a:", "a.test/b:1"},
		},
		"of two packages": {
			files{"a": one, "b": strings.ReplaceAll(one, "buoy", "tide")},
			[]string{"b:", "warning R-CAT-50", `"tide.v1.0.0"`, `of package "buoy" at a:`},
		},
		"none": {files{"a": two + first + bundle("buoy.v2.0.0", "2.0.0", "a.test/b:2")}, nil},
	} {
		got := loadFiles(t, c.in)
		if len(got.Packages) == 0 || got.Findings.Errors() > 0 || len(got.Findings) != min(1, len(c.want)) {
			t.Errorf("%s: %d packages, findings:\n%s", name, len(got.Packages), lines(got))
		}
		for _, w := range c.want {
			if !strings.Contains(lines(got), w) {
				t.Errorf("%s: want %q in\n%s", name, w, lines(got))
			}
		}
	}
}

// TestManyFiles proves that all files together have a limit, whatever they are, and that a catalog that meets it
// is served by nobody, not even in part (DESIGN D10).
func TestManyFiles(t *testing.T) {
	t.Parallel()
	in := files{
		"a/a": valid, "b/b": named("tide"), "c/.indexignore": strings.Repeat("#", 1000),
		"w/1/metadata/annotations.yaml": "annotations: {" + annotation("package.v1") + ": wave, " +
			annotation("channels.v1") + ": c}",
		"w/1/manifests/csv.yaml": manifestCSV("wave.v1.0.0", "1.0.0", ""),
	}
	size := int64(0)
	for _, text := range in {
		size += int64(len(text))
	}
	for _, c := range []struct {
		most int64
		ok   bool
	}{{0, true}, {size, true}, {size - 1, false}, {size / 2, false}, {10, false}} {
		for _, lenient := range []bool{false, true} {
			got, err := load.Load(in.fs(), load.Options{MaxBytes: c.most, Lenient: lenient, Workers: 1})
			if err != nil {
				t.Fatal(err)
			}
			if (got.Err() == nil) != c.ok || !c.ok && !strings.Contains(lines(got), "together; give a directory") {
				t.Errorf("%d of %d bytes, lenient %v: %v\n%s", c.most, size, lenient, got.Err(), lines(got))
			}
		}
	}
}

// halting closes a channel once so many bytes of a file are read.
type halting struct {
	fs.FS
	name  string
	after int
	stop  chan struct{}
}

func (h *halting) Open(name string) (fs.File, error) {
	f, err := h.FS.Open(name)
	if err != nil || name != h.name {
		return f, err
	}
	return &halted{f, h}, nil
}

type halted struct {
	fs.File
	h *halting
}

func (f *halted) Read(b []byte) (int, error) {
	if f.h.after < 0 {
		return 0, errors.New("read after the end was asked for")
	}
	n, err := f.File.Read(b)
	if f.h.after -= n; f.h.after < 0 {
		close(f.h.stop)
	}
	return n, err
}

// TestStopInsideAFile proves that a load ends at once when it is stopped, in a long file without a document's
// end as in a bundle directory, and says so.
func TestStopInsideAFile(t *testing.T) {
	t.Parallel()
	text := append([]byte(valid), bytes.Repeat([]byte("# nothing but a comment\n"), 50_000)...)
	for name, in := range map[string]fstest.MapFS{
		"a": {"a": {Data: text}},
		"buoy/1.0.0/metadata/annotations.yaml": mapOf(
			directory("1.0.0", manifestCSV("buoy.v1.0.0", "1.0.0", ""), channels("steady"), nil)),
		"d/.indexignore": {"d/.indexignore": {Data: []byte("*.md\n")}, "d/a": {Data: []byte(valid)}},
	} {
		h := &halting{FS: in, name: name, stop: make(chan struct{})}
		c, err := load.Load(h, load.Options{Stop: h.stop})
		if !errors.Is(err, load.ErrStopped) || c != nil {
			t.Errorf("%s: %v", name, err)
		}
		if h.after >= 0 {
			t.Errorf("%s was not read", name)
		}
	}
}

func mapOf(f files) fstest.MapFS {
	m := fstest.MapFS{}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		m[name] = &fstest.MapFile{Data: []byte(f[name])}
	}
	return m
}

// TestNothingIsLost proves that text which the YAML library would leave unread is an error of the catalog, and
// that a tag means what it says (R-CAT-1, R-CAT-3).
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	tail := pkg + channel + strings.ReplaceAll(" "+strings.ReplaceAll(strings.TrimSuffix(oneBundle, "---\n"), "\n",
		"\n "), "\n \n", "\n")
	for name, text := range map[string]string{
		"a key in the first column": strings.TrimRight(tail, " \n") + "\nrelatedImages: []\n",
		"no YAML":                   strings.TrimRight(tail, " \n") + "\n{{ c : : [\n",
		"old ends of lines":         strings.ReplaceAll(pkg+channel+oneBundle, "\n", "\r"),
	} {
		got := loadFiles(t, files{"a": text})
		if len(got.Packages) != 0 || !strings.Contains(lines(got),
			"error R-CAT-1: the file cannot be loaded: not YAML: ") {
			t.Errorf("%s: %d packages\n%s", name, len(got.Packages), lines(got))
		}
	}
	got := loadFiles(t, files{"a": valid + "---\nschema: sea.test/note\npackage: buoy\na: !!bool yes\n"})
	if len(got.Blobs) != 1 || !bytes.Contains(got.Blobs[0].Raw, []byte(`"a":true`)) || !json.Valid(got.Blobs[0].Raw) {
		t.Errorf("a tag: %v\n%s", got.Blobs, lines(got))
	}
}
