package compose_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// buildContext copies what docker would send to the builder, by the rules of .dockerignore.
func buildContext(t *testing.T) string {
	t.Helper()
	f, err := os.Open(root + "/.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	patterns, err := ignorefile.ReadAll(f)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	ignored, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil || name == "." {
			return err
		}
		if d.IsDir() && (name == ".git" || name == ".cache" || name == ".demo" || name == "bin") {
			return filepath.SkipDir // large, and left out by the first pattern
		}
		skip, err := ignored.MatchesOrParentMatches(name)
		if err != nil || skip || !d.Type().IsRegular() {
			return err
		}
		return link(path, filepath.Join(dir, name))
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// link gives a file a second name, or copies it where that cannot be.
func link(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if os.Link(from, to) == nil {
		return nil
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}

// Nothing that a program is made of is missing in the build context: every package of every program is
// found there, with all files that it embeds.
func TestContextHoldsAllThatIsCompiled(t *testing.T) {
	t.Parallel()
	dir := buildContext(t)
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/chandler", "./services/catalog-indexer",
		"./services/resolver",
		"./services/installer", "./services/gateway")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK="+filepath.Join(dir, "go.work"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("in the build context: %v\n%s", err, out)
	}
	probe := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
	probe.Dir = filepath.Join(dir, "deploy", "probe")
	probe.Env = append(os.Environ(), "GOWORK=off")
	if out, err := probe.CombinedOutput(); err != nil {
		t.Errorf("probe: %v\n%s", err, out)
	}
}

// What is no part of a program is not sent: secrets above all.
func TestContextHoldsNothingElse(t *testing.T) {
	t.Parallel()
	dir := buildContext(t)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		if strings.HasPrefix(filepath.Base(name), ".env") || strings.HasSuffix(name, "_test.go") ||
			strings.HasPrefix(name, ".") {
			t.Errorf("%s is sent to the builder", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
