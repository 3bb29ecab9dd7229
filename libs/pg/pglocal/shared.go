package pglocal

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// keeper starts PostgreSQL and ends it when nobody uses it any more.
//
//go:embed keeper.sh
var keeper string

// Shared returns the instance that all tests of this machine and user share, and starts it if none
// runs. It stays until some seconds after the last process that called Shared has ended, however it
// ended. Commits are not durable. Stop does nothing: others may use it.
func Shared(ctx context.Context) (*Server, error) {
	acc, err := findAccount()
	if err != nil {
		return nil, err
	}
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	if err := acc.claimBase(); err != nil {
		return nil, fmt.Errorf("shared PostgreSQL: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(base(), "shared.lock"))
	if err != nil {
		return nil, fmt.Errorf("shared PostgreSQL: %w", err)
	}
	defer unlock()
	if s, ok := join(ctx); ok {
		return s, nil
	}
	return startShared(ctx, acc, bin)
}

// current names the instance that newcomers join.
func current() string { return filepath.Join(base(), "shared") }

// join signs in to the running instance. The keeper shuts the door (removes "open") before it looks at
// the users for the last time, and we sign in before we look at the door: one of us sees the other.
func join(ctx context.Context) (*Server, bool) {
	dir, err := os.ReadFile(current())
	if err != nil {
		return nil, false
	}
	s := &Server{dir: filepath.Join(string(dir), "data"), socket: string(dir)}
	me := filepath.Join(s.socket, "users", strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(me, nil, 0o644); err != nil {
		return nil, false
	}
	if _, err := os.Stat(filepath.Join(s.socket, "open")); err != nil {
		_ = os.Remove(me) // the keeper removes it otherwise
		return nil, false
	}
	if err := ping(ctx, s.AdminURL()); err != nil {
		_ = os.Remove(me)
		return nil, false
	}
	return s, true
}

func startShared(ctx context.Context, acc account, bin string) (*Server, error) {
	removeFormer()
	dir, err := os.MkdirTemp(cmp.Or(memory(), base()), "chandler-postgres-shared-")
	if err != nil {
		return nil, fmt.Errorf("shared PostgreSQL: %w", err)
	}
	s := &Server{dir: filepath.Join(dir, "data"), socket: dir}
	users := filepath.Join(dir, "users")
	if err := errors.Join(acc.own(dir, 0o700), acc.own(s.dir, 0o700), acc.own(users, 0o700)); err != nil {
		return nil, fmt.Errorf("shared PostgreSQL: %w", err)
	}
	script := filepath.Join(dir, "keeper.sh")
	for file, text := range map[string]string{
		filepath.Join(dir, "open"):                      "",
		filepath.Join(users, strconv.Itoa(os.Getpid())): "", script: keeper,
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return nil, fmt.Errorf("shared PostgreSQL: %w", err)
		}
	}
	if err := initdb(ctx, acc, bin, s.dir); err != nil {
		return nil, fmt.Errorf("shared PostgreSQL: %w", err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "/bin/sh",
		append([]string{script, dir, filepath.Join(bin, "postgres")}, arguments(s.dir, dir, Options{})...)...)
	cmd.SysProcAttr, cmd.Dir = acc.attributes(), "/"
	if err := cmd.Start(); err != nil { // without our output: "go test" would wait for it to close
		return nil, fmt.Errorf("shared PostgreSQL: %w", err)
	}
	if err := cmd.Process.Release(); err != nil {
		return nil, fmt.Errorf("shared PostgreSQL: %w", err)
	}
	if err := s.await(ctx); err != nil {
		return nil, err
	}
	if err := os.WriteFile(current(), []byte(dir), 0o644); err != nil {
		return nil, fmt.Errorf("shared PostgreSQL: %w", err)
	}
	return s, nil
}

// removeFormer removes what an instance has left whose keeper was killed: it may take up memory.
func removeFormer() {
	dir, err := os.ReadFile(current())
	if err != nil || len(dir) == 0 {
		return
	}
	if _, runs := (&Server{dir: filepath.Join(string(dir), "data")}).running(); !runs {
		_ = os.RemoveAll(string(dir)) // a leftover that cannot be removed disturbs nobody
	}
}

// lock holds a file lock, which the kernel gives back when its holder dies.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return nil, err
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// String names the instance for logs.
func (s *Server) String() string { return "PostgreSQL in " + strings.TrimSuffix(s.dir, "/data") }
