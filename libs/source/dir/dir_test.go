package dir_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/dir"
)

func open(t *testing.T, path string) *dir.Dir {
	t.Helper()
	d, err := dir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
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

func fingerprint(t *testing.T, d *dir.Dir) string {
	t.Helper()
	f, err := d.Fingerprint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFingerprint proves that every change of a file gives another fingerprint, and nothing else does.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	file := filepath.Join(path, "p", "catalog.yaml")
	write(t, file, "a")
	d := open(t, path)
	last := fingerprint(t, d)
	if fingerprint(t, d) != last {
		t.Error("the same files have two fingerprints")
	}
	if err := d.Settled(t.Context(), last); err != nil {
		t.Errorf("nothing changed, and yet: %v", err)
	}
	for _, change := range []struct {
		name string
		do   func() error
	}{
		{"content", func() error { return os.WriteFile(file, []byte("ab"), 0o600) }},
		{"time", func() error { return os.Chtimes(file, time.Time{}, time.Unix(1, 0)) }},
		{"another", func() error { return os.WriteFile(filepath.Join(path, "x"), nil, 0o600) }},
		{"rename", func() error { return os.Rename(filepath.Join(path, "x"), filepath.Join(path, "y")) }},
		{"link", func() error { return os.Symlink("y", filepath.Join(path, "z")) }},
		{"removal", func() error { return os.Remove(filepath.Join(path, "z")) }},
	} {
		if err := change.do(); err != nil {
			t.Fatal(err)
		}
		if err := d.Settled(t.Context(), last); !errs.Is(err, errs.Unavailable) {
			t.Errorf("%s: Settled = %v, want a change", change.name, err)
		}
		now := fingerprint(t, d)
		if now == last {
			t.Errorf("%s: the fingerprint did not change", change.name)
		}
		last = now
	}
}

// TestFingerprintEnds proves that a look ends with its context, and says why.
func TestFingerprintEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	want := errs.New(errs.Unavailable, "enough")
	cancel(want)
	if _, err := open(t, t.TempDir()).Fingerprint(ctx); !errs.Is(err, errs.Unavailable) {
		t.Errorf("Fingerprint = %v, want the cause", err)
	}
}

// TestNoWayOut proves that neither a link nor a path leads out of the catalog's directory (DESIGN D10).
func TestNoWayOut(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	write(t, filepath.Join(outside, "secret"), "schema: olm.package\nname: secret\n")
	path := t.TempDir()
	for name, target := range map[string]string{
		"absolute": filepath.Join(outside, "secret"),
		"up":       "../" + filepath.Base(outside) + "/secret", "dir": outside,
	} {
		if err := os.Symlink(target, filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(path, "data"), "schema: x.example.com\n")
	if err := os.Symlink("data", filepath.Join(path, "inside")); err != nil {
		t.Fatal(err)
	}
	fsys := open(t, path).FS()
	for _, name := range []string{"absolute", "up", "dir/secret"} {
		if _, err := fs.ReadFile(fsys, name); err == nil {
			t.Errorf("%s can be read", name)
		}
	}
	c, err := load.Load(fsys, load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := c.Findings.Errors(); n != 3 || len(c.Packages) != 0 || c.Stats.Files != 2 {
		t.Errorf("%d errors, %d packages, %d files read: %v", n, len(c.Packages), c.Stats.Files, c.Findings)
	}
}

// TestResolve proves which paths are taken (DESIGN D10).
func TestResolve(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "sub", "x"), "")
	if err := os.Symlink("/", filepath.Join(root, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("sub", filepath.Join(root, "in")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, root, path, want string
		kind                   errs.Kind
	}{
		{"absolute", "", root, root, ""},
		{"relative to the root", root, "sub", root + "/sub", ""},
		{"absolute below the root", root, root + "/sub/", root + "/sub", ""},
		{"the root", root, root, root, ""},
		{"a link inside", root, "in", root + "/sub", ""},
		{"a link that leaves", root, "out/etc", "", errs.Forbidden},
		{"relative without a root", "", "sub", "", errs.Invalid},
		{"outside of the root", root + "/sub", root, "", errs.Forbidden},
		{"up from the root", root, "../x", "", errs.Forbidden},
		{"not there", root, "none", "", errs.NotFound},
		{"a root that is not there", root + "/none", "x", "", errs.NotFound},
		{"no path", "", "", "", errs.Invalid},
	} {
		got, err := dir.Resolve(c.root, c.path)
		if got != c.want || errs.KindOf(err) != c.kind {
			t.Errorf("%s: %q, %v; want %q, kind %q", c.name, got, err, c.want, c.kind)
		}
	}
	for _, path := range []string{root + "/none", root + "/sub/x"} {
		if _, err := dir.Open(path); !errs.Is(err, errs.NotFound) {
			t.Errorf("Open(%s) = %v, want NotFound", path, err)
		}
	}
}
