package pglocal_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg/pglocal"
)

// ownerEnv makes the test binary a process that starts an instance, prints its process id and waits.
const ownerEnv = "CHANDLER_TEST_OWNS_POSTGRES"

// patience bounds every wait.
const patience = time.Minute

var quiet = slog.New(slog.DiscardHandler)

func TestMain(m *testing.M) {
	if dir := os.Getenv(ownerEnv); dir != "" {
		os.Exit(own(dir))
	}
	os.Exit(m.Run())
}

func own(dir string) int {
	s, err := pglocal.Start(context.Background(), pglocal.Options{
		Dir: strings.TrimPrefix(dir, "temporary"),
		Log: quiet,
	})
	if err != nil {
		panic(err)
	}
	if _, err := fmt.Fprintln(os.Stdout, s.PID(), s.DataDir()); err != nil {
		panic(err)
	}
	select {}
}

// owner runs such a process until it is killed.
func owner(t *testing.T, dir string) (kill func(), pid int, data string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), ownerEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill() // it may be dead already
		_ = cmd.Wait()         // by that signal
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the owner said %q: %v", line, err)
	}
	first, data, _ := strings.Cut(strings.TrimSpace(line), " ")
	pid, err = strconv.Atoi(first)
	if err != nil {
		t.Fatalf("the owner said %q", line)
	}
	return kill, pid, data
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("waited in vain for: %s", what)
		}
	}
}

// gone reports whether a process has ended, waited for or not.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return errors.Is(err, fs.ErrNotExist) || strings.Contains(string(stat), ") Z ")
}

func exec1(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }() // the statement is done
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// The data of a directory survives a stop; a temporary instance leaves nothing behind.
func TestStartAndStop(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]pglocal.Options{
		"temporary": {Log: quiet},
		"kept":      {Dir: filepath.Join(t.TempDir(), "data"), Durable: true, Log: quiet},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := pglocal.Start(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			exec1(t, s.AdminURL(), "create table t (n int)")
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the end of the process", func() bool { return gone(s.PID()) })
			if err := s.Stop(); err != nil {
				t.Errorf("stop again: %v", err)
			}
			_, err = os.Stat(s.DataDir())
			if o.Dir == "" {
				if !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("its data is left: %v", err)
				}
				return
			}
			again, err := pglocal.Start(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			exec1(t, again.AdminURL(), "select * from t")
			if err := pglocal.Remove(o.Dir); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(s.DataDir()); !errors.Is(err, fs.ErrNotExist) || !gone(again.PID()) {
				t.Errorf("after Remove: %v, process gone: %v", err, gone(again.PID()))
			}
		})
	}
}

