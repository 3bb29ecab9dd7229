package fbc_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	"github.com/chandler-fleet/chandler/libs/catalog/fbc"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/errs"
)

func write(t rapid.TB, f fbc.Format, blobs ...fbc.Blob) string {
	t.Helper()
	var out bytes.Buffer
	if err := fbc.Write(&out, f, fbc.All(blobs)); err != nil {
		t.Fatalf("write: %v", err)
	}
	return out.String()
}

func blob(t rapid.TB, raw string) fbc.Blob {
	t.Helper()
	b, err := fbc.ParseBlob([]byte(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return b
}

// TestForm shows what is written: the keys that identify a document first, the others in order, lists as
// they are; documents of unknown schemas keep the order of their keys (R-CAT-8, R-CAT-62).
func TestForm(t *testing.T) {
	t.Parallel()
	channel := blob(
		t, `{"entries":[{"skips":["b.v1","a.v1"],"replaces":"a.v2","name":"a.v3"},{"name":"a.v2"}],"Name":"1.10","package":"a","schema":"olm.channel","properties":[]}`)
	other := blob(t, `{"schema":"x.test/y","b":1.50,"a":{"z":null,"y":"one\ntwo\n","x":"true","w":{}}}`)
	wantYAML := `---
schema: olm.channel
package: a
name: "1.10"
entries:
- name: a.v3
  replaces: a.v2
  skips:
  - b.v1
  - a.v1
- name: a.v2
properties: []
---
schema: x.test/y
b: 1.50
a:
  z: null
  "y": |
    one
    two
  x: "true"
  w: {}
`
	if diff := cmp.Diff(wantYAML, write(t, fbc.YAML, channel, other)); diff != "" {
		t.Errorf("YAML (-want +got):\n%s", diff)
	}
	wantJSON := `{
  "schema": "x.test/y",
  "b": 1.50,
  "a": {
    "z": null,
    "y": "one\ntwo\n",
    "x": "true",
    "w": {}
  }
}
`
	if diff := cmp.Diff(wantJSON, write(t, fbc.JSON, other)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

// TestParseBlob: R-CAT-6, and what is no JSON or beyond the bounds of a document is refused by name.
func TestParseBlob(t *testing.T) {
	t.Parallel()
	b := blob(t, `{"SCHEMA":"olm.package","Name":"buoy"}`)
	if b.Schema != "olm.package" || b.Package != "buoy" || b.Name != "buoy" {
		t.Errorf("the envelope in any case: %+v", b)
	}
	deep := strings.Repeat("[", catalog.MaxNesting+2) + strings.Repeat("]", catalog.MaxNesting+2)
	for name, c := range map[string]struct {
		raw, want string
		kind      errs.Kind
	}{
		"no schema":    {`{"name":"x"}`, "missing root schema", errs.Invalid},
		"list":         {`[]`, "must be an object", errs.Invalid},
		"twice folded": {`{"schema":"a","Schema":"b"}`, "duplicate keys", errs.Invalid},
		"twice":        {`{"schema":"a","x":{"k":1,"k":2}}`, "occurs twice", errs.Invalid},
		"number":       {`{"schema":7}`, "must be a string", errs.Invalid},
		"no JSON":      {`{"schema":"a"`, "no valid JSON", errs.Invalid},
		"no UTF-8":     {"{\"schema\":\"a\xff\"}", "no valid JSON", errs.Invalid},
		"deep":         {`{"schema":"a","x":` + deep + `}`, "nest more than", errs.TooLarge},
	} {
		_, err := fbc.ParseBlob([]byte(c.raw))
		if err == nil || !strings.Contains(err.Error(), c.want) || !errs.Is(err, c.kind) {
			t.Errorf("%s: got %v, want %q of kind %s", name, err, c.want, c.kind)
		}
	}
}

// values draws any JSON value.
func values(depth int) *rapid.Generator[any] {
	hard := rapid.SampledFrom([]string{
		"", " ", "~", "y", "No", "on", "null", "true", "1", "-1", "1.10", "1e3", "0x1f", "0o7", "012", "1_000",
		"12:30:45", ".inf", ".NaN", "2020-01-02", "- a", "a: b", "a #b", "#a", "&a", "*a", "!a", "|", ">", "%a", "@a",
		"`a", "---", "--- a", "...", "? a", "<<", "=", "{", "[", "a\nb", "a\nb\n", "a\nb\n\n", " a\nb", "a\n b",
		"a \nb", "\ta\nb", "a\n\tb", "a\r\nb", "\na", "a\n\nb", "\u2028", "a\u0085b", "\ufeffa", "\x00", "\x7f", "é",
		"😀", "\"", "\\", "a'b", "\uffff\nb", strings.Repeat("k", 200), strings.Repeat("long ", 500), "a,b", "a]b",
		"a}b", "x: ", "x:", "-", "a\tb", "a  b", "a ", "---\nb", "a\n---\nb", "{\n", "key: |\n  x",
	})
	text := rapid.OneOf(hard, rapid.String())
	leaf := rapid.OneOf(text.AsAny(), rapid.Bool().AsAny(), rapid.Int32().AsAny(), rapid.Just[any](nil),
		rapid.Float64Range(-1e6, 1e6).AsAny())
	if depth == 0 {
		return leaf
	}
	below := values(depth - 1)
	return rapid.OneOf(leaf, rapid.SliceOfN(below, 0, 4).AsAny(), rapid.MapOfN(text, below, 0, 4).AsAny())
}

// TestRoundTrip: whatever a document holds is read back as it was, from JSON and from YAML, by Chandler's
// loader and by a reader of YAML 1.1 that knows nothing of it; and it is written the same again.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		body := map[string]any{
			"schema": rapid.SampledFrom([]string{"x.test/other", catalog.SchemaChannel}).Draw(rt, "schema"),
			"x":      values(3).Draw(rt, "value"),
		}
		want, err := json.Marshal(body)
		if err != nil {
			rt.Fatal(err)
		}
		first := blob(rt, string(want))
		for _, f := range []fbc.Format{fbc.JSON, fbc.YAML} {
			text := write(rt, f, first)
			var foreign any
			decode := map[fbc.Format]func([]byte, any) error{
				fbc.JSON: json.Unmarshal, fbc.YAML: func(b []byte, into any) error {
					return yaml.Unmarshal(
						b, into)
				},
			}[f]
			if err := decode([]byte(text), &foreign); err != nil {
				rt.Fatalf("%s is not read: %v\n%s", f, err, text)
			}
			same(rt, want, foreign, text)
			var again []fbc.Blob
			findings, err := fbc.Walk(fstest.MapFS{"c": {Data: []byte(text)}}, func(b fbc.Blob) error {
				again = append(again, b)
				return nil
			})
			if err != nil || len(findings) > 0 || len(again) != 1 {
				rt.Fatalf("%s: %v %v, %d documents\n%s", f, err, findings, len(again), text)
			}
			var own any
			if err := json.Unmarshal(again[0].Raw, &own); err != nil {
				rt.Fatal(err)
			}
			same(rt, want, own, text)
			if second := write(rt, f, again...); second != text {
				rt.Fatalf("%s differs the second time:\n%s\n%s", f, text, second)
			}
		}
	})
}

