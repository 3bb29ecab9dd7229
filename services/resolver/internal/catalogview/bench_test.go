package catalogview_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/services/resolver/internal/catalogview"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// published are the real catalogs, each a revision of its own name.
func published(b *testing.B, s *database) (catalogs []catalogview.Catalog, names map[resolution.CatalogKey][]string) {
	b.Helper()
	names = map[resolution.CatalogKey][]string{}
	for _, archive := range []string{
		catalogtest.CertifiedFBC414, catalogtest.CertifiedFBC420, catalogtest.Okderators,
		catalogtest.CertifiedBundles420,
	} {
		c, err := load.Load(os.DirFS(catalogtest.Unpack(b, archive, nil)), load.Options{Lenient: true})
		s.must(err)
		s.revision(archive, c.Packages...)
		key := resolution.CatalogKey{Name: archive}
		catalogs = append(catalogs, catalogview.Catalog{Key: key, Subject: archive, Revision: archive})
		for _, p := range c.Packages {
			names[key] = append(names[key], p.Name)
		}
	}
	return catalogs, names
}

// everything asks for every package of every catalog, and for who provides each API that one requires.
func everything(b *testing.B, v *catalogview.View, names map[resolution.CatalogKey][]string) (
	packages []*offer.Package,
) {
	b.Helper()
	for key, list := range names {
		for _, name := range list {
			p := v.Package(key, name)
			if p == nil {
				b.Fatalf("no package %s in %s: %v", name, key, v.Err())
			}
			packages = append(packages, p)
			required(p, func(api catalog.GVK) { v.Providers(key, api) })
		}
	}
	if v.Err() != nil {
		b.Fatal(v.Err())
	}
	return packages
}

func required(p *offer.Package, ask func(catalog.GVK)) {
	for _, c := range p.Channels {
		for _, e := range c.Entries {
			for _, r := range e.Bundle.Requires {
				apis, _, _ := r.Anchors()
				for _, api := range apis {
					ask(api)
				}
			}
		}
	}
}

// BenchmarkReadAll reads four published catalogs whole, 174 packages: by a process that met none of them, where
// what they offer is known, and where the process has read them before. The last figure is what stays in memory.
func BenchmarkReadAll(b *testing.B) {
	s := newDatabase(b)
	catalogs, names := published(b, s)
	view := func(v *catalogview.Views) *catalogview.View { return v.View(b.Context(), tenant, catalogs) }
	b.Run("never met", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			_, err := s.reader.Exec(b.Context(), `delete from resolver.package_apis`)
			s.must(err)
			b.StartTimer()
			everything(b, view(catalogview.New(s.reader)), names)
		}
	})
	b.Run("new process", func(b *testing.B) {
		for b.Loop() {
			everything(b, view(catalogview.New(s.reader)), names)
		}
	})
	b.Run("read before", func(b *testing.B) {
		before := heap()
		views := catalogview.New(s.reader)
		packages := everything(b, view(views), names)
		held := heap() - before
		for b.Loop() {
			everything(b, view(views), names)
		}
		weight := 0
		for _, p := range packages {
			weight += p.Weight()
		}
		b.ReportMetric(float64(held)/(1<<20), "MB-held")
		b.ReportMetric(float64(weight)/(1<<20), "MB-weight")
	})
}

// BenchmarkReadOne is what a process reads for its first resolution: one package, the largest, and the providers of an
// API, in each catalog that the namespace sees.
func BenchmarkReadOne(b *testing.B) {
	s := newDatabase(b)
	catalogs, names := published(b, s)
	everything(b, catalogview.New(s.reader).View(b.Context(), tenant, catalogs), names)
	b.ResetTimer()
	b.ReportAllocs()
	for b.Loop() {
		v := catalogview.New(s.reader).View(b.Context(), tenant, catalogs)
		for _, c := range catalogs {
			v.Package(c.Key, "dell-csm-operator-certified")
			v.Providers(c.Key, catalog.GVK{Group: "storage.dell.com", Version: "v1", Kind: "ContainerStorageModule"})
		}
		if v.Err() != nil {
			b.Fatal(v.Err())
		}
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
