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
	return errors.Join(os.RemoveAll(s.dir), os.RemoveAll(s.socket))
}

// reapTemporary removes temporary instances whose owner has been killed. Their PostgreSQL has ended
// with the owner where the kernel sees to that, and is stopped here where it does not.
func reapTemporary() {
	dirs, err := filepath.Glob(filepath.Join(base(), "own-*"))
	if err != nil {
		return // the pattern is a constant
	}
	for _, dir := range dirs {
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
}
