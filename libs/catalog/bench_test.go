package catalog_test

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
)

// BenchmarkCatalog loads the file-based catalog with all manifests inline.
func BenchmarkCatalog(b *testing.B) {
	dir := catalogtest.Unpack(b, catalogtest.CertifiedFBC414, nil)
	for b.Loop() {
		load414(b, dir, func(catalog.Content) error { return nil })
	}
}

// BenchmarkCatalogPacked does the same and packs the content, as the indexer does.
func BenchmarkCatalogPacked(b *testing.B) {
	dir := catalogtest.Unpack(b, catalogtest.CertifiedFBC414, nil)
	for b.Loop() {
		load414(b, dir, func(c catalog.Content) error { bundle.Pack(c.Canonical); return nil })
	}
}

func load414(b *testing.B, dir string, keep func(catalog.Content) error) {
	b.Helper()
	c, err := catalog.Load(os.DirFS(dir), catalog.Options{Keep: keep})
	if err != nil || len(c.Packages) != 40 {
		b.Fatalf("%v, %d packages", err, len(c.Packages))
	}
}

// BenchmarkBundleDirectories loads 1,171 real bundle directories and reports the time as a ratio to
// parsing every distinct file of them once on all processors (DESIGN §7: at most 1.0).
func BenchmarkBundleDirectories(b *testing.B) {
	dir := catalogtest.Unpack(b, catalogtest.CertifiedBundles420, nil)
	var base, own time.Duration
	for b.Loop() {
		began := time.Now()
		parseDistinct(b, dir)
		base += time.Since(began)
		began = time.Now()
		c, err := catalog.Load(os.DirFS(dir), catalog.Options{})
		if err != nil || len(c.Packages) != 59 {
			b.Fatalf("%v, %d packages", err, len(c.Packages))
		}
		own += time.Since(began)
	}
	b.ReportMetric(float64(own)/float64(base), "ratio")
	b.ReportMetric(base.Seconds()/float64(b.N), "parse-s/op")
	b.ReportMetric(own.Seconds()/float64(b.N), "load-s/op")
}

// parseDistinct is what the load is compared with.
func parseDistinct(b *testing.B, dir string) {
	b.Helper()
	files := make(chan string, 64)
	var mu sync.Mutex
	seen := map[[32]byte]bool{}
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for f := range files {
				data, err := os.ReadFile(f)
				if err != nil {
					b.Error(err)
					continue
				}
				sum := sha256.Sum256(data)
				mu.Lock()
				twice := seen[sum]
				seen[sum] = true
				mu.Unlock()
				var v any
				if !twice && yaml.Unmarshal(data, &v) != nil {
					continue // some are sick, as in life
				}
			}
		})
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(path, "/manifests/") {
			files <- path
		}
		return err
	})
	close(files)
	wg.Wait()
	if err != nil {
		b.Fatal(err)
	}
}