func same(t rapid.TB, want []byte, got any, text string) {
	t.Helper()
	var w any
	if err := json.Unmarshal(want, &w); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w, got); diff != "" {
		t.Fatalf("read back otherwise (-want +got):\n%s\n%s", diff, text)
	}
}

// TestWalk: what a file holds is what Walk reads from it, in order.
func TestWalk(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{"catalog.json": {Data: []byte(
		"{\"schema\":\"x.test/a\",\"name\":\"1\"}\n{\"schema\":\n\"x.test/b\",\"package\":\"p\"}\n")}}
	var out []fbc.Blob
	findings, err := fbc.Walk(tree, func(b fbc.Blob) error {
		out = append(out, b)
		return nil
	})
	if err != nil || len(findings) > 0 || len(out) != 2 {
		t.Fatalf("walk: %v %v %v", out, findings, err)
	}
	if out[0].Name != "1" || out[1].Package != "p" {
		t.Errorf("got %v", out)
	}
}

// TestRenderReal: a real catalog rendered, loaded and rendered again is the same, byte by byte and by the
// digest of every package (R-CAT-8, R-CAT-62).
func TestRenderReal(t *testing.T) {
	t.Parallel()
	for _, archive := range []string{
		catalogtest.CertifiedFBC414,
		catalogtest.CertifiedFBC420,
		catalogtest.Okderators, // several files a package
	} {
		t.Run(archive, func(t *testing.T) {
			t.Parallel()
			dir := catalogtest.Unpack(t, archive, nil)
			want := digests(t, dir)
			for _, f := range []fbc.Format{fbc.JSON, fbc.YAML} {
				first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
				render(t, f, dir, first)
				render(t, f, first, second)
				if a, b := read(t, first), read(t, second); !bytes.Equal(a, b) {
					t.Errorf("%s rendered again differs (%d and %d bytes)", f, len(a), len(b))
				}
				if diff := cmp.Diff(want, digests(t, first)); diff != "" {
					t.Errorf("%s loads otherwise (-want +got):\n%s", f, diff)
				}
			}
		})
	}
}

