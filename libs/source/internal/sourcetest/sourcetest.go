// Package sourcetest compares catalogs that came in different ways.
package sourcetest

import (
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// Store keeps contents by their digest.
type Store struct {
	mu    sync.Mutex
	bytes map[digest.Digest][]byte
}

// Content returns the canonical bytes of a digest.
func (s *Store) Content(d digest.Digest) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, ok := s.bytes[d]
	if !ok {
		return nil, errs.New(errs.NotFound, "no content %s", d)
	}
	return raw, nil
}

// Load loads a catalog that must be valid, with its contents.
func Load(t testing.TB, fsys fs.FS) (*load.Catalog, *Store) {
	t.Helper()
	c, s := LoadAny(t, fsys)
	if err := c.Findings.Err(); err != nil {
		t.Fatalf("%d findings, first: %v", len(c.Findings), err)
	}
	return c, s
}

// LoadAny loads what is valid of a catalog.
func LoadAny(t testing.TB, fsys fs.FS) (*load.Catalog, *Store) {
	t.Helper()
	s := &Store{bytes: map[digest.Digest][]byte{}}
	c, err := load.Load(fsys, load.Options{Keep: func(c load.Content) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.bytes[c.Digest] = slices.Clone(c.Canonical)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

// Same fails the test where two catalogs hold different packages. Each of change is done to every
// package of both before: it takes out what a form of catalog does not carry.
func Same(t testing.TB, got, want *load.Catalog, change ...func(*catalog.Package)) {
	t.Helper()
	if g, w := names(got), names(want); !slices.Equal(g, w) {
		t.Fatalf("packages are %s, want %s", strings.Join(g, ", "), strings.Join(w, ", "))
	}
	bad := 0
	for i := range want.Packages {
		g, w := clone(got.Packages[i]), clone(want.Packages[i])
		for _, c := range change {
			c(&g)
			c(&w)
		}
		if equal(t, w, g) {
			continue
		}
		if d := cmp.Diff(w, g); d != "" {
			const enough = 3
			bad++
			if bad <= enough {
				t.Errorf("package %s differs (-want +got):\n%.4000s", w.Name, d)
			}
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d packages differ", bad, len(want.Packages))
	}
}

// equal compares by digest: JSON may be written in different ways.
func equal(t testing.TB, a, b catalog.Package) bool {
	t.Helper()
	da, err := a.Digest()
	if err != nil {
		t.Fatal(err)
	}
	db, err := b.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return da == db
}

// clone copies as deep as changes go.
func clone(p catalog.Package) catalog.Package {
	p.Channels, p.Bundles = slices.Clone(p.Channels), slices.Clone(p.Bundles)
	for i := range p.Bundles {
		p.Bundles[i].Properties = slices.Clone(p.Bundles[i].Properties)
		p.Bundles[i].RelatedImages = slices.Clone(p.Bundles[i].RelatedImages)
	}
	return p
}

func names(c *load.Catalog) []string {
	out := make([]string, 0, len(c.Packages))
	for _, p := range c.Packages {
		out = append(out, p.Name)
	}
	return out
}
