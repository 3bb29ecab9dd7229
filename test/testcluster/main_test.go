package testcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/chandler-fleet/chandler/test/internal/proc"
)

// childVariable makes this test program an owner of a cluster that waits for its violent end.
const childVariable = "TESTCLUSTER_TEST_CHILD"

// Ways in which the child starts its processes.
const (
	childBound   = "bound"   // they have a death signal
	childOutlive = "outlive" // they have none, so that the reaper has something to do
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(childVariable); mode != "" {
		if err := ownCluster(mode); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	Main(m)
}

// child is what the owner tells about itself.
type child struct {
	Dir       string
	Processes []proc.ID
}

func ownCluster(mode string) error {
	c, err := Start(context.Background(), Options{Name: "child", Log: os.Stderr, outlive: mode == childOutlive})
	if err != nil {
		return err
	}
	told := child{Dir: c.Dir(), Processes: processesOf(c)}
	if err := json.NewEncoder(os.Stdout).Encode(told); err != nil {
		return err
	}
	select {}
}

// startChild starts another owner in the same pool and returns when its cluster works.
func startChild(t *testing.T, mode string) (told child, kill func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+mode)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(out).Decode(&told); err != nil {
		t.Fatalf("the child has not started its cluster: %v", err)
	}
	return told, func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// processesOf returns all processes that a cluster needs.
func processesOf(c *Cluster) []proc.ID {
	ids := []proc.ID{c.plane.store.process.ID()}
	for _, process := range c.plane.processes {
		ids = append(ids, process.ID())
	}
	return ids
}

// ownPool keeps a test apart from all others on the machine.
func ownPool(t *testing.T) {
	t.Helper()
	t.Setenv("CHANDLER_TESTCLUSTER_POOL", filepath.Join(t.TempDir(), "pool"))
}

// eventually waits until a condition holds, and fails with its last error.
func eventually(t *testing.T, condition func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			last = condition(ctx)
			return last == nil, nil
		})
	if err != nil {
		t.Fatalf("%v; last: %v", err, last)
	}
}
