package spool_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/internal/spool"
)

func make1(t *testing.T, limit int64) (*spool.Spool, string) {
	t.Helper()
	dir := t.TempDir()
	s, err := spool.New(dir, limit)
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

// TestNames: what a hostile catalog calls its packages reaches no other place, and documents of one
// package that come one by one stand in one file.
func TestNames(t *testing.T) {
	t.Parallel()
	s, dir := make1(t, 0)
	names := []string{
		"tide", "../../tide", "/etc/passwd", ".", "..", "", "Tide", "a\x00b", strings.Repeat("x", 300),
		"package_1", "tide",
	}
	for _, n := range names {
		if err := s.Write(n, spool.Package{Schema: catalog.SchemaPackage, Name: n}); err != nil {
			t.Errorf("%q: %v", n, err)
		}
	}
	files, err := fs.Glob(s.FS(), "*/catalog.json")
	if want := len(names) - 1; err != nil || len(files) != want {
		t.Errorf("files %v, %v; want %d", files, err, want)
	}
	tide, err := fs.ReadFile(s.FS(), "tide/catalog.json")
	if err != nil || strings.Count(string(tide), "\n") != 2 {
		t.Errorf("%s, %v", tide, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("closing leaves %v, %v", left, err)
	}
}

// TestBounds: bytes and packages are counted.
func TestBounds(t *testing.T) {
	t.Parallel()
	s, _ := make1(t, 100)
	if err := s.Write("tide", spool.Package{Name: strings.Repeat("x", 200)}); !errs.Is(err, errs.TooLarge) {
		t.Errorf("200 of 100 bytes: %v", err)
	}
	if _, err := spool.New("/nowhere/at/all", 0); !errs.Is(err, errs.Unavailable) {
		t.Errorf("no directory: %v", err)
	}
}
