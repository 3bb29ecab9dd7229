package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/internal/sourcetest"
	"github.com/chandler-fleet/chandler/libs/source/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// read opens a database and loads what it holds.
func read(t *testing.T, file string) *load.Catalog {
	t.Helper()
	o := sqlite.Options{Path: file, Dir: t.TempDir()}
	tree, fingerprint, end, err := sqlite.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := sourcetest.LoadAny(t, tree)
	if err := end(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
		t.Errorf("closing leaves %v, %v", left, err)
	}
	if again, err := sqlite.Probe(t.Context(), o); err != nil || again != fingerprint {
		t.Errorf("probe returns %s, %v; opening returned %s", again, err, fingerprint)
	}
	return c
}

func noImage(catalog.Bundle) string { return "" }

// TestEqual: R-CAT-75, R-CAT-77. The first and the last version of the tables, with manifests inside and
// with images, hold the same catalog as the documents that they were made from.
func TestEqual(t *testing.T) {
	t.Parallel()
	image := func(b catalog.Bundle) string { return "registry.sea.test/" + b.Name + ":v1" }
	for name, c := range map[string]struct {
		schema string
		image  func(catalog.Bundle) string
		change func(*catalog.Package)
	}{
		"first tables": {first, noImage, func(p *catalog.Package) {
			for i := range p.Bundles { // neither images nor what is in dependencies.yaml had a table
				p.Bundles[i].RelatedImages = nil
				p.Bundles[i].Properties = slices.DeleteFunc(p.Bundles[i].Properties, func(q catalog.Property) bool {
					return strings.HasSuffix(q.Type, ".required") || q.Type == catalog.TypeConstraint
				})
			}
		}},
		"last tables, manifests": {last, noImage, unnamed},
		"last tables, images": {last, image, func(p *catalog.Package) {
			unnamed(p)
			heads := map[string]bool{}
			for _, ch := range p.Channels {
				heads[catalog.Heads(ch)[0]] = true
			}
			for i := range p.Bundles {
				b := &p.Bundles[i]
				b.Image, b.Content = image(*b), ""
				if !heads[b.Name] {
					b.Metadata = nil
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, store := sourcetest.Load(t, os.DirFS("../../../examples/catalog"))
			b := newDatabase(t, c.schema)
			b.fill(want, store, c.schema, c.image)
			got := read(t, b.done())
			if err := got.Findings.Err(); err != nil {
				t.Error(err)
			}
			sourcetest.Same(t, got, want, unstored, c.change)
		})
	}
}

// unstored takes out what no table holds: the order of properties, what a skipped entry replaced, and
// what an author wrote about the package, messages of deprecations among it.
func unstored(p *catalog.Package) {
	p.Description, p.Icon, p.Deprecations = "", nil, nil
	for i, ch := range p.Channels {
		skipped := map[string]bool{}
		for _, e := range ch.Entries {
			for _, s := range e.Skips {
				skipped[s] = true
			}
		}
		entries := slices.Clone(ch.Entries)
		for j := range entries {
			if skipped[entries[j].Name] {
				entries[j].Replaces, entries[j].Skips = "", nil
			}
			entries[j].Skips = slices.Sorted(slices.Values(entries[j].Skips))
		}
		p.Channels[i].Entries = entries
	}
	for _, b := range p.Bundles {
		slices.SortFunc(b.Properties, func(a, b catalog.Property) int {
			return strings.Compare(a.Type+string(a.Value), b.Type+string(b.Value))
		})
	}
}

// unnamed takes out the names of images, which the table does not hold.
func unnamed(p *catalog.Package) {
	for i := range p.Bundles {
		for j := range p.Bundles[i].RelatedImages {
			p.Bundles[i].RelatedImages[j].Name = ""
		}
		slices.SortFunc(p.Bundles[i].RelatedImages,
			func(a, b catalog.RelatedImage) int { return strings.Compare(a.Image, b.Image) })
	}
}

// small is a database of one package: tide.v2 replaces tide.v1.
func small(t *testing.T) *builder {
	t.Helper()
	b := newDatabase(t, last)
	for _, v := range []string{"1", "2"} {
		b.exec(`insert into operatorbundle(name, bundlepath, version) values (?, ?, ?)`, "tide.v"+v,
			"registry.sea.test/tide:"+v, v+".0.0")
	}
	b.exec(`insert into package values ('tide', 'stable')`)
	b.exec(`insert into channel values ('stable', 'tide', 'tide.v2')`)
	b.exec(
		`insert into channel_entry values (1, 'stable', 'tide', 'tide.v2', 2, 0), (2, 'stable', 'tide', 'tide.v1', null, 1)`)
	return b
}

// TestDeprecated: R-RES-14. The table counts where the property is missing.
func TestDeprecated(t *testing.T) {
	t.Parallel()
	b := small(t)
	b.exec(`insert into deprecated values ('tide.v1')`)
	b.exec(
		`insert into properties values ('olm.deprecated', '{}', 'tide.v2', '2.0.0', ''), ('olm.deprecated', '{ }', 'tide.v2', '2.0.0', '')`)
	c := read(t, b.done())
	if len(c.Packages) != 1 || len(c.Findings) > 0 {
		t.Fatalf("%v", c.Findings)
	}
	for _, bun := range c.Packages[0].Bundles {
		if !bun.Deprecated() || len(bun.Properties) != 2 {
			t.Errorf("%s has %v", bun.Name, bun.Properties)
		}
	}
}

// TestShared: one bundle in two packages is one in each, under the package's own name.
func TestShared(t *testing.T) {
	t.Parallel()
	b := small(t)
	b.exec(`insert into package values ('moon', 'stable')`)
	b.exec(`insert into channel values ('stable', 'moon', 'tide.v2')`)
	b.exec(`insert into channel_entry values (3, 'stable', 'moon', 'tide.v2', null, 0)`)
	b.exec(
		`insert into properties values ('olm.package', '{"packageName":"tide","version":"2.0.0"}', 'tide.v2', '2.0.0', ''), ('olm.package', '{"packageName":"moon","version":"2.0.0"}', 'tide.v2', '2.0.0', '')`)
	c := read(t, b.done())
	if len(c.Packages) != 2 || c.Findings.Err() != nil { // that two packages share an image is a warning
		t.Fatalf("%v", c.Findings)
	}
	for i, want := range []string{"tide.v2", "tide.v1 tide.v2"} {
		var got []string
		for _, bun := range c.Packages[i].Bundles {
			got = append(got, bun.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("package %s holds %v", c.Packages[i].Name, got)
		}
	}
}

// TestLeftOvers: rows without a name, which a migration of old made, bundles in no channel and names of
// bundles that are gone make no bundle; the names stay in the graph (R-GRA-11).
func TestLeftOvers(t *testing.T) {
	t.Parallel()
	b := small(t)
	b.exec(`insert into operatorbundle(version) values ('9.0.0')`)
	b.exec(`insert into operatorbundle(name, version) values ('stranded', '9.0.0')`)
	b.exec(
		`insert into channel_entry values (3, 'stable', 'tide', 'tide.v0', null, 2), (4, 'stable', 'tide', 'tide.v1', 3, 2)`)
	b.exec(`insert into channel_entry values (5, 'stable', 'gone', 'tide.v1', null, 0)`)
	c := read(t, b.done())
	if len(c.Packages) != 1 || len(c.Findings) > 0 {
		t.Fatalf("%v", c.Findings)
	}
	want := []catalog.Entry{{Name: "tide.v1", Skips: []string{"tide.v0"}}, {Name: "tide.v2", Replaces: "tide.v1"}}
	if d := cmp.Diff(want, c.Packages[0].Channels[0].Entries); d != "" {
		t.Error(d)
	}
}

// TestHostile: a database is a program of its author (issue: hostile and broken input).
func TestHostile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(*builder)
		kind errs.Kind
		says string
	}{
		"a view that never ends": {func(b *builder) {
			b.exec(`alter table operatorbundle rename to o`)
			b.exec(
				`create view operatorbundle as with recursive r(n) as (select 1 union all select n+1 from r) select cast(n as text) as name, '' as csv from r`)
		}, errs.Invalid, "no table operatorbundle"},
		"a virtual table": {func(b *builder) {
			b.exec(`drop table package`)
			b.exec(`create virtual table package using fts5(name, default_channel)`)
		}, errs.Invalid, "no table package"},
		"no catalog": {func(b *builder) { b.exec(`drop table channel_entry`) }, errs.Invalid, "no table channel_entry"},
		"a huge value": {func(b *builder) {
			b.exec(`update operatorbundle set bundle = zeroblob(70000000) where name = 'tide.v1'`)
		}, errs.TooLarge, "value"},
		"broken manifests": {
			func(b *builder) { b.exec(`update operatorbundle set bundle = '{"kind":'`) },
			errs.Invalid, "manifest 1 of bundle",
		},
		"many manifests": {func(b *builder) {
			b.exec(`update operatorbundle set bundle = ?`,
				strings.Repeat("{}", 1001))
		}, errs.TooLarge, "more than 1000 manifests"},
		"a broken CSV": {
			func(b *builder) { b.exec(`update operatorbundle set csv = '[]'`) }, errs.Invalid,
			"the CSV of bundle",
		},
		"a broken property": {func(b *builder) {
			b.exec(
				`insert into properties values ('olm.gvk', '{', 'tide.v1', '', '')`)
		}, errs.Invalid, "no JSON"},
		"a broken dependency": {func(b *builder) {
			b.exec(
				`insert into dependencies values ('olm.gvk', '[]', 'tide.v1', '', '')`)
		}, errs.Invalid, "dependency olm.gvk"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := small(t)
			c.do(b)
			refused(t, sqlite.Options{Path: b.done()}, c.kind, c.says)
		})
	}
}

