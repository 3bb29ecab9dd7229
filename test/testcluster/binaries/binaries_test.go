package binaries

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/test/internal/filelock"
)

// fakeRepository has pin files of no consequence and is the working directory.
func fakeRepository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range pinFiles {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("require (\n\tk8s.io/kubernetes v1.2.3\n)\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	inside := filepath.Join(root, "test", "deep")
	if err := os.MkdirAll(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(inside)
	t.Setenv("CHANDLER_CACHE", filepath.Join(root, "cache"))
	return root
}

func TestKeyNamesEverything(t *testing.T) {
	root := fakeRepository(t)
	before, err := findSource()
	if err != nil {
		t.Fatal(err)
	}
	if before.version != "v1.2.3" || !strings.HasPrefix(before.key, "v1.2.3-go") {
		t.Errorf("source is %+v", before)
	}
	for _, name := range pinFiles {
		path := filepath.Join(root, name)
		if err := os.WriteFile(path, []byte(
			"require k8s.io/kubernetes v1.2.3 // changed\n\tk8s.io/kubernetes v1.2.3\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		after, err := findSource()
		if err != nil {
			t.Fatal(err)
		}
		if after.key == before.key {
			t.Errorf("a change of %s does not change the key", name)
		}
		before = after
	}
}

// What one checkout has built, the next one takes; a folder of its own is only for who has none.
func TestCheckoutsShareSets(t *testing.T) {
	user := t.TempDir()
	set := func(home string) {
		t.Setenv("CHANDLER_CACHE", "")
		t.Setenv("XDG_CACHE_HOME", home)
		t.Setenv("HOME", home) // it decides on some systems
	}
	fakeRepository(t)
	set(user)
	first, err := findSource()
	if err != nil {
		t.Fatal(err)
	}
	second := fakeRepository(t)
	set(user)
	src, err := findSource()
	if err != nil || src.set() != first.set() {
		t.Errorf("sets are in %s and %s, %v", first.set().Dir(), src.set().Dir(), err)
	}
	set("")
	src, err = findSource()
	if err != nil || !strings.HasPrefix(src.set().Dir(), filepath.Join(second, ".cache")+"/") {
		t.Errorf("without a folder for caches the set is in %s, %v", src.set().Dir(), err)
	}
}

func TestEnsureTakesWhatIsThere(t *testing.T) {
	fakeRepository(t)
	cache := t.TempDir()
	t.Setenv("CHANDLER_CACHE", cache)
	src, err := findSource()
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(cache, "k8s", src.key, "bin")
	if err := os.MkdirAll(want, 0o755); err != nil {
		t.Fatal(err)
	}
	set, err := Ensure(t.Context(), io.Discard)
	if err != nil || set.Dir() != want {
		t.Errorf("set is in %s, %v; want %s", set.Dir(), err, want)
	}
}

func TestFailedBuildLeavesNoSet(t *testing.T) {
	fakeRepository(t)
	_, err := Ensure(t.Context(), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "build Kubernetes v1.2.3") {
		t.Errorf("ensure says %v", err)
	}
	src, err := findSource()
	if err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(src.set().dir + "*")
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestWaitForOtherBuildEndsWithContext(t *testing.T) {
	fakeRepository(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Ensure(ctx, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("ensure says %v", err)
	}
}

// However many clusters of a process start while somebody else builds: one line tells so.
func TestOneTellsOfTheWait(t *testing.T) {
	fakeRepository(t)
	src, err := findSource()
	if err != nil {
		t.Fatal(err)
	}
	dir := src.set().dir
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	unlock, err := filelock.Lock(t.Context(), filepath.Join(filepath.Dir(dir), "lock")) // as another process would
	if err != nil {
		t.Fatal(err)
	}
	const clusters = 3
	told, ended := make(chan string, 100), make(chan error, clusters)
	for range clusters {
		go func() {
			_, err := ensure(t.Context(), func(line string) { told <- line }, false)
			ended <- err
		}()
	}
	if line := <-told; !strings.Contains(line, "waiting for another process") {
		t.Errorf("said %q", line)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { // the other one is done
		t.Fatal(err)
	}
	unlock()
	for range clusters {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if len(told) > 0 {
		t.Errorf("said as well: %q", <-told)
	}
}

func TestOutsideOfRepository(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := Ensure(t.Context(), io.Discard); err == nil ||
		!strings.Contains(err.Error(), "inside the repository") {
		t.Errorf("ensure says %v", err)
	}
}

func TestPackageCounter(t *testing.T) {
	p := &progress{what: "building x"}
	c := &packageCounter{progress: p}
	for _, part := range []string{"k8s.io/api/co", "re/v1\nruntime\n# k8s.io/api\nfile.go:1:2: und", "efined\n"} {
		if _, err := c.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.done.Load(); got != 2 {
		t.Errorf("counted %d packages", got)
	}
	if got := c.rest.String(); got != "# k8s.io/api\nfile.go:1:2: undefined\n" {
		t.Errorf("kept %q", got)
	}
	p.expect(10)
	if got := p.line(); got[:len("building x, 2 of 10 packages")] != "building x, 2 of 10 packages" {
		t.Errorf("line is %q", got)
	}
}
