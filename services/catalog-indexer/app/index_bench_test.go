package app

import (
	"os"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	"github.com/chandler-fleet/chandler/libs/events"
)

// BenchmarkIndex indexes whole published catalogs into Postgres. It reports the first look, which
// stores everything, and the second, after one file was touched, which reads and decodes nothing.
func BenchmarkIndex(b *testing.B) {
	for archive, packages := range map[string]int{catalogtest.CertifiedFBC414: 40, catalogtest.CertifiedBundles420: 59} {
		b.Run(archive, func(b *testing.B) {
			dir := catalogtest.Unpack(b, archive, nil)
			var first, second time.Duration
			for b.Loop() {
				x := setup(b)
				stream := x.add("certified", dir)
				first += x.timed(stream)
				touch(b, dir)
				second += x.timed(stream)
				if r := x.facts(stream); len(r) != 1 || r[0].(events.CatalogRevisionPublished).Packages != packages {
					b.Fatalf("%d facts: %v", len(r), r[0])
				}
				var raw, packed int64
				x.must(x.pool.QueryRow(b.Context(), `select sum(size), sum(length(pack)) from catalog.contents`).Scan(&raw, &packed))
				b.ReportMetric(float64(packed)/float64(raw)*100, "%stored")
				b.ReportMetric(float64(raw)/1e6, "MB")
			}
			b.ReportMetric(first.Seconds()/float64(b.N), "first-s/op")
			b.ReportMetric(second.Seconds()/float64(b.N), "again-s/op")
		})
	}
}

func (b *bench) timed(stream string) time.Duration {
	b.t.Helper()
	began := time.Now()
	b.must(b.lookAt(stream))
	return time.Since(began)
}

// touch gives one file of a tree another time.
func touch(b *testing.B, dir string) {
	b.Helper()
	if err := os.Chtimes(find(b, dir, ".yaml"), time.Time{}, time.Now()); err != nil {
		b.Fatal(err)
	}
}
