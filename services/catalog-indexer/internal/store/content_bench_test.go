package store

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/digest"
)

// BenchmarkContent stores whole published catalogs and reports, in one run: what is stored as a share of
// the raw files (of manifests; for a file-based catalog all of it), in bytes of packs and recipes and as
// all tables and indexes on disk; the processor time of packing and of loading with and without storing;
// and how long it takes to read one bundle back.
func BenchmarkContent(b *testing.B) {
	for _, archive := range []string{catalogtest.CertifiedBundles420, catalogtest.CertifiedFBC414} {
		b.Run(archive, func(b *testing.B) {
			dir := catalogtest.Unpack(b, archive, nil)
			raw := rawBytes(b, dir)
			for b.Loop() {
				w := setup(b)
				forgetPeak()
				stored := processor(func() { w.loadAll(dir, w.writer()) })
				b.ReportMetric(peak(), "peak-MB")
				forgetPeak()
				plain := processor(func() { w.loadAll(dir, nil) })
				b.ReportMetric(peak(), "load-peak-MB")
				w.reportSizes(b, raw)
				b.ReportMetric(plain.Seconds(), "load-cpu-s")
				b.ReportMetric((stored - plain).Seconds(), "store-cpu-s")
				w.reportReads(b)
			}
		})
	}
}

// BenchmarkContentOneByOne stores every version of every package in a load of its own, oldest first: the
// dearest way in which they can come.
func BenchmarkContentOneByOne(b *testing.B) {
	dir := catalogtest.Unpack(b, catalogtest.CertifiedBundles420, nil)
	raw := rawBytes(b, dir)
	for b.Loop() {
		w := setup(b)
		var all []load.Content
		var mu sync.Mutex
		w.loadAllWith(dir, load.Options{Keep: func(c load.Content) error {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, c)
			return nil
		}})
		for _, c := range all {
			writer := w.writer()
			w.must(writer.Keep(c))
			w.must(writer.Flush())
		}
		w.reportSizes(b, raw)
		w.reportReads(b)
	}
}

func (w *bench) writer() *ContentWriter {
	writer, err := w.Contents.Writer(w.t.Context(), tenant)
	w.must(err)
	return writer
}

func (w *bench) loadAll(dir string, writer *ContentWriter) {
	if writer == nil {
		w.loadAllWith(dir, load.Options{})
		return
	}
	c := w.loadAllWith(dir, load.Options{Keep: writer.Keep, Memory: writer})
	w.must(writer.Flush())
	w.must(w.Documents.PutPackages(w.t.Context(), tenant, c.Packages, c.Digests()))
}

func (w *bench) loadAllWith(dir string, o load.Options) *load.Catalog {
	c, err := load.Load(os.DirFS(dir), o)
	w.must(err)
	return c
}

// rawBytes is the size of all manifests, or of all files where there are no bundle directories.
func rawBytes(b *testing.B, dir string) float64 {
	b.Helper()
	var all, manifests int64
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all += info.Size()
		if strings.Contains(path, "/manifests/") {
			manifests += info.Size()
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	if manifests == 0 {
		manifests = all
	}
	b.ReportMetric(float64(manifests)/1e6, "raw-MB")
	return float64(manifests)
}

// processor is the processor time of this process during f.
func processor(f func()) time.Duration {
	runtime.GC()
	debug.FreeOSMemory()
	before := used()
	f()
	return used() - before
}

// peak is the most memory that this process has held since forgetPeak; 0 where the system does not say.
func peak() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kb float64
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		return 0
	}
	return kb / 1000
}

// forgetPeak leaves what unpacking the archive took out of the account.
func forgetPeak() {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // where that is refused, the figure is too high
}

func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (w *bench) reportSizes(b *testing.B, raw float64) {
	b.Helper()
	share := func(sql string) float64 { return float64(w.count(sql)) / raw * 100 }
	b.ReportMetric(
		share(
			`select (select sum(length(data)) from catalog.packs where shelf not like 'documents/%') + (select sum(length(recipe)) from catalog.contents)`), "%content")
	b.ReportMetric(share(`select coalesce(sum(length(recipe)), 0) from catalog.decoded`), "%remembered")
	b.ReportMetric(
		share(
			`select coalesce((select sum(length(recipe)) from catalog.packages) + (select sum(length(data)) from catalog.packs where shelf like 'documents/%'), 0)`), "%documents")
	b.ReportMetric(
		share(
			`select sum(pg_total_relation_size(oid)) from pg_class where relnamespace = 'catalog'::regnamespace and relkind = 'r'`), "%on-disk")
	b.ReportMetric(float64(w.count(`select max(cardinality(packs)) from catalog.contents`)), "packs-max")
	for _, table := range []string{"packs", "contents", "decoded", "packages"} {
		b.Logf("%s: %d rows, %d KB on disk", table, w.count(`select count(*) from catalog.`+table),
			w.count(`select pg_total_relation_size('catalog.`+table+`')`)>>10)
	}
}

func (w *bench) reportReads(b *testing.B) {
	b.Helper()
	rows, err := w.pool.Query(b.Context(), `select digest from catalog.contents order by md5(digest)`)
	w.must(err)
	var all []digest.Digest
	for rows.Next() {
		var d digest.Digest
		w.must(rows.Scan(&d))
		all = append(all, d)
	}
	w.must(rows.Err())
	took := make([]time.Duration, 0, len(all))
	for _, d := range all {
		began := time.Now()
		_, err := w.Contents.Read(b.Context(), tenant, d)
		w.must(err)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "read-p50-ms")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "read-p99-ms")
	b.ReportMetric(took[len(took)-1].Seconds()*1000, "read-max-ms")
}
