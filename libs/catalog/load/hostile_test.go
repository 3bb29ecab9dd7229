package load_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

// bomb is a document whose aliases stand for nine times as many values with every line.
func bomb() string {
	b := "x: &a [v,v,v,v,v,v,v,v,v]\n"
	for c := 'b'; c < 'k'; c++ {
		b += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	return b
}

// hostile are texts that no reader may expand, with the limit that each of them meets.
func hostile() map[string]struct{ limit, text string } {
	const head = "schema: sea.test/note\npackage: buoy\n"
	return map[string]struct{ limit, text string }{
		"alias bomb":      {"nodes", head + bomb()},
		"alias of itself": {"depth", head + "a: &a [*a]\n"},
		"merge of itself": {"nodes", head + "a: &a {<<: *a}\n"},
		"alias of a long text": {"expanded-bytes", head + "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" +
			strings.Repeat("*a,", 200) + "*a]\n"},
		"deep JSON": {"depth", `{"schema":"sea.test/note","a":` + strings.Repeat("[", 100_000) +
			strings.Repeat("]", 100_000) + "}"},
		"deep flow YAML": {"depth", head + "a: " + strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000) +
			"\n"},
		"deep YAML with an anchor": {"depth", head + "a: &x " + strings.Repeat("[", 20_000) +
			strings.Repeat("]", 20_000) + "\n"},
		"deep block YAML": {"depth", head + "a:\n" + ladder(300)},
		"too many values": {"nodes", head + "a:\n" + strings.Repeat("- 1\n", catalog.MaxNodes)},
		"too many values in JSON": {"nodes", `{"schema":"sea.test/note","a":[` +
			strings.Repeat("0,", catalog.MaxNodes) + "0]}"},
		"dashes with an anchor": {"nodes", "&x\n" + strings.Repeat(strings.Repeat("- ", 150)+"x\n", 10<<10)},
		"31 MiB with an anchor": {"bytes", "&x\n" + strings.Repeat(strings.Repeat("- ", 150)+"x\n", 100<<10)},
		"a huge document": {"document-bytes", head + "a: |\n" +
			strings.Repeat("  "+strings.Repeat("x", 1022)+"\n", 33<<10)},
		"a huge line":            {"document-bytes", head + "a: " + strings.Repeat("x", 33<<20)},
		"not UTF-8":              {"utf-8", head + "a: \xff\xfe\n"},
		"JSON that is not UTF-8": {"utf-8", "{\"schema\":\"sea.test/note\",\"a\":\"\xc3\x28\"}"},
		"half a character":       {"utf-8", `{"schema":"sea.test/note","a":"\udc00"}`},
		"a key twice":            {"duplicate-key", head + "a: {b: {c: 1, d: 2, c: 3}}\n"},
		"a key twice in JSON":    {"duplicate-key", `{"schema":"sea.test/note","a":[{"b":1,"c":2,"b":3}]}`},
		"a number out of range":  {"number-range", `{"schema":"sea.test/note","a":-1e999}`},
		"an endless number":      {"number-range", `{"schema":"sea.test/note","a":` + strings.Repeat("9", 1000) + "}"},
		"infinity":               {"number-range", head + "a: .inf\n"},
	}
}

func ladder(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%sa:\n", strings.Repeat(" ", i+1))
	}
	return b.String()
}

// TestHeapOfHostileDocuments proves that each of them is refused by the name of its limit, with file and line, that
// the other documents are still looked at, and that memory and time stay bounded (DESIGN D10). It counts all
// that is allocated, so it runs alone.
func TestHeapOfHostileDocuments(t *testing.T) {
	for name, c := range hostile() {
		// the builder's memory for the largest document, doubled again and again as it grows
		const most = raceFactor * 700 << 20
		before, began := allocated(), time.Now()
		got := loadFiles(t, files{"a.yaml": valid, "bad.yaml": c.text})
		if spent := allocated() - before; spent > most {
			t.Errorf("%s: %d MB allocated", name, spent>>20)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s: took %v", name, took)
		}
		if len(got.Findings) != 1 || got.Findings[0].File != "bad.yaml" || got.Findings[0].Line == 0 ||
			got.Findings[0].Severity != catalog.SeverityError ||
			!strings.Contains(got.Findings[0].Message, "limit "+c.limit) {
			t.Errorf("%s: want the limit %s, got\n%s", name, c.limit, lines(got))
		}
		if len(got.Packages) != 1 {
			t.Errorf("%s: the other package is gone", name)
		}
	}
}

