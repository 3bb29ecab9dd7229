package author_test

import (
	"bytes"
	"errors"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/cmd/chandler/author"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

// TestRenderReal: real catalogs, bundle directories too, written anew as documents mean the same, package
// by package, and are written the same again (R-CAT-58, R-CAT-62). A package that only bundle directories
// may have, with a channel that documents must not have, is written and told.
func TestRenderReal(t *testing.T) {
	t.Parallel()
	for archive, keep := range map[string]func(string) bool{
		catalogtest.CertifiedFBC414:     fewer(1, 2),
		catalogtest.CertifiedFBC420:     fewer(2, 2),
		catalogtest.Okderators:          nil,
		catalogtest.CertifiedBundles420: fewer(0, 12),
		catalogtest.InstallSet: func(path string) bool {
			return !strings.HasSuffix(path, "set.json") &&
				fewer(1, 8)(path)
		},
	} {
		t.Run(archive, func(t *testing.T) {
			t.Parallel()
			from := catalogtest.Unpack(t, archive, keep)
			first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
			do(t, "migrate", from, first)
			do(t, "migrate", first, second)
			same(t, first, second)
			before, after := loadCatalog(t, from), loadCatalog(t, first)
			sick := map[string]bool{}
			for _, f := range after.Findings {
				sick[f.Package] = sick[f.Package] || f.Severity == catalog.SeverityError
			}
			now, equal := after.Digests(), 0
			for name, d := range before.Digests() {
				switch {
				case sick[name]:
				case now[name] == d:
					equal++
				default:
					t.Errorf("package %s means something else", name)
				}
			}
			if equal == 0 || 2*equal < len(before.Packages) {
				t.Errorf("only %d of %d packages could be compared", equal, len(before.Packages))
			}
		})
	}
}

func loadCatalog(t *testing.T, dir string) *load.Catalog {
	t.Helper()
	c, err := load.Load(os.DirFS(dir), load.Options{Lenient: true})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fewer takes one package of so many, by the part of the path that names it: the rest shows nothing more,
// and takes minutes.
func fewer(part int, of uint32) func(path string) bool {
	return func(path string) bool {
		parts := strings.Split(path, "/")
		h := fnv.New32a()
		_, _ = h.Write([]byte(parts[min(part, len(parts)-1)])) // never fails
		return h.Sum32()%of == 0
	}
}

// do runs a command that must do its work; what it then says of the catalog is no matter here.
func do(t *testing.T, args ...string) {
	t.Helper()
	var output strings.Builder
	c := command(t, author.Env{Out: io.Discard, Err: &output, Lookup: noEnv}, args[0])
	c.SetArgs(args[1:])
	err := c.ExecuteContext(t.Context())
	if status, ok := errors.AsType[*author.ExitError](err); err != nil && (!ok || status.Code != 1) {
		t.Fatalf("%s: %v\n%s", args[0], err, output.String())
	}
}

// same compares two directories, byte by byte.
func same(t *testing.T, a, b string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(a, "*", "catalog.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", a, err)
	}
	for _, file := range files {
		rel, err := filepath.Rel(a, file)
		if err != nil {
			t.Fatal(err)
		}
		one, err1 := os.ReadFile(file)
		two, err2 := os.ReadFile(filepath.Join(b, rel))
		if err1 != nil || err2 != nil || !bytes.Equal(one, two) {
			t.Errorf("%s is another one the second time (%v, %v)", rel, err1, err2)
		}
	}
}
