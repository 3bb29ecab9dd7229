package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/archive"
)

func dir(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755} }

func file(name, text string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text)), Uname: text}
}

func link(name, to string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}
}

func hard(name, to string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: to}
}

// pack makes a tar file; the text of a file stands in the header's Uname.
func pack(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		text := h.Uname
		h.Uname = ""
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gz(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zst(t testing.TB, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}

func target(t testing.TB, l archive.Limits) *archive.Target {
	t.Helper()
	out, err := archive.NewTarget(t.TempDir(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := out.Close(); err != nil {
			t.Error(err)
		}
	})
	return out
}

// read returns all files, links by their text.
func read(t testing.TB, fsys fs.FS) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Type() == fs.ModeSymlink:
			to, err := fs.ReadLink(fsys, name)
			out[name] = "-> " + to
			return err
		case d.Type().IsRegular():
			b, err := fs.ReadFile(fsys, name)
			out[name] = string(b)
			return err
		default:
			return nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFormats proves that one content comes out of tar, tar.gz and tar.zst, whatever the file is called.
func TestFormats(t *testing.T) {
	t.Parallel()
	plain := pack(t, tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}},
		dir("./"), dir("p/"), file("p/catalog.yaml", "schema: x\n"), file("./q/r/s", ""), link("p/l", "../q/r/s"),
		hard("p/h", "p/catalog.yaml"))
	want := map[string]string{"p/catalog.yaml": "schema: x\n", "p/h": "schema: x\n", "p/l": "-> ../q/r/s", "q/r/s": ""}
	skippable := append([]byte{0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3}, zst(t, plain)...)
	for name, b := range map[string][]byte{
		"tar": plain, "tar.gz": gz(t, plain), "tar.zst": zst(t, plain),
		"tar.zst after a frame to skip": skippable,
	} {
		out := target(t, archive.Standard())
		if err := archive.Extract(t.Context(), bytes.NewReader(b), out, archive.Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, read(t, out.FS())); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestParts proves that only what is asked for is unpacked, to the place asked for.
func TestParts(t *testing.T) {
	t.Parallel()
	b := pack(t, file("a/x", "1"), file("a/b/y", "2"), file("ab/z", "3"), file(".hidden", "4"),
		tar.Header{Name: "dev/null", Typeflag: tar.TypeChar})
	for _, c := range []struct {
		parts []archive.Part
		want  map[string]string
	}{
		{[]archive.Part{{From: "a", To: "."}}, map[string]string{"x": "1", "b/y": "2"}},
		{[]archive.Part{{From: "a/b", To: "m"}, {From: "ab", To: "n"}}, map[string]string{"m/y": "2", "n/z": "3"}},
		{[]archive.Part{{From: "a/x", To: "index.db"}}, map[string]string{"index.db": "1"}},
		{[]archive.Part{{From: "none", To: "."}}, map[string]string{}},
	} {
		out := target(t, archive.Standard())
		if err := archive.Extract(t.Context(), bytes.NewReader(b), out, archive.Options{Parts: c.parts}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, read(t, out.FS())); diff != "" {
			t.Errorf("%v: %s", c.parts, diff)
		}
		if out.Empty() != (len(c.want) == 0) {
			t.Errorf("%v: Empty = %t", c.parts, out.Empty())
		}
	}
}

// TestHostile proves that each kind of hostile or broken archive meets its rule, and that the error names
// the entry (issue: Hostile and broken input).
func TestHostile(t *testing.T) {
	t.Parallel()
	small := archive.Limits{
		Entries: 8, Names: 6000, EntryBytes: 4 << 10, Bytes: 6 << 10, Compressed: 64 << 10,
		Depth: 3, Ratio: 10, RatioFree: 8 << 10,
	}
	good := file("p/catalog.yaml", strings.Repeat("schema: x\n", 40))
	many := make([]tar.Header, 0, 10)
	for i := range 10 {
		many = append(many, file(string(rune('a'+i)), ""))
	}
	full := pack(t, good, file("q", strings.Repeat("q", 600)))
	damaged := gz(t, full)
	damaged[len(damaged)-6] ^= 0xff // the checksum
	for name, c := range map[string]struct {
		b     []byte
		kind  errs.Kind
		rule  string
		entry string
	}{
		"a name that escapes": {pack(t, good, file("../evil", "x")), errs.Invalid, archive.RuleName, "../evil"},
		"a name that escapes within": {
			pack(t, file("a/b/../../../evil", "x")), errs.Invalid, archive.RuleName,
			"a/b/../../../evil",
		},
		"an absolute name": {pack(t, file("/etc/evil", "x")), errs.Invalid, archive.RuleName, "/etc/evil"},
		"no UTF-8":         {pack(t, file("a\xff", "x")), errs.Invalid, archive.RuleName, "a\xff"},
		"a long name": {
			pack(t, file(strings.Repeat("a", 5000), "x")), errs.TooLarge, archive.RuleName,
			strings.Repeat("a", 200) + "…",
		},
		"a name the system refuses": {
			pack(t, file(strings.Repeat("a", 300), "x")), errs.Invalid, archive.RuleName,
			strings.Repeat("a", 200) + "…",
		},
		"a link that leaves": {
			pack(t, link("p/l", "../../etc/passwd")), errs.Invalid, archive.RuleLink,
			"p/l",
		},
		"an absolute link": {pack(t, link("p/l", "/etc/passwd")), errs.Invalid, archive.RuleLink, "p/l"},
		"an empty link":    {pack(t, link("p/l", "")), errs.Invalid, archive.RuleLink, "p/l"},
		"a file through a link": {
			pack(t, dir("d"), link("l", "d"), file("l/x", "x")), errs.Invalid,
			archive.RuleLink, "l/x",
		},
		"a file below a file": {
			pack(t, good, file("p/catalog.yaml/x", "x")), errs.Invalid, archive.RuleLink,
			"p/catalog.yaml/x",
		},
		"a hard link that leaves": {pack(t, hard("h", "../etc/passwd")), errs.Invalid, archive.RuleLink, "h"},
		"a hard link to nothing":  {pack(t, hard("h", "x")), errs.Invalid, archive.RuleLink, "h"},
		"a hard link to a link":   {pack(t, link("l", "x"), hard("h", "l")), errs.Invalid, archive.RuleLink, "h"},
		"an absolute hard link": {
			pack(t, good, hard("h", "/p/catalog.yaml")), errs.Invalid, archive.RuleLink,
			"h",
		},
		"a hard link to itself": {
			pack(t, good, hard("p/catalog.yaml", "p/catalog.yaml")), errs.Invalid,
			archive.RuleLink, "p/catalog.yaml",
		},
		"a device": {pack(t, tar.Header{
			Name: "dev/mem", Typeflag: tar.TypeChar, Devmajor: 1,
			Devminor: 1,
		}), errs.Invalid, archive.RuleKind, "dev/mem"},
		"a pipe": {
			pack(t, tar.Header{Name: "pipe", Typeflag: tar.TypeFifo}), errs.Invalid,
			archive.RuleKind, "pipe",
		},
		"the root as a file": {pack(t, link(".", "p")), errs.Invalid, archive.RuleKind, "."},
		"a file twice":       {pack(t, good, good), errs.Invalid, archive.RuleDuplicate, "p/catalog.yaml"},
		"a file twice, spelled apart": {
			pack(t, good, file("./p//catalog.yaml", "x")), errs.Invalid,
			archive.RuleDuplicate, "p/catalog.yaml",
		},
		"a directory in its place": {
			pack(t, good, dir("p/catalog.yaml")), errs.Invalid, archive.RuleDuplicate,
			"p/catalog.yaml",
		},
		"too many entries": {pack(t, many...), errs.TooLarge, archive.RuleEntries, "i"},
		"too many directories": {
			pack(t, file("a/b/c/1", ""), file("d/e/f/2", ""), file("g/3", "")),
			errs.TooLarge, archive.RuleEntries, "g/3",
		},
		"files too large by links": {
			pack(t, file("a", strings.Repeat("x", 4<<10)), hard("b", "a")), errs.TooLarge,
			archive.RuleBytes, "b",
		},
		"files too large by symlinks": {pack(t, link("b", "a"), link("c", "b"), link("d", "nothing"), link("e", "e"),
			link("f", "."), file("a", strings.Repeat("x", 3<<10))), errs.TooLarge, archive.RuleBytes, "c"},
		"too deep": {pack(t, file("a/b/c/d/e", "x")), errs.TooLarge, archive.RuleDepth, "a/b/c/d/e"},
		"a file too large": {
			pack(t, file("big", strings.Repeat("x", 5<<10))), errs.TooLarge,
			archive.RuleEntryBytes, "big",
		},
		"files too large": {pack(t, file("a", strings.Repeat("x", 4<<10)),
			file("b", strings.Repeat("x", 4<<10))), errs.TooLarge, archive.RuleBytes, "b"},
		"too much to fetch": {
			append(pack(t, good), make([]byte, 100<<10)...), errs.TooLarge,
			archive.RuleCompressed, "",
		},
		"a gzip bomb": {
			gz(t, pack(t, good, file("bomb", strings.Repeat("x", 60<<10)))), errs.TooLarge,
			archive.RuleRatio, "bomb",
		},
		"a bomb that is passed over": {
			gz(t, append(pack(t, good), make([]byte, 60<<10)...)), errs.TooLarge,
			archive.RuleRatio, "p/catalog.yaml",
		},
		"a zstd bomb": {
			zst(t, append(pack(t, good), make([]byte, 60<<10)...)), errs.TooLarge,
			archive.RuleRatio, "p/catalog.yaml",
		},
		"a huge window": {
			[]byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 1, 0, 0},
			errs.TooLarge,
			archive.RuleRatio, "",
		},
		"truncated in a file":     {full[:1700], errs.Invalid, archive.RuleTruncated, "q"},
		"truncated between files": {full[:1024], errs.Invalid, archive.RuleTruncated, "p/catalog.yaml"},
		"truncated with gzip":     {gz(t, full)[:60], errs.Invalid, archive.RuleTruncated, ""},
		"damaged":                 {damaged, errs.Invalid, archive.RuleFormat, "q"},
		"empty":                   {nil, errs.Invalid, archive.RuleTruncated, ""},
		"something else": {
			[]byte(strings.Repeat("schema: olm.package\n", 100)), errs.Invalid,
			archive.RuleFormat, "",
		},
		"gzip of something else": {
			gz(t, []byte(strings.Repeat("schema: olm.package\n", 100))), errs.Invalid,
			archive.RuleFormat, "",
		},
		"a damaged header": {
			append(append([]byte{}, full[:1024]...), bytes.Repeat([]byte("x"), 1024)...), errs.Invalid,
			archive.RuleFormat, "p/catalog.yaml",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := archive.Extract(t.Context(), bytes.NewReader(c.b), target(t, small), archive.Options{})
			e, ok := errors.AsType[*errs.Error](err)
			if !ok || e.Kind != c.kind || e.Rule != c.rule || e.Field != c.entry {
				t.Fatalf("%v\n is %+v\nwant kind %s, rule %s, entry %q", err, e, c.kind, c.rule, c.entry)
			}
			if !strings.Contains(err.Error(), strings.ToValidUTF8(c.entry, `\xff`)) || len(err.Error()) > 600 {
				t.Errorf("the sentence is %q", err)
			}
		})
	}
}

