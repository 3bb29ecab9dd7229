package deploy_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/chandler-fleet/chandler/test/stack"
)

// chandler runs the CLI of this tree with these variables and no other settings of its own.
func chandler(ctx context.Context, env map[string]string, args ...string) (string, error) {
	dir, err := stack.Root()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"run", "./cmd/chandler"}, args...)...)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "CHANDLER_") && !strings.HasPrefix(v, "PG") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("chandler %s: %w\n%s", strings.Join(args, " "), err, errOut.Bytes())
	}
	return out.String(), nil
}

var keysOutput = sync.OnceValues(func() (string, error) { return chandler(context.Background(), nil, "keys") })

// madeKeys are the secrets that `chandler keys` makes, by name: one installation's for all tests.
func madeKeys(t testing.TB) map[string]string {
	t.Helper()
	out, err := keysOutput()
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]string{}
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		name, value, ok := strings.Cut(line, "=")
		if !ok && line != "" && !strings.HasPrefix(line, "#") {
			t.Fatalf("chandler keys writes %q", line)
		}
		if ok {
			made[name] = value
		}
	}
	return made
}
