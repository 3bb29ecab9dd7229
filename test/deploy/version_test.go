package deploy_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/test/stack"
)

// TestOldBinaryRefusesANewerSchema: a program is stamped with its version, and one that the schema has left behind does
// not start. All services start as this one does (libs/service/platform).
func TestOldBinaryRefusesANewerSchema(t *testing.T) {
	t.Parallel()
	root, err := stack.Root()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "catalog-indexer")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program,
		"-ldflags", "-X github.com/chandler-fleet/chandler/libs/service.version=0.0.9", "./services/catalog-indexer")
	build.Dir, build.Env = root, append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), program, "--version").Output(); err != nil ||
		string(out) != "catalog-indexer 0.0.9\n" {
		t.Errorf("--version says %q, %v", out, err)
	}
	start := exec.CommandContext(t.Context(), program)
	start.Env = []string{"CHANDLER_DATABASE_URL=" + pgtest.DB(t).URL("catalog-indexer")}
	out, err := start.CombinedOutput()
	const want = "serves release 0.1.0 and newer, this program is release 0.0.9: upgrade it"
	if err == nil || !strings.Contains(string(out), want) {
		t.Errorf("the old program ended with %v and said %q, want %q", err, out, want)
	}
}
