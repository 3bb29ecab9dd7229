package app_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	libcatalog "github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	"github.com/chandler-fleet/chandler/libs/catalog/display"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// searchedBundles is how many bundles the goal of DESIGN §7 speaks of.
const searchedBundles = 10_000

// realPackages are those of the real catalogs, again and again under other names until there are enough bundles.
func realPackages(tb testing.TB) (packages []libcatalog.Package, bundles int) {
	tb.Helper()
	var once []libcatalog.Package
	for _, archive := range []string{catalogtest.CertifiedFBC414, catalogtest.CertifiedFBC420} {
		dir := catalogtest.Unpack(tb, archive, func(string) bool { return true })
		c, err := load.Load(os.DirFS(filepath.Clean(dir)), load.Options{})
		if err != nil {
			tb.Fatal(err)
		}
		once = append(once, c.Packages...)
	}
	for bundles < searchedBundles {
		for _, p := range once {
			p.Name = fmt.Sprintf("%s-%d", p.Name, len(packages))
			packages = append(packages, p)
			bundles += len(p.Bundles)
		}
	}
	return packages, bundles
}

// offer puts packages into service under one catalog, a row at a time as the indexer does, in one transaction.
func (b *bench) offer(name string, packages []libcatalog.Package) {
	b.t.Helper()
	c := must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs",
		model.AddCatalog{Name: name, Source: model.CatalogSource{Type: "directory", Path: "/" + name}}))
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		b.t.Fatal(err)
	}
	revision := "sha256:" + name
	var batch pgx.Batch
	bundles := 0
	for i := range packages {
		p := &packages[i]
		raw, err := digest.Canonical(p)
		if err != nil {
			b.t.Fatal(err)
		}
		d, err := p.Digest()
		if err != nil {
			b.t.Fatal(err)
		}
		card, m := display.Of(p)
		tile, err := json.Marshal(card)
		if err != nil {
			b.t.Fatal(err)
		}
		bundles += len(p.Bundles)
		batch.Queue(`insert into catalog.packages (tenant, digest, package, document) values ('default', $1, $2, $3)`,
			d, p.Name, enc.EncodeAll(raw, nil))
		batch.Queue(`insert into catalog.revision_packages (tenant, revision, package, digest)
			values ('default', $1, $2, $3)`, revision, p.Name, d)
		batch.Queue(insertSearch, d, p.Name, tile, p.Name+" "+strings.ReplaceAll(p.Name, "-", " ")+" "+card.DisplayName,
			strings.Join(append(append([]string{card.Provider}, card.Keywords...), card.Categories...), " "),
			card.Summary, m.Description[:min(len(m.Description), 4<<10)])
	}
	if err := b.pool("catalog-indexer").SendBatch(b.t.Context(), &batch).Close(); err != nil {
		b.t.Fatal(err)
	}
	b.exec("catalog-indexer", `insert into catalog.catalogs (tenant, stream, subject, source_type, spec, priority,
		revision, state)
		values ('default', $1, $2, 'directory', '', 0, $3, 'Ready')`, c.Stream, name, revision)
	b.fact(events.Indexer, events.KindCatalog, name, name,
		events.CatalogRevisionPublished{Revision: revision, Packages: len(packages), Bundles: bundles})
}

// BenchmarkBrowse measures search and package queries over 10,000 bundles of real packages in four catalogs,
// through HTTP, one request at a time: p99 is to stay within 20 ms (issue 3).
func BenchmarkBrowse(b *testing.B) {
	g := setup(b)
	packages, bundles := realPackages(b)
	quarter := len(packages)/4 + 1
	n := 0
	for part := range slices.Chunk(packages, quarter) {
		n++
		g.offer(fmt.Sprintf("shelf-%d", n), part)
	}
	g.exec("admin", "analyze")
	g.search("minPosition=" + g.position)
	largest := slices.MaxFunc(packages[:quarter], func(x, y libcatalog.Package) int {
		return len(x.Bundles) - len(
			y.Bundles)
	}).Name
	b.Logf("%d packages, %d bundles; the largest package has the name %s", len(packages), bundles, largest)
	const shelf = "/api/v1/catalogs/shelf-1"
	for _, r := range []struct{ name, path string }{
		{"Floor", "/api/v1/clusters"}, // an empty list, for comparison
		{"SearchWord", "/api/v1/packages?search=database"},
		{"SearchPrefix", "/api/v1/packages?search=post"},
		{"SearchTwoWords", "/api/v1/packages?search=" + url.QueryEscape("storage cluster")},
		{"SearchEverything", "/api/v1/packages?search=operator"},
		{"SearchLetter", "/api/v1/packages?search=a"},
		{"SearchWithFacets", "/api/v1/packages?search=storage&category=Storage&infrastructureFeature=disconnected"},
		{"AllWithFacets", "/api/v1/packages"},
		{"ListPackages", shelf + "/packages"},
		{"GetPackage", shelf + "/packages/" + packages[0].Name},
		{"GetLargestPackage", shelf + "/packages/" + largest},
		{"ListChannels", shelf + "/packages/" + packages[0].Name + "/channels"},
		{"ListBundles", shelf + "/bundles?package=" + packages[0].Name},
		{"GetIcon", shelf + "/packages/" + packages[0].Name + "/icon"},
	} {
		b.Run(r.name, func(b *testing.B) {
			took := make([]time.Duration, 0, b.N)
			size := 0
			for b.Loop() {
				begin := time.Now()
				a := g.do("GET", r.path, nil)
				if a.status != 200 {
					b.Fatalf("%d %s", a.status, a.body)
				}
				took, size = append(took, time.Since(begin)), len(a.body)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-p50")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-p99")
			b.ReportMetric(float64(size)/1000, "kB")
		})
	}
}
