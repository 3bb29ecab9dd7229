package pglocal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// ownerFile says which process has started the instance.
func (s *Server) ownerFile() string { return filepath.Join(s.socket, "owner") }

func (s *Server) owner() (pid int, living bool) {
	data, err := os.ReadFile(s.ownerFile())
	if err != nil {
		return 0, false
	}
	pid, err = strconv.Atoi(strings.TrimSpace(string(data)))
	return pid, err == nil && alive(pid)
}

// running reads the process id out of the file that PostgreSQL keeps in its data directory.
func (s *Server) running() (pid int, living bool) {
	data, err := os.ReadFile(filepath.Join(s.dir, "postmaster.pid"))
	if err != nil {
		return 0, false
	}
	first, _, _ := strings.Cut(string(data), "\n")
	pid, err = strconv.Atoi(strings.TrimSpace(first))
	return pid, err == nil && alive(pid) && isPostgres(pid)
}

// alive reports whether a process runs. One that has ended and waits for its parent does not.
func alive(pid int) bool {
	if pid <= 0 {
		return false
	}
	if err := syscall.Kill(pid, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) || !linux
	}
	state := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(state) > 0 && state[0][0] != 'Z'
}

// isPostgres guards against a process id that has been given to another program since.
func isPostgres(pid int) bool {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return !linux
	}
	return strings.HasPrefix(string(name), "postgres")
}

// Attach finds the running instance of a directory, one that was started with Outlive for instance.
func Attach(ctx context.Context, dir string) (*Server, error) {
	acc, err := findAccount()
	if err != nil {
		return nil, err
	}
	s, err := located(acc, dir)
	if err != nil {
		return nil, err
	}
	pid, ok := s.running()
	if !ok {
		return nil, errs.New(errs.NotFound, "no PostgreSQL runs in %s", dir)
	}
	s.pid = pid
	if err := ping(ctx, s.AdminURL()); err != nil {
		return nil, errs.Wrap(errs.Unavailable, err, "the PostgreSQL in %s", dir)
	}
	return s, nil
}

// Remove stops the instance of a directory if it runs, and removes its data and its socket.
func Remove(dir string) error {
	acc, err := findAccount()
	if err != nil {
		return err
	}
	s, err := located(acc, dir)
	if err != nil {
		return err
	}
	if pid, ok := s.running(); ok {
		s.pid = pid
		if err := s.Stop(); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(s.dir), os.RemoveAll(s.socket), os.RemoveAll(s.origin))
}

// markOrigin notes for which directory the instance is. The directory is made even if the data cannot
// lie in it: once it is gone, nobody wants the data any more.
func (s *Server) markOrigin() error {
	if s.temp {
		return nil
	}
	if err := os.MkdirAll(s.origin, 0o755); err != nil {
		return err
	}
	if s.origin != s.dir {
		note := "The database lies in " + s.dir +
			", since the account that runs PostgreSQL cannot enter this directory.\n"
		if err := os.WriteFile(filepath.Join(s.origin, "LOCATION"), []byte(note), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(s.socket, "origin"), []byte(s.origin), 0o644)
}

// reap clears away what killed processes have left: temporary instances whose owner is dead, and
// sockets (with the data, where it lies there) of directories that have been removed. A PostgreSQL has
// ended with its owner where the kernel sees to that, and is stopped here where it does not.
func reap() {
	for _, dir := range glob("own-*") {
		pid, err := strconv.Atoi(strings.Split(filepath.Base(dir), "-")[1])
		if err != nil || alive(pid) {
			continue
		}
		s := &Server{dir: filepath.Join(dir, "data"), socket: dir, temp: true}
		if pid, ok := s.running(); ok {
			s.pid = pid
		}
		_ = s.Stop() // a leftover that cannot be removed disturbs nobody
	}
	for _, dir := range glob("kept-*") {
		origin, err := os.ReadFile(filepath.Join(dir, "origin"))
		if err != nil || len(origin) == 0 {
			continue // being made: the file is there before its content is
		}
		if _, err := os.Lstat(string(origin)); !errors.Is(err, fs.ErrNotExist) || socketInUse(dir) {
			continue
		}
		_ = os.RemoveAll(dir) // as above
	}
}

// glob lists directories below base.
func glob(pattern string) []string {
	dirs, err := filepath.Glob(filepath.Join(base(), pattern))
	if err != nil {
		return nil // the patterns are constants
	}
	return dirs
}

// socketInUse reads the process id that PostgreSQL notes beside its socket.
func socketInUse(dir string) bool {
	data, err := os.ReadFile(filepath.Join(dir, ".s.PGSQL.5432.lock"))
	if err != nil {
		return false
	}
	first, _, _ := strings.Cut(string(data), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	return err == nil && alive(pid) && isPostgres(pid)
}