func render(t *testing.T, f fbc.Format, from, to string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o750); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(to, "catalog"))
	if err != nil {
		t.Fatal(err)
	}
	w := fbc.NewWriter(out, f)
	findings, err := fbc.Walk(os.DirFS(from), w.Write)
	if err != nil || findings.Err() != nil {
		t.Fatalf("walk: %v %v", err, findings)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "catalog"))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func digests(t *testing.T, dir string) map[string]string {
	t.Helper()
	c, err := load.Load(os.DirFS(dir), load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for name, d := range c.Digests() {
		out[name] = string(d)
	}
	for _, b := range c.Blobs {
		out[b.Schema+" "+b.Package+" "+b.Name] = string(b.Digest)
	}
	if len(out) == 0 {
		t.Fatal("the catalog is empty")
	}
	return out
}

// metered is a tree whose file counts what was read of it.
type metered struct {
	fstest.MapFS

	read *atomic.Int64
}

func (m metered) Open(name string) (fs.File, error) {
	f, err := m.MapFS.Open(name)
	if err != nil || name == "." {
		return f, err
	}
	return meteredFile{f, m.read}, nil
}

type meteredFile struct {
	fs.File

	read *atomic.Int64
}

func (f meteredFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.read.Add(int64(n))
	return n, err
}

// TestWalkHoldsFew: however large a catalog is, Walk is only a few documents ahead of its caller.
func TestWalkHoldsFew(t *testing.T) {
	t.Parallel()
	const documents, size = 400, 64 << 10
	one := `{"schema":"x.test/large","text":"` + strings.Repeat("x", size) + "\"}\n"
	tree := metered{fstest.MapFS{"catalog.json": {Data: []byte(strings.Repeat(one, documents))}}, &atomic.Int64{}}
	var handed, most int64
	n := 0
	findings, err := fbc.Walk(tree, func(fbc.Blob) error {
		n++
		handed += int64(len(one))
		most = max(most, tree.read.Load()-handed)
		return nil
	})
	if err != nil || len(findings) > 0 || n != documents {
		t.Fatalf("%d documents, %v, %v", n, findings, err)
	}
	if bound := int64(8*(runtime.GOMAXPROCS(0)+2)) * size; most > bound {
		t.Errorf("%d bytes were read ahead of the caller, more than %d", most, bound)
	}
}
