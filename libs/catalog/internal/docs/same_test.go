package docs

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	"github.com/chandler-fleet/chandler/libs/internal/jsontree"
)

var usual = Limits{FileBytes: 1 << 30, DocumentBytes: 32 << 20, Documents: 100_000, Depth: 200, Nodes: 1_000_000}

// differs tells where the block reader means something else than the library; "" where it gives up, too.
func differs(data []byte, l Limits) string {
	var fast, slow jsontree.Builder
	fast.Reset(l.tree())
	slow.Reset(l.tree())
	var y blockReader
	if !y.read(data, &fast) {
		return ""
	}
	if err := decodeYAML(data, &slow, l); err != nil {
		return "the library refuses it: " + err.Error()
	}
	if diff := cmp.Diff(string(slow.Tree().Root().JSON()), string(fast.Tree().Root().JSON())); diff != "" {
		return diff
	}
	if len(fast.Tree().Faults()) != len(slow.Tree().Faults()) {
		return "other faults"
	}
	return place("", slow.Tree().Root(), fast.Tree().Root())
}

// place compares where values stand. What is empty stands nowhere in particular.
func place(path string, want, got Value) string {
	if want.Kind() != jsontree.Null && (want.Line() != got.Line() || want.Column() != got.Column()) {
		return cmp.Diff([]int{want.Line(), want.Column()}, []int{got.Line(), got.Column()}) + " at " + path
	}
	var theirs []Value
	for v := range want.Items() {
		theirs = append(theirs, v)
	}
	for k, v := range want.Members() {
		theirs = append(theirs, k, v)
	}
	i := 0
	next := func(v Value) string {
		i++
		return place(path+"/"+v.Text(), theirs[i-1], v)
	}
	for v := range got.Items() {
		if d := next(v); d != "" {
			return d
		}
	}
	for k, v := range got.Members() {
		if d := next(k) + next(v); d != "" {
			return d
		}
	}
	return ""
}

// seeds are layouts that the block reader takes, and ones that it must leave to the library.
var seeds = []string{
	"a: 1\nb:\n- x\n- y: 2\n  z: 3\nc:\n  - - 1\n    - 2\n  -\n    d: e\n",
	"a: 'it''s'\nb: \"x\\ty\\u00e9\\U0001F600\"\nc: plain text\n  goes on\n\n  and on\n",
	"a: |\n  one\n   two\n\n  three\nb: >-\n  x\n  y\n\n   z\n  w\nc: |2+\n    t\n\n",
	"a: {b: 1, \"c\": [x, 'y', {}], d: []}\nb: \"x\n  y\n\n  z \\\n  w\"\n",
	"# c\na: b # c\n# d\nb: # e\n  c: d\n",
	"a:\n- b\nc: ~\nd:\ne: - f\n", "- a\n- b: c\n", "a: &x b\nc: *x\n", "a: !!str 1\n", "a\tb: c\n", "? a\n: b\n",
	"<<: {a: b}\n",
	"a: 1.0\nb: 0x1f\nc: 010\nd: 1_0\ne: yes\nf: .5\ng: 2020-01-02\nh: -1\ni: +1\nj: 1e3\nk: .inf\nl: NO\nm: null\n",
	"é: ü\nx: {ä: ö, b: c}\n", "a: b: c\n", "a: b\n c: d\n", " a: b\n c: d\n", "a: |\n\tb\n", "a: |\n   \n  b\n",
	"a: >\n\n  b\n  c\n\n\n", "\"a\" : b\n'c': d\n", "a: b\n--- x", "a: \"b\nc\"", "a: 'b\n\n c'\n", "a: [b,\n c]\n",
	"a: {\"b\":1}\n", "a: # c\n- b\n", "a: x#y\n", "a: x #y\n z\n", "a: |-\n", "a: >+\n\n\n", "- - a\n  - b\n- c\n",
}

// TestBlockReader proves that the block reader takes usual layouts, and means what the library means.
func TestBlockReader(t *testing.T) {
	t.Parallel()
	for _, s := range seeds {
		if d := differs([]byte(s), usual); d != "" {
			t.Errorf("%q: %s", s, d)
		}
	}
	for _, s := range seeds[:5] {
		var y blockReader
		var b jsontree.Builder
		b.Reset(usual.tree())
		if !y.read([]byte(s), &b) {
			t.Errorf("%q is left to the library", s)
		}
	}
}

// FuzzBlockReader proves the same of arbitrary text: where it does not give up, it is right.
func FuzzBlockReader(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := Split(bytes.NewReader(data), wide, func(c Chunk) error { // the reader sees what stands between marks
			if d := differs(c.Text(), wide); d != "" && c.StartsLine() && !c.json {
				return errors.New(d)
			}
			return nil
		})
		if limit, ok := errors.AsType[*Error](err); err != nil && (!ok || limit.Limit == "") {
			t.Fatalf("%q: %v", data, err)
		}
	})
}

// TestBlockReaderOfRealFiles proves that nearly all documents that people publish are taken, and mean what
// the library means.
func TestBlockReaderOfRealFiles(t *testing.T) {
	t.Parallel()
	const every = 7 // one file of so many: the rest shows nothing more
	var all, left int
	for _, archive := range []string{
		catalogtest.Okderators, catalogtest.InstallSet, catalogtest.CertifiedFBC414,
		catalogtest.CertifiedFBC420, catalogtest.CertifiedBundles420,
	} {
		n := 0
		dir := catalogtest.Unpack(t, archive, func(string) bool { n++; return n%every == 0 })
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".yaml") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return Split(bytes.NewReader(text), usual, func(c Chunk) error {
				all++
				var y blockReader
				var b jsontree.Builder
				b.Reset(usual.tree())
				if !y.read(c.Text(), &b) {
					left++
				}
				if d := differs(c.Text(), usual); d != "" {
					t.Errorf("%s: %s", path, d)
				}
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if all < 50 || left*20 > all {
		t.Errorf("%d of %d documents are left to the library", left, all)
	}
	t.Logf("%d documents, %d left to the library", all, left)
}
