package app

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/service"
)

// BenchmarkIndex indexes whole published catalogs into Postgres. It reports the first poll, which
// stores everything, and the second, after one file was touched, which reads and decodes nothing.
func BenchmarkIndex(b *testing.B) {
	for archive, packages := range map[string]int{
		catalogtest.CertifiedFBC414:     40,
		catalogtest.CertifiedBundles420: 59,
	} {
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
				x.must(x.Pool.QueryRow(b.Context(),
					`select sum(size), (select sum(length(data)) from catalog.packs) from catalog.contents`).Scan(
					&raw, &packed))
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
	b.must(b.pollOnce(stream))
	return time.Since(began)
}

// touch gives one file of a tree another time.
func touch(b *testing.B, dir string) {
	b.Helper()
	if err := os.Chtimes(find(b, dir, ".yaml"), time.Time{}, time.Now()); err != nil {
		b.Fatal(err)
	}
}

// manyPackages is how many the catalog of the benches below has, as a large published one.
const manyPackages = 300

// many writes a catalog of manyPackages, one file each, with some versions in one channel.
func many(t testing.TB, dir string) {
	t.Helper()
	for i := range manyPackages {
		write(t, dir, fmt.Sprintf("p%03d/catalog.yaml", i), manyVersions(fmt.Sprintf("p%03d", i), 10))
	}
}

func manyVersions(name string, n int) string {
	var b strings.Builder
	fmt.Fprintf(
		&b, "schema: olm.package\nname: %s\ndefaultChannel: steady\n---\nschema: olm.channel\npackage: %s\nname: "+
			"steady\nentries:\n", name, name)
	for i := range n {
		fmt.Fprintf(&b, "- {name: %s.v1.%d.0", name, i)
		if i > 0 {
			fmt.Fprintf(&b, ", replaces: %s.v1.%d.0", name, i-1)
		}
		b.WriteString("}\n")
	}
	for i := range n {
		fmt.Fprintf(
			&b,
			"---\nschema: olm.bundle\npackage: %s\nname: %s.v1.%d.0\nimage: registry.test/%s:1.%d.0\nproperties:\n- "+
				"{type: olm.package, value: {packageName: %s, version: 1.%d.0}}\n- {type: olm.gvk, value: {group: "+
				"%s.test, version: v1, kind: Thing}}\n", name, name, i, name, i, name, i, name)
	}
	return b.String()
}

// BenchmarkOneChanged takes the time from a refresh of a catalog of 300 packages, of which one has changed, until the
// new revision can be queried. What is asked of it is one second.
func BenchmarkOneChanged(b *testing.B) {
	dir := b.TempDir()
	many(b, dir)
	x := setup(b)
	stream := x.add("certified", dir)
	x.must(x.pollOnce(stream))
	versions := 10
	for b.Loop() {
		b.StopTimer()
		versions++
		write(b, dir, "p007/catalog.yaml", manyVersions("p007", versions))
		b.StartTimer()
		x.intent("certified", events.CatalogRefreshRequested{})
		x.must(x.pollOnce(stream))
		x.queried(stream, versions)
	}
}

// queried asks as the gateway does for the changed package of what is served now.
func (b *bench) queried(stream string, versions int) {
	b.t.Helper()
	var d digest.Digest
	b.must(b.gateway.QueryRow(b.t.Context(),
		`select p.digest from catalog_api.catalogs c join catalog_api.revision_packages p using (tenant, revision)
		where c.stream = $1 and p.package = 'p007'`, stream).Scan(&d))
	p, err := b.store.Documents.Package(b.t.Context(), events.DefaultTenant, d)
	b.must(err)
	if len(p.Bundles) != versions {
		b.t.Fatalf("%d versions can be queried, want %d", len(p.Bundles), versions)
	}
}

// BenchmarkRestart takes the time from the start of the service to its first answer about a catalog of 300 packages:
// what is served is in Postgres, so that nothing is loaded.
func BenchmarkRestart(b *testing.B) {
	dir := b.TempDir()
	many(b, dir)
	x := setup(b)
	stream := x.add("certified", dir)
	x.must(x.pollOnce(stream))
	nats := bustest.Start(b)
	cfg := Config{Config: service.Config{
		DatabaseURL: x.db.URL("catalog-indexer"), NATS: nats.Access("catalog-indexer"),
		OpsListen: "127.0.0.1:0", Drain: time.Second,
	}, Cache: b.TempDir(), Bodies: bodiestest.Secrets()}
	for b.Loop() {
		a, err := New(b.Context(), cfg, x.Telemetry)
		x.must(err)
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx) }()
		x.queried(stream, 10)
		b.StopTimer()
		cancel()
		x.must(<-done)
		b.StartTimer()
	}
}