// An instance begins as a copy of another one: with its tables, and apart from it. What a copy that was cut short has
// left is no database.
func TestLike(t *testing.T) {
	t.Parallel()
	start := func(o pglocal.Options) *pglocal.Server {
		s, err := pglocal.Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Remove(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
	first := start(pglocal.Options{Dir: filepath.Join(t.TempDir(), "data"), Log: quiet})
	exec1(t, first.AdminURL(), "create table kept (n int)")
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	o := pglocal.Options{Dir: filepath.Join(t.TempDir(), "data"), Like: first.DataDir(), Log: quiet}
	half := filepath.Join(o.Dir+".unfinished", "PG_VERSION")
	if err := errors.Join(os.Mkdir(filepath.Dir(half), 0o700), os.WriteFile(half, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	copied := start(o)
	exec1(t, copied.AdminURL(), "alter table kept rename to copied")
	if err := copied.Stop(); err != nil {
		t.Fatal(err)
	}
	again := start(o) // with its old data
	exec1(t, again.AdminURL(), "select from copied")
	o.Dir = filepath.Join(t.TempDir(), "data")
	exec1(t, start(o).AdminURL(), "select from kept")
}

// The instance ends with its owner, even if the owner is killed, and its leavings are cleared away.
func TestInstanceEndsWithItsOwner(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	t.Cleanup(func() {
		if err := pglocal.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	killKept, kept, _ := owner(t, dir)
	if _, err := pglocal.Start(t.Context(), pglocal.Options{Dir: dir, Log: quiet}); !errs.Is(err, errs.Unavailable) {
		t.Errorf("a second owner: %v", err)
	}
	killTemp, temp, tempData := owner(t, "temporary")
	killKept()
	killTemp()
	eventually(t, "the end of both instances", func() bool { return gone(kept) && gone(temp) })
	s, err := pglocal.Start(t.Context(), pglocal.Options{Dir: dir, Log: quiet})
	if err != nil {
		t.Fatalf("after the owner was killed: %v", err)
	}
	exec1(t, s.AdminURL(), "select 1")
	made := filepath.Join(filepath.Dir(filepath.Dir(tempData)), fmt.Sprintf("kept-being-made-%d", os.Getpid()))
	if err := os.MkdirAll(made, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(made) })
	if err := os.WriteFile(filepath.Join(made, "origin"), nil, 0o600); err != nil { // its content comes next
		t.Fatal(err)
	}
	other, err := pglocal.Start(t.Context(), pglocal.Options{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(tempData); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what the killed owner's temporary instance left is still there: %v", err)
	}
	if _, err := os.Stat(made); err != nil {
		t.Errorf("what another process is making was taken away: %v", err)
	}
}

// The demo leaves its database running; whoever comes later finds it by its directory.
func TestOutliveAndAttach(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := pglocal.Attach(t.Context(), dir); !errs.Is(err, errs.NotFound) {
		t.Errorf("attach to nothing: %v", err)
	}
	s, err := pglocal.Start(t.Context(), pglocal.Options{Dir: dir, Outlive: true, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	found, err := pglocal.Attach(t.Context(), dir)
	if err != nil || found.PID() != s.PID() || found.AdminURL() != s.AdminURL() {
		t.Fatalf("attached to %v, %v", found, err)
	}
	if err := found.Stop(); err != nil {
		t.Error(err)
	}
	eventually(t, "the end of the process", func() bool { return gone(s.PID()) })
	if err := errors.Join(pglocal.Remove(dir), pglocal.Remove(dir)); err != nil {
		t.Errorf("remove, and again: %v", err)
	}
}

// As root the instance runs as another account, which may not be able to enter the directory.
func TestDirectoryOfRoot(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root has directories that its PostgreSQL cannot enter")
	}
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(closed, "data")
	s, err := pglocal.Start(t.Context(), pglocal.Options{Dir: dir, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(s.DataDir(), closed) {
		t.Errorf("its data is in %s", s.DataDir())
	}
	if note, err := os.ReadFile(filepath.Join(dir, "LOCATION")); err != nil ||
		!strings.Contains(string(note), s.DataDir()) {
		t.Errorf("where it is: %q %v", note, err)
	}
	if err := pglocal.Remove(dir); err != nil || !gone(s.PID()) {
		t.Errorf("remove: %v", err)
	}
	for _, left := range []string{s.DataDir(), dir} {
		if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after Remove %s: %v", left, err)
		}
	}

	// Who removes the directory alone has its data cleared away by the next one who starts an instance.
	s, err = pglocal.Start(t.Context(), pglocal.Options{Dir: dir, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	startAndStop := func() {
		other, err := pglocal.Start(t.Context(), pglocal.Options{Log: quiet})
		if err == nil {
			err = other.Stop()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	startAndStop()
	exec1(t, s.AdminURL(), "select 1") // not while it runs
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	startAndStop()
	if _, err := os.Stat(s.DataDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data of a removed directory: %v", err)
	}
}

// All processes of the machine find the same shared instance.
func TestShared(t *testing.T) {
	t.Parallel()
	a, err := pglocal.Shared(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := pglocal.Shared(t.Context())
	if err != nil || a.AdminURL() != b.AdminURL() {
		t.Errorf("%s and %s: %v", a.AdminURL(), b.AdminURL(), err)
	}
	if err := a.Stop(); err != nil {
		t.Error(err)
	}
	exec1(t, b.AdminURL(), "select 1") // Stop has no power over it
}