// TestTransfer proves that what a reader itself reports is told from a broken archive: it is transient.
func TestTransfer(t *testing.T) {
	t.Parallel()
	full := gz(t, pack(t, file("a", "b")))
	for name, c := range map[string]struct {
		after error
		want  errs.Kind
	}{
		"a network":       {errors.New("connection reset by peer"), errs.Unavailable},
		"a cut body":      {io.ErrUnexpectedEOF, errs.Unavailable},
		"a reader's kind": {errs.New(errs.Forbidden, "no"), errs.Forbidden},
	} {
		r := io.MultiReader(bytes.NewReader(full[:20]), errReader{c.after})
		if err := archive.Extract(t.Context(), r, target(t, archive.Standard()), archive.Options{}); errs.KindOf(
			err) != c.want {
			t.Errorf("%s: %v, want kind %s", name, err, c.want)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errs.New(errs.Unavailable, "enough"))
	if err := archive.Extract(ctx, bytes.NewReader(full), target(t, archive.Standard()),
		archive.Options{}); err == nil || err.Error() != "enough" {
		t.Errorf("a look that ended gives %v", err)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// TestLayers proves what layers of an image mean together: the later one replaces and removes, names
// begin at the image's root, and nothing outside of the parts counts.
func TestLayers(t *testing.T) {
	t.Parallel()
	base := []tar.Header{
		dir("configs"), file("configs/a", "1"), file("configs/b/c", "2"), file("configs/b/d", "3"),
		file("etc/passwd", "x"),
	}
	for name, c := range map[string]struct {
		layers [][]tar.Header
		want   map[string]string
	}{
		"one": {nil, map[string]string{"a": "1", "b/c": "2", "b/d": "3"}},
		"a file replaced": {
			[][]tar.Header{{file("/configs/a", "new")}},
			map[string]string{"a": "new", "b/c": "2", "b/d": "3"},
		},
		"a file removed": {
			[][]tar.Header{{file("configs/b/.wh.c", "")}},
			map[string]string{"a": "1", "b/d": "3"},
		},
		"a directory removed": {[][]tar.Header{{file("configs/.wh.b", "")}}, map[string]string{"a": "1"}},
		"what is not there removed": {
			[][]tar.Header{{file("configs/.wh.x", "")}},
			map[string]string{"a": "1", "b/c": "2", "b/d": "3"},
		},
		"removed, then made anew": {
			[][]tar.Header{{file("configs/.wh.b", ""), file("configs/b/e", "4")}},
			map[string]string{"a": "1", "b/e": "4"},
		},
		"made anew, then removed": {
			[][]tar.Header{{file("configs/b/e", "4"), file("configs/.wh.b", "")}},
			map[string]string{"a": "1", "b/e": "4"},
		},
		"an opaque directory": {[][]tar.Header{
			{file("configs/b/e", "4"), file("configs/b/.wh..wh..opq", "")},
		}, map[string]string{"a": "1", "b/e": "4"}},
		"an opaque root": {
			[][]tar.Header{{file(".wh..wh..opq", ""), file("configs/b/e", "4")}},
			map[string]string{"b/e": "4"},
		},
		"opaque configs": {
			[][]tar.Header{{file("configs/.wh..wh..opq", ""), file("configs/b/e", "4")}},
			map[string]string{"b/e": "4"},
		},
		"configs removed": {
			[][]tar.Header{{file(".wh.configs", "")}, {file("configs/z", "5")}},
			map[string]string{"z": "5"},
		},
		"a file in a directory's place": {
			[][]tar.Header{{file("configs/b", "5")}},
			map[string]string{"a": "1", "b": "5"},
		},
		"a directory in a file's place": {
			[][]tar.Header{{dir("configs/a"), file("configs/a/x", "6")}},
			map[string]string{"a/x": "6", "b/c": "2", "b/d": "3"},
		},
		"an absolute link": {
			[][]tar.Header{{link("configs/b/l", "/configs/a")}},
			map[string]string{"a": "1", "b/c": "2", "b/d": "3", "b/l": "-> ../a"},
		},
		"a link, and then a file": {[][]tar.Header{
			{link("configs/l", "b")},
			{file("configs/l", "7")},
			{file("configs/.wh.l", "")},
		}, map[string]string{"a": "1", "b/c": "2", "b/d": "3"}},
		"a hard link to below": {
			[][]tar.Header{{hard("configs/h", "/configs/b/c")}},
			map[string]string{"a": "1", "b/c": "2", "b/d": "3", "h": "2"},
		},
		"devices elsewhere": {
			[][]tar.Header{{
				tar.Header{Name: "dev/null", Typeflag: tar.TypeChar},
				link("etc/l", "/../../x"), file("etc/\xff", ""), file(strings.Repeat("deep/", 100)+"x", ""),
			}},
			map[string]string{"a": "1", "b/c": "2", "b/d": "3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := target(t, archive.Standard())
			for _, l := range append([][]tar.Header{base}, c.layers...) {
				if err := archive.Extract(t.Context(), bytes.NewReader(pack(t, l...)), out,
					archive.Options{Layer: true, Parts: []archive.Part{{From: "configs", To: "."}}}); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(c.want, read(t, out.FS())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestHostileLayers proves that layers meet the same rules inside of what is read.
func TestHostileLayers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		layer []tar.Header
		rule  string
	}{
		"a link out of the catalog": {[]tar.Header{link("configs/l", "/etc/passwd")}, archive.RuleLink},
		"a link up":                 {[]tar.Header{link("configs/l", "../etc/passwd")}, archive.RuleLink},
		"a link named like it":      {[]tar.Header{link("configs/l", "/configs2/x")}, archive.RuleLink},
		"the catalog is a link":     {[]tar.Header{link("configs", "/opt")}, archive.RuleKind},
		"a hard link out":           {[]tar.Header{file("etc/x", ""), hard("configs/h", "etc/x")}, archive.RuleLink},
		"a name that escapes":       {[]tar.Header{file("etc/../../x", "")}, archive.RuleName},
		"a whiteout twice": {
			[]tar.Header{file("configs/.wh.x", ""), file("configs/.wh.x", "")},
			archive.RuleDuplicate,
		},
		"a file twice": {
			[]tar.Header{file("configs/x", ""), file("/configs/x", "")},
			archive.RuleDuplicate,
		},
		"a device":                 {[]tar.Header{{Name: "configs/null", Typeflag: tar.TypeBlock}}, archive.RuleKind},
		"the image's root a link":  {[]tar.Header{link("./", "x")}, archive.RuleKind},
		"the image's root a pipe":  {[]tar.Header{{Name: "/.", Typeflag: tar.TypeFifo}}, archive.RuleKind},
		"a whiteout of nothing":    {[]tar.Header{file("configs/.wh.", "")}, archive.RuleName},
		"a whiteout of itself":     {[]tar.Header{file("configs/.wh..", "")}, archive.RuleName},
		"a whiteout of what holds": {[]tar.Header{file("configs/.wh...", "")}, archive.RuleName},
	} {
		err := archive.Extract(t.Context(), bytes.NewReader(pack(t, c.layer...)), target(t, archive.Standard()),
			archive.Options{Layer: true, Parts: []archive.Part{{From: "configs", To: "."}}})
		if e, ok := errors.AsType[*errs.Error](err); !ok || e.Rule != c.rule || e.Kind != errs.Invalid {
			t.Errorf("%s: %v, want rule %s", name, err, c.rule)
		}
	}
}

// TestNothingOutside proves that reading never leaves the target, even by a chain of links that each look
// harmless (DESIGN D10), and that the target is gone after Close.
func TestNothingOutside(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	out, err := archive.NewTarget(parent, archive.Standard())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(parent+"/secret", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := pack(t, dir("a/b"), link("a/b/up", ".."), link("up", "a/b/up/.."), link("s", "up/../secret"))
	if err := archive.Extract(t.Context(), bytes.NewReader(b), out, archive.Options{}); err != nil {
		t.Fatal(err)
	}
	if b, err := fs.ReadFile(out.FS(), "s"); err == nil {
		t.Errorf("read %q from outside", b)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(parent)
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// FuzzExtract proves that no input makes the reader panic, pass a limit, or leave the target.
func FuzzExtract(f *testing.F) {
	for _, h := range [][]tar.Header{
		{dir("p"), file("p/catalog.yaml", "schema: x\n"), link("p/l", "catalog.yaml"), hard("p/h", "p/catalog.yaml")},
		{
			file("configs/a", "1"), file("configs/.wh.a", ""), file("configs/.wh..wh..opq", ""),
			link("configs/l", "/configs/a"),
		},
		{file("../x", ""), file("/x", ""), link("l", "../x"), tar.Header{Name: "n", Typeflag: tar.TypeFifo}},
		{
			tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}},
			file(strings.Repeat("n", 200), "x"),
		},
	} {
		b := pack(f, h...)
		f.Add(b, true)
		f.Add(gz(f, b), false)
		f.Add(zst(f, b), true)
	}
	limits := archive.Limits{
		Entries: 20, Names: 4 << 10, EntryBytes: 8 << 10, Bytes: 16 << 10, Compressed: 1 << 20,
		Depth: 4, Ratio: 50, RatioFree: 32 << 10,
	}
	f.Fuzz(func(t *testing.T, b []byte, layer bool) {
		out := target(t, limits)
		o := archive.Options{Layer: layer}
		if layer {
			o.Parts = []archive.Part{{From: "configs", To: "."}}
		}
		for range 2 { // a second layer meets what the first one left
			err := archive.Extract(t.Context(), bytes.NewReader(b), out, o)
			if k := errs.KindOf(err); err != nil && k != errs.Invalid && k != errs.TooLarge {
				t.Fatalf("kind %s: %v", k, err)
			}
		}
		var total int64
		n := 0
		err := fs.WalkDir(out.FS(), ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if !fs.ValidPath(name) {
				t.Errorf("name %q", name)
			}
			n++
			if d.Type().IsRegular() {
				info, err := d.Info()
				if err != nil {
					return err
				}
				total += info.Size()
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if total > limits.Bytes || n > 1+limits.Entries {
			t.Errorf("%d bytes in %d entries are beyond the limits", total, n)
		}
	})
}

// TestTargetIsAFileSystem proves that what was unpacked behaves as a file system should.
func TestTargetIsAFileSystem(t *testing.T) {
	t.Parallel()
	out := target(t, archive.Standard())
	if err := archive.Extract(t.Context(), bytes.NewReader(pack(t, file("p/a", "1"), file("p/b", "2"))), out,
		archive.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(out.FS(), "p/a", "p/b"); err != nil {
		t.Error(err)
	}
	if out.Has("p/a") != archive.File || out.Has("p") != archive.Directory || out.Has("x") != 0 {
		t.Error("Has does not tell what is there")
	}
	if _, err := os.Stat(out.Path("p/a")); err != nil {
		t.Error(err)
	}
}
