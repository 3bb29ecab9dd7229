package gotool

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakeGo is a go command that says what a test wants.
func fakeGo(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

func TestDownloadTellsEveryModule(t *testing.T) {
	fakeGo(
		t, `echo "go: downloading k8s.io/api v0.37.0" >&2; echo a; echo b; echo "go: downloading example.com/x v1.0.0" >&2`)
	var fetched []string
	packages, err := Download(t.Context(), "", []string{"./..."}, func(m string) { fetched = append(fetched, m) })
	if err != nil || packages != 2 || !slices.Equal(fetched, []string{"k8s.io/api v0.37.0", "example.com/x v1.0.0"}) {
		t.Errorf("%d packages, fetched %q, %v", packages, fetched, err)
	}
}

func TestBuildTellsPackagesAndErrors(t *testing.T) {
	fakeGo(t, `printf 'runtime\nexample.com/a\n# example.com/b\nb.go:1:2: undefined: x\n' >&2; exit 1`)
	var compiled []string
	err := Build(t.Context(), t.TempDir(), []string{"example.com/b"}, func(p string) { compiled = append(compiled, p) })
	if !slices.Equal(compiled, []string{"runtime", "example.com/a"}) {
		t.Errorf("compiled %q", compiled)
	}
	if err == nil || !strings.Contains(err.Error(), "b.go:1:2: undefined: x") ||
		strings.Contains(err.Error(), "runtime") {
		t.Errorf("build says %v", err)
	}
}

// Programs are compiled as they are released, so that no C compiler is needed.
func TestBuildWithoutC(t *testing.T) {
	fakeGo(t, `[ "$CGO_ENABLED" = 0 ]`)
	t.Setenv("CGO_ENABLED", "1")
	if err := Build(t.Context(), t.TempDir(), nil, func(string) {}); err != nil {
		t.Error(err)
	}
}

func TestInterruptedBuildSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	fakeGo(t, `exit 0`)
	if err := Build(ctx, t.TempDir(), nil, func(string) {}); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("build says %v", err)
	}
}
