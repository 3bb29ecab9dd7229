package pool

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/chandler-fleet/chandler/test/internal/filelock"
	"github.com/chandler-fleet/chandler/test/internal/proc"
)

// Pool is the list. Its zero value is not usable; see Open.
type Pool struct{ dir string }

// Open returns the pool of this machine and user. CHANDLER_TESTCLUSTER_POOL moves it.
func Open() (Pool, error) {
	dir := os.Getenv("CHANDLER_TESTCLUSTER_POOL")
	if dir == "" {
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("chandler-testcluster-%d", os.Getuid()))
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Pool{}, fmt.Errorf("open pool: %w", err)
	}
	p := Pool{dir: dir}
	return p, p.prepare()
}

// prepare makes the directory. The place is public and its name can be guessed: what another user put there would
// tell us which processes to end and which directories to remove.
func (p Pool) prepare() error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return fmt.Errorf("open pool: %w", err)
	}
	info, err := os.Lstat(p.dir)
	if err != nil {
		return fmt.Errorf("open pool: %w", err)
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if !info.IsDir() || int(owner) != os.Getuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("open pool: %s is not a directory that only user %d can use", p.dir, os.Getuid())
	}
	return nil
}

// Dir is the directory of the pool; only files whose names end in .json are members.
func (p Pool) Dir() string { return p.dir }

// Members returns all members whose owner is alive, after ending all others.
func (p Pool) Members(ctx context.Context) ([]*Member, error) {
	var alive []*Member
	err := p.locked(ctx, func() (err error) {
		alive, err = p.reap(ctx)
		return err
	})
	return alive, err
}

// Add puts a new member into the list, after ending those whose owner is gone. An empty dir stands for one in the pool.
func (p Pool) Add(ctx context.Context, kind Kind, name, dir string) (*Member, error) {
	m := p.newMember(kind, name, dir)
	err := p.locked(ctx, func() error {
		if _, err := p.reap(ctx); err != nil {
			return err
		}
		return m.create()
	})
	if err != nil {
		return nil, fmt.Errorf("add %s %s to the pool: %w", kind, name, err)
	}
	return m, nil
}

func (p Pool) newMember(kind Kind, name, dir string) *Member {
	random := make([]byte, 5)
	_, _ = rand.Read(random) // never fails
	id := hex.EncodeToString(random)
	if dir == "" {
		dir = filepath.Join(p.dir, id)
	}
	return &Member{ID: id, Kind: kind, Name: name, Dir: dir, Owner: proc.Self(), file: filepath.Join(p.dir, id+suffix)}
}

func (p Pool) locked(ctx context.Context, do func() error) error {
	unlock, err := filelock.Lock(ctx, filepath.Join(p.dir, "lock"))
	if err != nil {
		return err
	}
	defer unlock()
	return do()
}

// reap ends the members whose owner is gone and returns the others.
func (p Pool) reap(ctx context.Context) ([]*Member, error) {
	members, err := p.read()
	if err != nil {
		return nil, err
	}
	var alive []*Member
	var errs []error
	for _, m := range members {
		if m.Owner.Alive() {
			alive = append(alive, m)
		} else if err := m.end(ctx); err != nil {
			errs = append(errs, fmt.Errorf("reap %s %s: %w", m.Kind, m.Name, err))
		}
	}
	return alive, errors.Join(errs...)
}

func (p Pool) read() ([]*Member, error) {
	files, err := os.ReadDir(p.dir)
	if err != nil {
		return nil, err
	}
	var members []*Member
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), suffix) {
			continue
		}
		m, err := readMember(filepath.Join(p.dir, file.Name()))
		if errors.Is(err, os.ErrNotExist) { // its owner has just removed it
			continue
		}
		if err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	return members, nil
}

func readMember(path string) (*Member, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m := &Member{file: path}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}
