package pool_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/test/testcluster/internal/pool"
)

func open(t *testing.T) pool.Pool {
	t.Helper()
	t.Setenv("CHANDLER_TESTCLUSTER_POOL", filepath.Join(t.TempDir(), "pool"))
	p, err := pool.Open()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func take(ctx context.Context, t *testing.T, p pool.Pool, holder string) *pool.Member {
	t.Helper()
	m, err := p.Take(ctx, pool.Turn{Name: "c", Holder: holder, Limit: 1, Log: io.Discard})
	if err != nil {
		t.Fatalf("%s: %v", holder, err)
	}
	return m
}

func TestMembersComeAndGo(t *testing.T) {
	p := open(t)
	m, err := p.Add(t.Context(), pool.Cluster, "a", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(m.Dir); err != nil {
		t.Error(err)
	}
	if members, err := p.Members(t.Context()); err != nil || len(members) != 1 || members[0].ID != m.ID {
		t.Errorf("members: %v, %v", members, err)
	}
	if err := m.Remove(false); err != nil {
		t.Fatal(err)
	}
	if members, err := p.Members(t.Context()); err != nil || len(members) != 0 {
		t.Errorf("members: %v, %v", members, err)
	}
	if _, err := os.Stat(m.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there (%v)", m.Dir, err)
	}
}

func TestRemoveKeepsFilesOnRequest(t *testing.T) {
	m, err := open(t).Add(t.Context(), pool.Cluster, "a", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Remove(true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(m.Dir); err != nil {
		t.Error(err)
	}
}

func TestTurnWaitsForOtherHolders(t *testing.T) {
	p := open(t)
	first := take(t.Context(), t, p, "p/TestA")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.Take(cancelled, pool.Turn{Name: "c", Holder: "p/TestB", Limit: 1, Log: io.Discard})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("second holder: %v", err)
	}

	taken := make(chan *pool.Member)
	go func() {
		m, err := p.Take(t.Context(), pool.Turn{Name: "c", Holder: "p/TestB", Limit: 1, Log: io.Discard})
		if err != nil {
			t.Error(err)
		}
		taken <- m
	}()
	if err := first.Remove(false); err != nil {
		t.Fatal(err)
	}
	<-taken
}

func TestHoldersDoNotWaitForThemselves(t *testing.T) {
	p := open(t)
	for _, holder := range []string{"p/TestA", "p/TestA", "p/TestA/sub"} {
		take(t.Context(), t, p, holder)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Take(cancelled, pool.Turn{Name: "c", Holder: "p/TestAB", Limit: 1, Log: io.Discard}); err == nil {
		t.Error("a name that only begins alike has got a turn")
	}
}

func TestOpenRefusesPublicDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CHANDLER_TESTCLUSTER_POOL", dir)
	if _, err := pool.Open(); err == nil || !strings.Contains(err.Error(), "only user") {
		t.Errorf("open says %v", err)
	}
}
