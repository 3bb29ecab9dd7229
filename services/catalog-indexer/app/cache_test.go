package app

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/service/platform"
	"github.com/chandler-fleet/chandler/libs/telemetry"
)

// TestCacheIsSwept proves that a start removes what a killed process has left unpacked, also where no
// directory is set, and never what a living one has.
func TestCacheIsSwept(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	tel, err := telemetry.Start(t.Context(), telemetry.Options{Service: "catalog-indexer"})
	if err != nil {
		t.Fatal(err)
	}
	begin := func() *App {
		a, err := assemble(Config{Bodies: bodiestest.Secrets()},
			&platform.Platform{Telemetry: tel, Log: eventlog.New(nil)})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first := begin()
	left := filepath.Join(first.cache.dir, "work", "layer")
	write(t, first.cache.dir, "work/layer", "gigabytes")
	there := func() bool {
		_, err := os.Stat(left)
		return err == nil
	}
	second := begin()
	if second.cache.dir != first.cache.dir || !there() {
		t.Fatalf("the second process swept what the first one unpacked (%s, %s)", first.cache.dir, second.cache.dir)
	}
	first.cache.close() // as the end of a process does
	third := begin()
	if !there() {
		t.Fatal("the third process swept though the second one lives")
	}
	second.cache.close()
	third.cache.close()
	last := begin()
	defer last.cache.close()
	if there() {
		t.Error("what was left is still there")
	}
}

// TestForeignCache proves that a directory which somebody else has put in the place of the default is not used.
func TestForeignCache(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	if err := os.Symlink(t.TempDir(), defaultCache()); err != nil {
		t.Fatal(err)
	}
	if c, err := openCache(defaultCache()); err == nil {
		c.close()
		t.Error("a link was followed")
	}
}
