package load_test

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/digest"
)

// keeping collects digests, and checks every 16th content against the definition of libs/bundle.
type keeping struct {
	mu   sync.Mutex
	seen map[digest.Digest]bool
	bad  []string
	n    int
}

func (k *keeping) keep(c load.Content) error {
	k.mu.Lock()
	k.seen[c.Digest] = true
	k.n++
	check := k.n%16 == 1
	k.mu.Unlock()
	if !check {
		return nil
	}
	content, d, err := bundle.Unpack(bundle.Pack(c.Canonical))
	if err == nil {
		_, d2, cerr := content.Canonical()
		if cerr != nil || d != c.Digest || d2 != c.Digest {
			k.mu.Lock()
			k.bad = append(k.bad, c.Bundle)
			k.mu.Unlock()
		}
	}
	return err
}

// TestRealCatalogs proves that published catalogs are served whole (R-CAT-1 … R-CAT-42), with every
// manifest that they bring, and that every channel of a file-based one can be followed (R-GRA-15).
func TestRealCatalogs(t *testing.T) {
	t.Parallel()
	servedWhole(t, catalogtest.CertifiedFBC414, nil, counts{40, 369, 369, 133})
	servedWhole(t, catalogtest.CertifiedFBC420, fewPackages, counts{5, 64, 0, 18})
}

// TestOkderators proves the same of a smaller one, with the race detector (tools/test.sh).
func TestOkderators(t *testing.T) {
	t.Parallel()
	servedWhole(t, catalogtest.Okderators, nil, counts{16, 25, 11, 16})
}

func servedWhole(t *testing.T, archive string, keep func(path string) bool, want counts) {
	t.Helper()
	t.Run(archive, func(t *testing.T) {
		t.Parallel()
		k := keeping{seen: map[digest.Digest]bool{}}
		got, err := load.Load(os.DirFS(catalogtest.Unpack(t, archive, keep)), load.Options{Keep: k.keep})
		if err != nil || got.Findings.Errors() > 0 {
			t.Fatalf("%v, findings:\n%s", err, lines(got))
		}
		if n := count(t, got, k.seen); n != want {
			t.Errorf("packages, bundles, with content, channels: %v, want %v", n, want)
		}
		if len(k.bad) > 0 {
			t.Errorf("the content of %v is not what libs/bundle makes of it", k.bad)
		}
	})
}

// fewPackages chooses packages of the archives of v4.20: the rest shows nothing more. The benchmarks take all of them.
func fewPackages(path string) bool {
	for _, p := range []string{
		"anzo-operator", "open-liberty-certified", "kubecost-operator", "nutanixcsioperator",
		"stackable-hdfs-operator", "stackable-listener-operator", "k8s-triliovault",
	} {
		if strings.Contains(path, "/"+p+"/") {
			return true
		}
	}
	return false
}

type counts struct{ packages, bundles, content, channels int }

func count(t *testing.T, c *load.Catalog, kept map[digest.Digest]bool) counts {
	t.Helper()
	n := counts{packages: len(c.Packages)}
	for _, p := range c.Packages {
		n.bundles += len(p.Bundles)
		n.channels += len(p.Channels)
		for _, b := range p.Bundles {
			if b.Content != "" {
				n.content++
				if !kept[b.Content] {
					t.Errorf("content of %s was not handed out", b.Name)
				}
			}
			if b.Metadata == nil {
				t.Errorf("bundle %s has no display data (R-CAT-18)", b.Name)
			}
		}
		for _, ch := range p.Channels {
			if _, err := catalog.NewGraph(ch); err != nil {
				t.Errorf("package %s: %v", p.Name, err)
			}
		}
	}
	return n
}

// TestRealBundleDirectories proves that bundle directories as they are published, with what else lies
// beside them, make packages; and that they give content to a file-based catalog of the same packages.
func TestRealBundleDirectories(t *testing.T) {
	t.Parallel()
	k := keeping{seen: map[digest.Digest]bool{}}
	dir := catalogtest.Unpack(t, catalogtest.InstallSet, fewPackages)
	alone, err := load.Load(os.DirFS(dir), load.Options{Keep: k.keep})
	if err != nil || alone.Findings.Errors() > 0 {
		t.Fatalf("%v, findings:\n%s", err, lines(alone))
	}
	if n := bundlesOf(alone); len(alone.Packages) != 6 || n != alone.Stats.BundleDirectories {
		t.Errorf("%d packages, %d bundles of %d directories; findings:\n%s", len(alone.Packages), n,
			alone.Stats.BundleDirectories, lines(alone))
	}
	for _, p := range alone.Packages {
		// authors leave edges to templates; what is published can be followed all the same
		for _, c := range p.Channels {
			if _, err := catalog.NewGraph(c); err != nil {
				t.Errorf("package %s: %v", p.Name, err)
			}
		}
	}
	heads := map[string]bool{}
	for _, p := range alone.Packages {
		for _, b := range p.Bundles {
			heads[b.Name] = true
		}
	}
	overlay(t, catalogtest.Unpack(t, catalogtest.CertifiedFBC420, fewPackages), dir)
	joined, err := load.Load(os.DirFS(dir), load.Options{Keep: k.keep})
	if err != nil || joined.Findings.Errors() > 0 || len(joined.Packages) != 7 {
		t.Fatalf("%v, %d packages, findings:\n%s", err, len(joined.Packages), lines(joined))
	}
	given := 0
	for _, p := range joined.Packages {
		for _, b := range p.Bundles {
			if heads[b.Name] && b.Content == "" {
				t.Errorf("bundle %s has a directory, and no content", b.Name)
			}
			if b.Content != "" && b.Image != "" {
				given++
			}
		}
	}
	if given == 0 {
		t.Errorf("only %d bundles got content from their directories", given)
	}
}

func bundlesOf(c *load.Catalog) int {
	n := 0
	for _, p := range c.Packages {
		n += len(p.Bundles)
	}
	return n
}
