package load_test

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/digest"
)

// notebook is a memory in a map.
type notebook struct {
	mu         sync.Mutex
	values     map[digest.Digest][]byte
	hits, puts int
	err        error
}

func (n *notebook) Recall(key digest.Digest) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	v := n.values[key]
	if v != nil {
		n.hits++
	}
	return v, n.err
}

func (n *notebook) Remember(key, _ digest.Digest, value []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.values[key] = value
	n.puts++
	return nil
}

// TestMemory proves that a load from memory comes to what the first one came to, findings and places
// included, and decodes nothing.
func TestMemory(t *testing.T) {
	t.Parallel()
	long := "  description: " + strings.Repeat("x", 20<<10) + "\n"
	crds := "  customresourcedefinitions: {owned: [{name: buoys.sea.test, version: v1, kind: Buoy}]}\n"
	in := tree(
		directory("1.0.0", manifestCSV("other.v1.0.0", "1.0.0", crds), channels("steady"),
			files{
				"metadata/annotations.yaml": "annotations: {operators.operatorframework.io.bundle.package.v1: other, " +
					"operators.operatorframework.io.bundle.channels.v1: 'a,b', " +
					"operators.operatorframework.io.bundle.channel.default.v1: b}\n",
			}),
		directory("2.0.0", manifestCSV("x", "two", ""), channels("steady"), nil),
		directory("3.0.0", "a: [\n", channels("steady"), nil),
		files{
			"inline/catalog.yaml": pkg + channel + "\n# a comment\n" +
				another("buoy.v1.0.0", "1.0.0", object(manifestCSV("buoy.v1.0.0", "1.0.0", long+crds)),
					"{type: olm.gvk, value: {group: A_, version: v1, kind: K}}"),
			"inline/chart.yaml": "schema: sea.example.com/chart\npackage: buoy\nabout: olm.bundle " +
				strings.Repeat("x", 20<<10) + "\n",
		},
	)
	n := &notebook{values: map[digest.Digest][]byte{}}
	decode := func(workers int) (*load.Catalog, int) {
		kept := 0
		c, err := load.Load(in.fs(), load.Options{
			Workers: workers, Memory: n,
			Keep: func(load.Content) error { kept++; return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		return c, kept
	}
	first, kept := decode(1)
	if kept != 3 || n.hits != 0 || n.puts != 4 {
		t.Errorf("first load: kept %d, hits %d, puts %d", kept, n.hits, n.puts)
	}
	second, kept := decode(1)
	if kept != 0 || n.hits != 4 || n.puts != 4 {
		t.Errorf("second load: kept %d, hits %d, puts %d", kept, n.hits, n.puts)
	}
	if diff := cmp.Diff(lines(first), lines(second)); diff != "" {
		t.Errorf("findings (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(first.Findings.Strict(), second.Findings.Strict()); diff != "" {
		t.Errorf("findings for authors (-first +second):\n%s", diff)
	}
	if first.Findings.Strict().Errors() == first.Findings.Errors() {
		t.Error("no finding is an error for authors alone")
	}
	if diff := cmp.Diff(first.Digests(), second.Digests()); diff != "" || len(first.Packages) != len(second.Packages) {
		t.Errorf("packages (-first +second):\n%s", diff)
	}
	n.err = errors.New("away")
	if _, err := load.Load(in.fs(), load.Options{Memory: n}); !errors.Is(err, n.err) {
		t.Errorf("an error of the memory does not end the load: %v", err)
	}
}

// TestMemoryOfRealCatalogs proves the same on published ones.
func TestMemoryOfRealCatalogs(t *testing.T) {
	t.Parallel()
	for _, archive := range []string{catalogtest.InstallSet, catalogtest.Okderators} {
		n := &notebook{values: map[digest.Digest][]byte{}}
		dir := os.DirFS(catalogtest.Unpack(t, archive,
			func(path string) bool { return archive == catalogtest.Okderators || fewPackages(path) }))
		first, err := load.Load(dir, load.Options{Memory: n})
		if err != nil {
			t.Fatal(err)
		}
		second, err := load.Load(dir, load.Options{
			Memory: n,
			Keep:   func(load.Content) error { return errors.New("decoded again") },
		})
		if err != nil || n.hits == 0 {
			t.Fatalf("%s: %v, %d hits", archive, err, n.hits)
		}
		if diff := cmp.Diff(first.Digests(), second.Digests()); diff != "" || lines(first) != lines(second) {
			t.Errorf("%s differs (-first +second):\n%s", archive, diff)
		}
	}
}
