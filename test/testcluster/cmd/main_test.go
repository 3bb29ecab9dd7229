package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chandler-fleet/chandler/test/internal/proc"
)

// commandVariable makes this test program the command itself; the daemon inherits it.
const commandVariable = "TESTCLUSTER_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandVariable) != "" {
		main()
		return
	}
	m.Run()
}

// sandbox is a pool and a directory of clusters of a test's own.
func sandbox(t *testing.T) (dir string) {
	t.Helper()
	root := t.TempDir()
	t.Setenv("CHANDLER_TESTCLUSTER_POOL", filepath.Join(root, "pool"))
	t.Setenv(commandVariable, "1")
	dir = filepath.Join(root, "clusters")
	t.Cleanup(func() {
		_ = exec.Command(os.Args[0], "down", "--dir", dir).Run() // after a failure
	})
	return dir
}

func command(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Stderr = t.Output()
	return cmd
}

func runJSON(t *testing.T, args ...string) []cluster {
	t.Helper()
	out, err := command(t, args...).Output()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	var answer struct{ Clusters []cluster }
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return answer.Clusters
}

func owner(t *testing.T, dir string) proc.ID {
	t.Helper()
	s, err := read(dir)
	if err != nil || s == nil {
		t.Fatalf("state: %v, %v", s, err)
	}
	return s.Owner
}

func wantNothing(t *testing.T, dir string, daemon proc.ID) {
	t.Helper()
	if daemon.Alive() {
		t.Error("the daemon is alive")
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there (%v)", dir, err)
	}
	left, err := filepath.Glob(filepath.Join(os.Getenv("CHANDLER_TESTCLUSTER_POOL"), "*.json"))
	if err != nil || len(left) > 0 {
		t.Errorf("in the pool: %v, %v", left, err)
	}
}

func TestUpStatusDown(t *testing.T) {
	dir := sandbox(t)
	clusters := runJSON(t, "up", "2", "--json", "--dir", dir)
	if len(clusters) != 2 || clusters[0].Name != "cluster-1" || clusters[1].Name != "cluster-2" {
		t.Fatalf("up: %+v", clusters)
	}
	for _, c := range clusters {
		data, err := os.ReadFile(c.Kubeconfig)
		if err != nil || !bytes.Contains(data, []byte(c.Server)) {
			t.Errorf("kubeconfig of %s: %v", c.Name, err)
		}
	}
	for _, c := range runJSON(t, "status", "--json", "--dir", dir) {
		if c.State != "ready" {
			t.Errorf("%s is %s", c.Name, c.State)
		}
	}
	if again := runJSON(t, "up", "2", "--json", "--dir", dir); len(again) != 2 || again[0] != clusters[0] {
		t.Errorf("second up: %+v", again)
	}
	if err := command(t, "up", "3", "--dir", dir).Run(); err == nil {
		t.Error("up with another number succeeds")
	}

	daemon := owner(t, dir)
	if err := command(t, "down", "--dir", dir).Run(); err != nil {
		t.Error(err)
	}
	wantNothing(t, dir, daemon)
	if left := runJSON(t, "status", "--json", "--dir", dir); len(left) != 0 {
		t.Errorf("status after down: %+v", left)
	}
	if err := command(t, "down", "--dir", dir).Run(); err != nil {
		t.Errorf("second down: %v", err)
	}
}

func TestDownAfterDaemonWasKilled(t *testing.T) {
	dir := sandbox(t)
	runJSON(t, "up", "--json", "--dir", dir)
	daemon := owner(t, dir)
	if err := daemon.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := runJSON(t, "status", "--json", "--dir", dir); left[0].State == "ready" {
		t.Errorf("status: %+v", left)
	}
	if err := command(t, "down", "--dir", dir).Run(); err != nil {
		t.Error(err)
	}
	wantNothing(t, dir, daemon)
}

func TestInterruptDuringUp(t *testing.T) {
	dir := sandbox(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "up", "--dir", dir)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 256)
	if _, err := stderr.Read(first); err != nil || !strings.Contains(string(first), "0 of 1 ready") {
		t.Fatalf("up says %q, %v", first, err)
	}
	daemon := owner(t, dir)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("an interrupted up succeeds")
	}
	wantNothing(t, dir, daemon)
}

func TestParse(t *testing.T) {
	s, err := parse([]string{"up", "--json", "3", "--dir", "/d", "--nodes=2"})
	if want := (settings{command: "up", count: 3, nodes: 2, dir: "/d", json: true}); err != nil || s != want {
		t.Errorf("got %+v, %v", s, err)
	}
	for _, args := range [][]string{nil, {"up", "x"}, {"up", "0"}, {"up", "1", "2"}, {"up", "--what"}} {
		if _, err := parse(args); err == nil || !strings.Contains(err.Error(), "usage") {
			t.Errorf("%v: %v", args, err)
		}
	}
}
