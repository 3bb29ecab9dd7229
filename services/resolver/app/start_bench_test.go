package app_test

import (
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/events"
)

// BenchmarkStart starts a resolver where the published catalogs are indexed, and waits for its first decision, on a
// subscription to their largest package: what a person waits for after a restart (≤ 2 s).
func BenchmarkStart(b *testing.B) {
	f := newFleet(b)
	f.ctx = b.Context()
	f.tel.Log = slog.New(slog.DiscardHandler)
	f.ready()
	for _, archive := range []string{
		catalogtest.CertifiedFBC414, catalogtest.CertifiedFBC420, catalogtest.Okderators,
		catalogtest.CertifiedBundles420,
	} {
		c, err := load.Load(os.DirFS(catalogtest.Unpack(b, archive, nil)), load.Options{Lenient: true})
		f.must(err)
		f.addCatalog(archive)
		f.publish(archive, "", c.Packages...)
	}
	began := time.Now()
	stop := f.start()
	f.quiet()
	first := time.Since(began)
	stop()
	n := 0
	for b.Loop() {
		b.StopTimer()
		n++
		name := fmt.Sprintf("csm-%d", n)
		f.subscribe(name, "dell-csm-operator-certified", "",
			func(s *events.SubscriptionSpec) { s.Catalog = catalogtest.CertifiedFBC420 })
		b.StartTimer()
		stop := f.start()
		f.until("the first decision", func() bool {
			return f.scalar(`select count(*) from resolver.subscriptions where name = $1 and outcome ->> 'kind' <> ''`,
				name) == 1
		})
		b.StopTimer()
		stop()
		b.StartTimer()
	}
	b.ReportMetric(first.Seconds(), "s-first-start")
}
