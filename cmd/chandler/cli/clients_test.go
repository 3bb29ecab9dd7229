package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// portalClient compiles a client of clients/ and runs its tests against the gateway of the scripts: client NAME.
func portalClient(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) != 1 {
		ts.Fatalf("usage: client name")
	}
	// What CI lacks is a fault; a laptop need not have Node.
	if _, err := exec.LookPath("node"); err != nil && os.Getenv("CI") != "true" {
		ts.Logf("not tested: %s needs Node 20 or later, which is not on this machine", args[0])
		return
	}
	root, err := filepath.Abs("../../..")
	ts.Check(err)
	ts.Setenv("BUILT", builtClient(ts, root, args[0]))
	if args[0] == "backstage-card" {
		ts.Setenv("CHANDLER_TEST_BACKSTAGE", builtClient(ts, root, "backstage"))
	}
	ts.Check(ts.Exec("sh", "-c", "exec timeout 600 node --test $BUILT/dist/test/"))
	if out := ts.ReadFile("stdout"); !strings.Contains(out, "# fail 0") || strings.Contains(out, "# pass 0") {
		ts.Fatalf("node ran no test:\n%s", out)
	}
}

// builtClient is the folder in which a client lies compiled.
func builtClient(ts *testscript.TestScript, root, name string) string {
	// The cache of npm is the user's, and the home of a script is its own.
	out, err := exec.Command(filepath.Join(root, "tools", "clients.sh"), name).Output()
	if err != nil {
		exit, _ := errors.AsType[*exec.ExitError](err)
		ts.Fatalf("compile clients/%s: %v\n%s", name, err, exit.Stderr)
	}
	return strings.TrimSpace(string(out))
}