func refused(t *testing.T, o sqlite.Options, kind errs.Kind, says string) {
	t.Helper()
	o.Dir = t.TempDir()
	_, _, _, err := sqlite.Open(t.Context(), o)
	if errs.KindOf(err) != kind || !strings.Contains(fmt.Sprint(err), says) {
		t.Errorf("got %s %v, want %s %q", errs.KindOf(err), err, kind, says)
	}
	if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// TestFiles: what is no database, or only half of one.
func TestFiles(t *testing.T) {
	t.Parallel()
	write := func(data []byte) string {
		file := filepath.Join(t.TempDir(), "index.db")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	whole, err := os.ReadFile(small(t).done())
	if err != nil {
		t.Fatal(err)
	}
	wal := write(whole)
	if err := os.WriteFile(wal+"-wal", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	garbled := slices.Clone(whole)
	for i := 4096; i < len(garbled); i++ {
		garbled[i] ^= 0x55
	}
	for name, c := range map[string]struct {
		file string
		kind errs.Kind
		says string
	}{
		"missing":     {filepath.Join(t.TempDir(), "no.db"), errs.NotFound, "not there"},
		"a directory": {t.TempDir(), errs.Invalid, "no SQLite database"},
		"short":       {write([]byte("SQLite format 3\x00")), errs.Invalid, "no SQLite database"},
		"text": {
			write([]byte(strings.Repeat("schema: olm.package\n", 99))), errs.Invalid,
			"no SQLite database",
		},
		"cut":            {write(whole[:len(whole)/2]), errs.Invalid, "broken"},
		"garbled":        {write(garbled), errs.Invalid, "broken"},
		"changes beside": {wal, errs.Invalid, "wal_checkpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, sqlite.Options{Path: c.file}, c.kind, c.says)
		})
	}
}

// TestRing: cyclic rows end, and the catalog says what is wrong with the channel (R-GRA-15).
func TestRing(t *testing.T) {
	t.Parallel()
	b := small(t)
	b.exec(`update channel_entry set replaces = 1 where entry_id = 2`)
	c := read(t, b.done())
	if err := c.Findings.Err(); err == nil || !strings.Contains(err.Error(), "R-CAT-35") {
		t.Errorf("findings %v", c.Findings)
	}
}

// TestUntouched: nothing is written to a database, nor beside it, even one that others may write.
func TestUntouched(t *testing.T) {
	t.Parallel()
	file := small(t).done()
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	read(t, file)
	after, err := os.ReadFile(file)
	if err != nil || !slices.Equal(before, after) {
		t.Errorf("the file changed, %v", err)
	}
	if beside, err := os.ReadDir(filepath.Dir(file)); err != nil || len(beside) != 1 {
		t.Errorf("beside it are %v, %v", beside, err)
	}
}

// TestFingerprint: a change is seen although size and time of the file stay.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	file := small(t).done()
	probe := func() string {
		f, err := sqlite.Probe(t.Context(), sqlite.Options{Path: file})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	st, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	before := probe()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(context.Background(),
		`update operatorbundle set version = '3.0.0' where name = 'tide.v2'`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, st.ModTime(), st.ModTime()); err != nil {
		t.Fatal(err)
	}
	if probe() == before {
		t.Error("the fingerprint stayed")
	}
}

// TestGarbled: a database with any bytes changed is read or refused, and nothing stays behind. It is no
// fuzz target, since the instrumented driver does one in three seconds.
func TestGarbled(t *testing.T) {
	t.Parallel()
	b := small(t)
	b.exec(
		`insert into properties values ('olm.gvk', '{"group":"sea.test","version":"v1","kind":"Tide"}', 'tide.v1', '1.0.0', '')`)
	whole, err := os.ReadFile(b.done())
	if err != nil {
		t.Fatal(err)
	}
	const rounds, header = 150, 100
	random := rand.New(rand.NewPCG(1, 2)) // the same bytes each time
	dir, read := t.TempDir(), 0
	file := filepath.Join(dir, "index.db")
	for range rounds {
		data := slices.Clone(whole)
		for range 1 + random.IntN(30) {
			data[header+random.IntN(len(data)-header)] = byte(random.IntN(256))
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, end, err := sqlite.Open(t.Context(), sqlite.Options{Path: file, Dir: dir}); err == nil {
			read++
			if err := end(); err != nil {
				t.Error(err)
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Fatalf("it leaves %v, %v", left, err)
		}
	}
	if read == 0 || read == rounds {
		t.Errorf("%d of %d were read: the changes prove nothing", read, rounds)
	}
}
