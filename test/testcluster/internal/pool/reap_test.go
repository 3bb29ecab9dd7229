package pool

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chandler-fleet/chandler/test/internal/proc"
)

// TestReapEndsOnlyTheDead covers what a start in another process meets: a dead owner, whose pid may be in use again.
func TestReapEndsOnlyTheDead(t *testing.T) {
	t.Setenv("CHANDLER_TESTCLUSTER_POOL", filepath.Join(t.TempDir(), "pool"))
	p, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	orphan, bystander := sleeper(t), sleeper(t)
	reused := bystander
	reused.Start-- // the same pid, another process

	m, err := p.Add(t.Context(), Cluster, "orphaned", "")
	if err != nil {
		t.Fatal(err)
	}
	m.Owner = reused
	if err := errors.Join(m.Record("orphan", orphan), m.Record("long gone", reused)); err != nil {
		t.Fatal(err)
	}

	members, err := p.Members(t.Context())
	if err != nil || len(members) != 0 {
		t.Errorf("members: %v, %v", members, err)
	}
	if orphan.Alive() {
		t.Error("the orphan is alive")
	}
	if !bystander.Alive() {
		t.Error("the bystander with the same pid has been killed")
	}
	if _, err := os.Stat(m.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there (%v)", m.Dir, err)
	}
}

func sleeper(t *testing.T) proc.ID {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	id, err := proc.Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
