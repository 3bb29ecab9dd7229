package store

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/content"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
)

const tenant = events.DefaultTenant

// bench is a store over a database of its own.
type bench struct {
	*Store
	t    testing.TB
	db   *pgtest.Database
	pool *pg.Pool
}

func setup(t testing.TB) *bench {
	t.Helper()
	db := pgtest.DB(t)
	pool := db.Pool(t, "catalog-indexer")
	b := &bench{New(pool, eventlog.New(pool), bodies.Keys{}), t, db, pool}
	// No consumer runs here: its tables are what the tests put there.
	b.exec(`select eventlog.take_checkpoint($1)`, IntentsConsumer)
	return b
}

func (w *bench) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *bench) exec(sql string, args ...any) int64 {
	w.t.Helper()
	tag, err := w.pool.Exec(w.t.Context(), sql, args...)
	w.must(err)
	return tag.RowsAffected()
}

func (w *bench) count(sql string, args ...any) (n int) {
	w.t.Helper()
	w.must(w.pool.QueryRow(w.t.Context(), sql, args...).Scan(&n))
	return n
}

// versions makes near-identical bundles of a package, as life does: text with a few changes from one to
// the next.
func versions(pkg string, n, size int) []load.Content {
	seed := uint64(len(pkg))
	for _, b := range []byte(pkg) {
		seed = seed*31 + uint64(b)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	text := make([]byte, 0, size)
	for len(text) < size {
		text = fmt.Appendf(text, `{"name":"%s-%d","value":%d},`, pkg, r.IntN(1000), r.IntN(1_000_000))
	}
	var out []load.Content
	for v := range n {
		for range 5 {
			text[r.IntN(len(text))] = byte('a' + r.IntN(26))
		}
		raw := slices.Clone(text)
		out = append(out, load.Content{
			Digest:    digest.Bytes(append([]byte(bundle.Type+"\n"), raw...)),
			Canonical: raw, Package: pkg, Bundle: fmt.Sprintf("%s.v1.0.%d", pkg, v),
		})
	}
	return out
}

// load stores contents as a load does, from two goroutines.
func (w *bench) load(ctx context.Context, list []load.Content) (*ContentWriter, error) {
	w.t.Helper()
	writer, err := w.Contents.Writer(ctx, tenant)
	w.must(err)
	var wg sync.WaitGroup
	fails := make([]error, 2)
	for half := range fails {
		wg.Go(func() {
			for i := half; i < len(list); i += len(fails) {
				if fails[half] = writer.Keep(list[i]); fails[half] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	err = writer.Flush()
	for _, f := range fails {
		if err == nil {
			err = f
		}
	}
	return writer, err
}

// readable checks that each bundle comes back byte for byte, to the indexer and to those who read the views.
func (w *bench) readable(list []load.Content) {
	w.t.Helper()
	reader := content.NewReader()
	defer reader.Close()
	resolver := w.db.Pool(w.t, "resolver")
	for _, c := range list {
		if got, err := w.Contents.Read(w.t.Context(), tenant, c.Digest); err != nil || !bytes.Equal(got, c.Canonical) {
			w.t.Fatalf("%s: %d bytes, want %d: %v", c.Bundle, len(got), len(c.Canonical), err)
		}
		if err := viewed(w.t, resolver, reader, c); err != nil {
			w.t.Fatalf("%s through the view: %v", c.Bundle, err)
		}
	}
}

func viewed(t testing.TB, pool *pg.Pool, reader *content.Reader, c load.Content) error {
	t.Helper()
	var s content.Stored
	err := pool.QueryRow(t.Context(), `select pack, recipe, packs from catalog_api.contents
		where tenant = $1 and digest = $2`, tenant, c.Digest).
		Scan(&s.Whole, &s.Recipe, &s.Packs)
	if err != nil {
		return err
	}
	_, err = reader.Bundle(c.Digest, s)
	return err
}

// TestContentsAreStoredOnce proves that content is stored once, shared between versions and found again
// (DESIGN D3; content packs).
func TestContentsAreStoredOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	list := slices.Concat(versions("buoy", 30, 60_000), versions("lighthouse", 10, 200_000), versions("anchor", 1, 300))
	first, err := w.load(t.Context(), append(slices.Clone(list), list[:7]...))
	w.must(err)
	if first.Stored != len(list) || first.Known != 0 {
		t.Errorf("stored %d, known %d of %d", first.Stored, first.Known, len(list))
	}
	w.readable(list)
	if packs := w.count(`select count(*) from catalog.packs`); packs != 3 {
		t.Errorf("%d packs of 3 packages", packs)
	}
	raw, packed := w.count(`select sum(size) from catalog.contents`),
		w.count(`select sum(length(data)) from catalog.packs`)
	if packed*15 > raw {
		t.Errorf("%d bytes are stored in %d", raw, packed)
	}
	second, err := w.load(t.Context(), list)
	w.must(err)
	if second.Stored != 0 || second.Known != len(list) || w.count(`select count(*) from catalog.packs`) != 3 {
		t.Errorf("the second load stored %d and knew %d; %d packs", second.Stored, second.Known,
			w.count(`select count(*) from catalog.packs`))
	}
	next := versions("buoy", 31, 60_000)[30:]
	_, err = w.load(t.Context(), next)
	w.must(err)
	w.readable(append(list, next...))
	if n := w.count(`select size from catalog.packs order by id desc limit 1`); n > 5*content.MaxChunk {
		t.Errorf("one more version costs %d bytes of chunks", n)
	}
}

// TestConcurrentWriters proves that loads of the same content do each other no harm: all is readable
// while it is written, and what came second is garbage that the collector finds.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	w := setup(t)
	list := slices.Concat(versions("buoy", 20, 80_000), versions("lighthouse", 20, 80_000))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			mine := slices.Clone(list)
			rand.New(rand.NewPCG(uint64(i), 0)).Shuffle(len(mine),
				func(a, b int) { mine[a], mine[b] = mine[b], mine[a] })
			if _, err := w.load(t.Context(), mine); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	w.readable(list)
	w.exec(`update catalog.contents set touched = '-infinity'`)
	w.exec(`insert into catalog.packages (tenant, digest, package, document, contents)
		select $1, 'd', 'p', '', array_agg(`+refOfContent+`) from catalog.contents c`, tenant)
	_, err := w.Collector.Collect(t.Context(), MinRetention)
	w.must(err)
	w.readable(list)
	unused := w.count(`select count(*) from catalog.packs p where not exists (select from catalog.contents c
		where p.id = any (c.packs))`)
	if unused != 0 {
		t.Errorf("%d packs are used by nobody", unused)
	}
}

// TestInterruptedLoad proves that a load that ends anywhere leaves nothing that a later one stumbles over.
func TestInterruptedLoad(t *testing.T) {
	t.Parallel()
	w := setup(t)
	list := slices.Concat(versions("buoy", 10, 3_000_000), versions("lighthouse", 10, 50_000))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	writer, err := w.Contents.Writer(ctx, tenant)
	w.must(err)
	for i, c := range list {
		if i == 7 {
			cancel()
		}
		if err := writer.Keep(c); err != nil {
			break
		}
	}
	if err := writer.Flush(); err == nil {
		t.Error("a load whose context ended says that all is stored")
	}
	_, err = w.load(t.Context(), list)
	w.must(err)
	w.readable(list)
}

// TestLearnedPackCollected proves that a new bundle never draws on a pack that was collected after the
// load had learned it.
func TestLearnedPackCollected(t *testing.T) {
	t.Parallel()
	w := setup(t)
	list := versions("buoy", 3, 100_000)
	_, err := w.load(t.Context(), list[:1])
	w.must(err)
	writer, err := w.Contents.Writer(t.Context(), tenant)
	w.must(err)
	w.must(writer.Keep(list[1])) // learns the chunk index
	w.exec(`delete from catalog.contents`)
	w.exec(`delete from catalog.packs`)
	w.must(writer.Keep(list[2]))
	if err := writer.Flush(); !errs.Is(err, errs.Conflict) {
		t.Fatalf("flush says %v", err)
	}
	_, err = w.load(t.Context(), list)
	w.must(err)
	w.readable(list)
}

// TestRemembered proves that remembered values come back, from packs that they share with their bundles,
// and are as if forgotten without their content.
func TestRemembered(t *testing.T) {
	t.Parallel()
	w := setup(t)
	list := versions("buoy", 5, 50_000)
	writer, err := w.Contents.Writer(t.Context(), tenant)
	w.must(err)
	key := func(i int) digest.Digest { return digest.Bytes([]byte{byte(i)}) }
	for i, c := range list {
		w.must(writer.Keep(c))
		w.must(writer.Remember(key(i), c.Digest, append([]byte("value "), c.Canonical...)))
	}
	// twice in the catalog
	w.must(writer.Remember(key(1), list[1].Digest, append([]byte("value "), list[1].Canonical...)))
	w.must(writer.Remember(key(99), "", []byte(`{"bundle":{},"package":"buoy","note":"without content"}`)))
	w.must(writer.Flush())
	if n := w.count(`select count(*) from catalog.packs`); n != 1 {
		t.Errorf("%d packs", n)
	}
	w.exec(`delete from catalog.contents where digest = $1`, list[0].Digest)
	w.exec(`insert into catalog.decoded (tenant, key, content, value) values ($1, $2, '', $3)`, tenant, key(100),
		bundle.Pack([]byte("old form")))
	again, err := w.Contents.Writer(t.Context(), tenant)
	w.must(err)
	want := map[int]string{
		0: "", 99: `{"bundle":{},"package":"buoy","note":"without content"}`, 100: "old form",
		101: "",
	}
	for i, c := range list[1:] {
		want[i+1] = "value " + string(c.Canonical)
	}
	for i, value := range want {
		if got, err := again.Recall(key(i)); err != nil || string(got) != value {
			t.Errorf("key %d: %d bytes, want %d: %v", i, len(got), len(value), err)
		}
	}
	w.must(again.Flush())
}

// TestOldForm proves that rows of the release before are read, and count as stored.
func TestOldForm(t *testing.T) {
	t.Parallel()
	w := setup(t)
	list := versions("buoy", 2, 50_000)
	w.exec(`insert into catalog.contents (tenant, digest, size, pack) values ($1, $2, $3, $4)`, tenant, list[0].Digest,
		len(list[0].Canonical), bundle.Pack(list[0].Canonical))
	writer, err := w.load(t.Context(), list)
	w.must(err)
	if writer.Stored != 1 || writer.Known != 1 {
		t.Errorf("stored %d, known %d", writer.Stored, writer.Known)
	}
	w.readable(list)
	if _, err := w.Contents.Read(t.Context(), tenant, "sha256:00"); !errs.Is(err, errs.NotFound) {
		t.Errorf("content that is not there: %v", err)
	}
}

// TestDocumentsAreStoredOnce proves that the document of a package that changed a little costs a little,
// and that it comes back (DESIGN D3).
func TestDocumentsAreStoredOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := catalog.Package{Name: "buoy", Icon: &catalog.Icon{
		Data:      versions("icon", 1, 50_000)[0].Canonical,
		MediaType: "image/png",
	}}
	for i, c := range versions("buoy", 20, 100) {
		p.Bundles = append(p.Bundles, catalog.Bundle{
			Name: c.Bundle, Version: fmt.Sprintf("1.0.%d", i),
			Content: c.Digest,
		})
	}
	for n := range 5 {
		p.Bundles = append(p.Bundles, catalog.Bundle{
			Name:    fmt.Sprintf("buoy.v2.0.%d", n),
			Version: fmt.Sprintf("2.0.%d", n),
		})
		d, err := p.Digest()
		w.must(err)
		for range 2 { // the second time it is there
			w.must(w.Documents.PutPackages(t.Context(), tenant, []catalog.Package{p},
				map[string]digest.Digest{p.Name: d}))
		}
		got, err := w.Documents.Package(t.Context(), tenant, d)
		w.must(err)
		if back, err := got.Digest(); err != nil || back != d {
			t.Errorf("document %d comes back as %s, want %s (%v)", n, back, d, err)
		}
	}
	if packs, refs := w.count(`select count(*) from catalog.packs`), w.count(
		`select max(cardinality(contents)) from catalog.packages`); packs != 5 || refs != 20 {
		t.Errorf("%d packs, %d references to contents", packs, refs)
	}
	if first, rest := w.count(`select size from catalog.packs order by id limit 1`), w.count(`select max(size)
		from (select size from catalog.packs order by id offset 1) as p`); rest*10 > first {
		t.Errorf("the first document has %d bytes of chunks, a later one brings %d", first, rest)
	}
}