// TestHeapOfManyDocumentsOnOneLine proves that the cost of a line grows with its length, however many documents
// stand on it (R-CAT-3). It counts all that is allocated, so it runs alone.
func TestHeapOfManyDocumentsOnOneLine(t *testing.T) {
	const n, most = 50_000, raceFactor * 400 << 20
	line := strings.Repeat(`{"schema":"sea.test/note","name":"n"}`, n) + strings.Repeat(" ", 1<<20)
	before := allocated()
	c := loadFiles(t, files{"a": line})
	if spent := allocated() - before; c.Stats.Documents != n || len(c.Blobs) != 1 || spent > most {
		t.Errorf("%d documents, %d blobs, %d MB allocated", c.Stats.Documents, len(c.Blobs), spent>>20)
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestHostileManifests proves the same of the manifests of a bundle, wherever they stand: the bundle is left
// out or cannot be installed, and a bundle read by itself is refused.
func TestHostileManifests(t *testing.T) {
	t.Parallel()
	csv := manifestCSV("buoy.v1.0.0", "1.0.0", "")
	for name, c := range hostile() {
		if len(c.text) > 1<<20 {
			continue // the limits on whole documents have their test
		}
		dir := directory("1.0.0", csv, channels("steady"), files{"manifests/bad.yaml": c.text})
		if c.limit == "duplicate-key" || c.limit == "number-range" {
			// no bound: OLM takes the one and passes over the other
			got := loadFiles(t, dir)
			if len(got.Packages) != 1 || !strings.Contains(lines(got), "buoy/1.0.0/manifests/bad.yaml") {
				t.Errorf("%s in a directory: %s", name, lines(got))
			}
			continue
		}
		got := loadFiles(t, dir)
		if len(got.Packages) != 0 || !strings.Contains(lines(got), "limit "+c.limit) {
			t.Errorf("%s in a directory: want the limit %s, got\n%s", name, c.limit, lines(got))
		}
		_, findings := load.ReadBundle(files{
			"manifests/csv.yaml": csv, "manifests/bad.yaml": c.text,
			"metadata/annotations.yaml": dir["buoy/1.0.0/metadata/annotations.yaml"],
		}.fs(), nil, "")
		if findings.Err() == nil || !strings.Contains(findings.Err().Error(), "limit "+c.limit) {
			t.Errorf("%s in a bundle: %v", name, findings.Err())
		}
		got = loadFiles(t, files{"a": pkg + channel + another("buoy.v1.0.0", "1.0.0", object(csv), object(c.text))})
		if len(got.Packages) != 1 || got.Packages[0].Bundles[0].Content != "" ||
			!strings.Contains(lines(got), "limit "+c.limit) {
			t.Errorf("%s in a document: want the limit %s, got\n%s", name, c.limit, lines(got))
		}
	}
}

// TestLongIntegers proves that integers beyond 2^53 reach a cluster as they were written (RFC 8785 would
// round them), whichever way the manifest came.
func TestLongIntegers(t *testing.T) {
	t.Parallel()
	const odd = "9223372036854775807"
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nz: 1.50\na: [" + odd +
		", -9223372036854775808, 18446744073709551615]\n"
	want := `"a":[9223372036854775807,-9223372036854775808,18446744073709551615]`
	csv := manifestCSV("buoy.v1.0.0", "1.0.0", "")
	for name, in := range map[string]files{
		"directory": directory("1.0.0", csv, channels("steady"), files{"manifests/x.yaml": manifest}),
		"inline":    {"a": pkg + channel + another("buoy.v1.0.0", "1.0.0", object(csv), object(manifest))},
		"inline JSON": {"a": pkg + channel + another("buoy.v1.0.0", "1.0.0", object(csv),
			object(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x"},"z":1.50,`+want+`}`))},
	} {
		var kept load.Content
		c, err := load.Load(in.fs(), load.Options{Keep: func(c load.Content) error { kept = c; return nil }})
		if err != nil || len(c.Packages) != 1 || !bytes.Contains(kept.Canonical, []byte(want)) ||
			!bytes.Contains(kept.Canonical, []byte(`"z":1.5}`)) {
			t.Errorf("%s: %v, %s\n%s", name, err, lines(c), kept.Canonical)
			continue
		}
		content, d, err := bundle.FromCanonical(kept.Canonical)
		if err != nil || d != kept.Digest {
			t.Errorf("%s: %s, %v, want %s", name, d, err, kept.Digest)
		}
		if _, d, err = content.Canonical(); err != nil || d != kept.Digest {
			t.Errorf("%s: written again it is %s, %v, want %s", name, d, err, kept.Digest)
		}
	}
	c := loadFiles(t, files{"a": pkg + channel + another("buoy.v1.0.0", "1.0.0", "{type: sea.test/limit, value: "+odd+
		"}")})
	raw, err := c.Packages[0].Canonical()
	if err != nil || !bytes.Contains(raw, []byte(odd)) || !json.Valid(raw) {
		t.Errorf("property: %s, %v", raw, err)
	}
}

// TestLoops proves that links in circles, and links that lead out, end the load of nothing but themselves.
func TestLoops(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write("buoy/catalog.yaml", valid)
	link("self", "self")
	link("..", "buoy/parent")
	link("/proc/self/environ", "buoy/out.yaml")
	write("b/1.0.0/metadata/annotations.yaml", "annotations: {"+annotation("package.v1")+": b, "+
		annotation("channels.v1")+": c}")
	link("..", "b/1.0.0/manifests")
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	}()
	c, err := load.Load(root.FS(), load.Options{})
	if err != nil || len(c.Packages) != 1 || c.Findings.Errors() != 2 {
		t.Fatalf("%v, %d packages\n%s", err, len(c.Packages), lines(c))
	}
	for _, want := range []string{
		"self: error R-CAT-1", "buoy/out.yaml: error R-CAT-1", "buoy/parent: info R-CAT-1",
		"b/1.0.0: warning R-CAT-51",
	} {
		if !strings.Contains(lines(c), want) {
			t.Errorf("want %q in\n%s", want, lines(c))
		}
	}
}

// growing is a file system whose files have more to read than they say, without end where more is empty.
type growing struct {
	fstest.MapFS
	name string
	more string
}

func (g growing) Open(name string) (fs.File, error) {
	f, err := g.MapFS.Open(name)
	if err != nil || name != g.name {
		return f, err
	}
	return &grown{File: f, more: strings.NewReader(g.more), endless: g.more == ""}, nil
}

type grown struct {
	fs.File
	more    io.Reader
	endless bool
}

func (g *grown) Read(b []byte) (int, error) {
	n, err := g.File.Read(b)
	if n > 0 || !errors.Is(err, io.EOF) {
		return n, err
	}
	if !g.endless {
		return g.more.Read(b)
	}
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// TestGrowingFiles proves that a file that grows while it is read is read to its new end, and one without
// end up to a limit (R-CAT-1, R-CAT-51).
func TestGrowingFiles(t *testing.T) {
	t.Parallel()
	mapFS := func(f files) fstest.MapFS {
		m, ok := f.fs().(fstest.MapFS)
		if !ok {
			t.Fatal("not a map")
		}
		return m
	}
	const csv = "buoy/1.0.0/manifests/csv.yaml"
	dir := directory("1.0.0", "# text\n", channels("steady"), nil)
	for _, c := range []struct {
		name string
		fs   growing
		want string
	}{
		{"a catalog file", growing{mapFS(files{"a": pkg + channel}), "a", oneBundle}, ""},
		{"a manifest", growing{mapFS(dir), csv, manifestCSV("buoy.v1.0.0", "1.0.0", "")}, ""},
		{"an endless catalog file", growing{mapFS(files{"a": valid, "b": "a: "}), "b", ""}, "limit document-bytes"},
		{"an endless manifest", growing{mapFS(dir), csv, ""}, "beyond the limit of"},
	} {
		got, err := load.Load(c.fs, load.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if c.want == "" && (len(got.Packages) != 1 || got.Findings.Errors() > 0) || c.want != "" &&
			!strings.Contains(lines(got), c.want) {
			t.Errorf("%s: %d packages, want %q in\n%s", c.name, len(got.Packages), c.want, lines(got))
		}
	}
}

// TestCycles proves that graphs that go in circles are told, and end (R-CAT-35, R-CAT-37).
func TestCycles(t *testing.T) {
	t.Parallel()
	bundles := another("buoy.v1.0.0", "1.0.0") + another("buoy.v1.1.0", "1.1.0") + another("buoy.v1.2.0", "1.2.0")
	for name, c := range map[string]struct{ entries, rule string }{
		"replaces itself": {"{name: buoy.v1.0.0, replaces: buoy.v1.0.0}, {name: buoy.v1.1.0}, {name: buoy.v1.2.0, " +
			"replaces: buoy.v1.1.0}", "R-CAT-3"},
		"replaces in turn": {"{name: buoy.v1.0.0, replaces: buoy.v1.1.0}, {name: buoy.v1.1.0, replaces: " +
			"buoy.v1.0.0}, {name: buoy.v1.2.0, replaces: buoy.v1.1.0}", "R-CAT-37"},
		"all in a circle": {"{name: buoy.v1.0.0, replaces: buoy.v1.2.0}, {name: buoy.v1.1.0, replaces: " +
			"buoy.v1.0.0}, {name: buoy.v1.2.0, replaces: buoy.v1.1.0}", "R-CAT-35"},
		"skips in turn": {"{name: buoy.v1.0.0, skips: [buoy.v1.1.0]}, {name: buoy.v1.1.0, skips: [buoy.v1.2.0]}, " +
			"{name: buoy.v1.2.0, skips: [buoy.v1.0.0]}", "R-CAT-35"},
		"skips and follows": {"{name: buoy.v1.0.0, skips: [buoy.v1.1.0]}, {name: buoy.v1.1.0, replaces: " +
			"buoy.v1.0.0}, {name: buoy.v1.2.0, replaces: buoy.v1.0.0, skips: [buoy.v1.2.0]}", "R-CAT-3"},
	} {
		got := loadFiles(t, files{"a": pkg + strings.Replace(channel, "{name: buoy.v1.0.0}", c.entries, 1) + bundles})
		if len(got.Packages) != 0 || !strings.Contains(lines(got), "error "+c.rule) {
			t.Errorf("%s: want %s, got\n%s", name, c.rule, lines(got))
		}
	}
}
