package pglocal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// account is the user that runs PostgreSQL: ourselves, or "postgres" where we are root.
type account struct {
	root     bool
	uid, gid int
}

func findAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err1 == nil && err2 == nil {
			return account{root: true, uid: uid, gid: gid}, nil
		}
	}
	return account{}, errs.New(errs.Unavailable,
		"PostgreSQL does not run as root, and there is neither an account postgres nor nobody: create one of them")
}

// attributes start a process as this account, in a group of its own so that Ctrl-C reaches only us.
func (a account) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if a.root {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attr
}

// own makes a directory that belongs to the account.
func (a account) own(dir string, mode os.FileMode) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if a.root {
		if err := os.Chown(dir, a.uid, a.gid); err != nil {
			return err
		}
	}
	return os.Chmod(dir, mode)
}

// claimBase makes the directory for sockets. It has a name that others could guess, in a place where
// they may write: if it is theirs, or leads elsewhere, it is not used.
func (a account) claimBase() error {
	dir := base()
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(s.Uid) != os.Geteuid() && int(s.Uid) != a.uid {
		return errs.New(errs.Forbidden, "%s is not a directory of ours: remove it", dir)
	}
	return a.own(dir, 0o755)
}

// mayEnter reports whether the account can reach dir: each directory above must let others through.
func (a account) mayEnter(dir string) bool {
	for p := filepath.Dir(dir); a.root; p = filepath.Dir(p) {
		info, err := os.Stat(p)
		if err == nil && info.Mode().Perm()&0o001 == 0 && !a.owns(info) {
			return false
		}
		if p == filepath.Dir(p) {
			break
		}
	}
	return true
}

func (a account) owns(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == a.uid
}

// base is where what is not the caller's business lies: sockets, temporary instances, the shared one.
// It is short, since the path of a unix socket has at most 107 bytes.
func base() string {
	return filepath.Join(shortTemp(), "chandler-postgres-"+strconv.Itoa(os.Getuid()))
}

// shortTemp avoids the long temporary directories of some systems and test runners.
func shortTemp() string {
	if info, err := os.Stat("/tmp"); err == nil && info.IsDir() {
		return "/tmp"
	}
	return os.TempDir()
}

// binaries finds the directory that holds postgres and initdb: on the PATH, or the newest of the
// places where packages put them outside of it.
func binaries() (string, error) {
	if p, err := exec.LookPath("postgres"); err == nil {
		if found, err := filepath.EvalSymlinks(p); err == nil && complete(filepath.Dir(found)) {
			return filepath.Dir(found), nil
		}
	}
	var found []string
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin",
		"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
	} {
		dirs, err := filepath.Glob(pattern)
		if err != nil {
			return "", fmt.Errorf("pattern %s: %w", pattern, err)
		}
		for _, d := range dirs {
			if complete(d) {
				found = append(found, d)
			}
		}
	}
	if len(found) == 0 {
		return "", errs.New(errs.Unavailable,
			"PostgreSQL's programs postgres and initdb are not on this machine: install them (Debian: apt-get "+
				"install postgresql), or set CHANDLER_DATABASE_URL")
	}
	return slices.MaxFunc(found, func(a, b string) int { return major(a) - major(b) }), nil
}

// major reads the version out of a path such as /usr/lib/postgresql/15/bin.
func major(dir string) int {
	digits := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, filepath.Base(filepath.Dir(dir)))
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// complete reports whether a directory holds every program that this package runs.
func complete(dir string) bool {
	for _, name := range []string{"postgres", "initdb", "pg_dump", "pg_restore"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.IsDir() || info.Mode().Perm()&0o111 == 0 {
			return false
		}
	}
	return true
}
