package source_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/source"
)

func settings(path string) []byte { return fmt.Appendf(nil, `{"path":%q}`, path) }

func open(t *testing.T, dir string) *source.Source {
	t.Helper()
	s, err := source.Opener{}.Open(source.TypeDirectory, settings(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFingerprint proves that every change of a file gives another fingerprint, and nothing else does.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "p", "catalog.yaml")
	write(t, file, "a")
	s := open(t, dir)
	last := fingerprint(t, s)
	if fingerprint(t, s) != last {
		t.Error("the same files have two fingerprints")
	}
	for name, change := range map[string]func() error{
		"content": func() error { return os.WriteFile(file, []byte("ab"), 0o600) },
		"time":    func() error { return os.Chtimes(file, time.Time{}, time.Unix(1, 0)) },
		"another": func() error { return os.WriteFile(filepath.Join(dir, "x"), nil, 0o600) },
		"rename":  func() error { return os.Rename(filepath.Join(dir, "x"), filepath.Join(dir, "y")) },
		"link":    func() error { return os.Symlink("y", filepath.Join(dir, "z")) },
	} {
		if name == "rename" { // needs "another" first, whatever the order of the map
			write(t, filepath.Join(dir, "x"), "")
			last = fingerprint(t, s)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		now := fingerprint(t, s)
		if now == last {
			t.Errorf("%s: the fingerprint did not change", name)
		}
		last = now
	}
}

func fingerprint(t *testing.T, s *source.Source) string {
	t.Helper()
	f, err := s.Fingerprint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestNoWayOut proves that neither a link nor a path leads out of the catalog's directory (DESIGN D10).
func TestNoWayOut(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	write(t, filepath.Join(outside, "secret"), "schema: olm.package\nname: secret\n")
	dir := t.TempDir()
	for name, target := range map[string]string{"absolute": filepath.Join(outside, "secret"), "up": "../" + filepath.Base(outside) + "/secret", "dir": outside} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "data"), "schema: x.example.com\n")
	if err := os.Symlink("data", filepath.Join(dir, "inside")); err != nil {
		t.Fatal(err)
	}
	fsys := open(t, dir).FS()
	for _, name := range []string{"absolute", "up", "dir/secret"} {
		if _, err := fs.ReadFile(fsys, name); err == nil {
			t.Errorf("%s can be read", name)
		}
	}
	c, err := catalog.Load(fsys, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := c.Findings.Errors(); n != 3 || len(c.Packages) != 0 || c.Stats.Files != 2 {
		t.Errorf("%d errors, %d packages, %d files read: %v", n, len(c.Packages), c.Stats.Files, c.Findings)
	}
}

// TestOpen proves which settings are taken.
func TestOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sub", "x"), "")
	for _, c := range []struct {
		name, root, typ, settings string
		want                      errs.Kind
	}{
		{"absolute", "", "directory", string(settings(dir)), ""},
		{"relative to the root", dir, "directory", `{"path":"sub"}`, ""},
		{"absolute below the root", dir, "directory", string(settings(dir + "/sub")), ""},
		{"the root", dir, "directory", string(settings(dir)), ""},
		{"relative without a root", "", "directory", `{"path":"sub"}`, errs.Invalid},
		{"outside of the root", dir + "/sub", "directory", string(settings(dir)), errs.Forbidden},
		{"up from the root", dir, "directory", `{"path":"../x"}`, errs.Forbidden},
		{"not there", "", "directory", string(settings(dir + "/none")), errs.NotFound},
		{"a file", "", "directory", string(settings(dir + "/sub/x")), errs.NotFound},
		{"no path", "", "directory", `{}`, errs.Invalid},
		{"no settings", "", "directory", `x`, errs.Invalid},
		{"another type", "", "grpc", `{}`, errs.Invalid},
	} {
		s, err := source.Opener{Root: c.root}.Open(c.typ, []byte(c.settings))
		if errs.KindOf(err) != c.want {
			t.Errorf("%s: %v, want kind %q", c.name, err, c.want)
		}
		if s != nil {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
