package load_test

import (
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

// The golden files are written by: go test ./libs/catalog -run TestExamples -update
var update = flag.Bool("update", false, "write the golden files")

// example copies the example catalog, and a later revision over it where next is set.
func example(t *testing.T, next bool) string {
	t.Helper()
	dir := t.TempDir()
	overlay(t, "../../../examples/catalog", dir)
	if next {
		overlay(t, "../../../examples/catalog-next", dir)
	}
	return dir
}

func overlay(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o750)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// summary is what the golden files hold of a package: its document without display data.
type summary struct {
	Digest   string
	Package  catalog.Package
	Heads    map[string]string
	Provides map[string][]string
}

// TestExamples proves that both revisions of the example catalog are valid without a warning, and
// guards their package documents.
func TestExamples(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]bool{"catalog": false, "catalog-next": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := load.Load(os.DirFS(example(t, next)), load.Options{})
			if err != nil || len(c.Findings) > 0 {
				t.Fatalf("%v, findings:\n%s", err, lines(c))
			}
			got := make([]summary, 0, len(c.Packages))
			for _, p := range c.Packages {
				got = append(got, summarise(t, p))
			}
			golden(t, filepath.Join("testdata", name+".golden.json"), got)
		})
	}
}

func summarise(t *testing.T, p catalog.Package) summary {
	t.Helper()
	d, err := p.Digest()
	if err != nil {
		t.Fatal(err)
	}
	s := summary{Digest: string(d), Package: p, Heads: map[string]string{}, Provides: map[string][]string{}}
	for _, c := range p.Channels {
		g, err := catalog.NewGraph(c)
		if err != nil {
			t.Fatal(err)
		}
		s.Heads[c.Name] = g.Head().Name
	}
	for i := range s.Package.Bundles {
		b := &s.Package.Bundles[i]
		if b.Content == "" || b.Metadata == nil {
			t.Errorf("bundle %s has no content", b.Name)
		}
		b.Metadata = nil
		apis, err := b.Provides()
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range apis {
			s.Provides[b.Name] = append(s.Provides[b.Name], g.String())
		}
	}
	return s
}

func golden(t *testing.T, file string, got any) {
	t.Helper()
	raw, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	raw = append(raw, '\n')
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(raw)); diff != "" {
		t.Errorf("%s differs; run with -update if that is meant (-want +got):\n%s", file, diff)
	}
}
