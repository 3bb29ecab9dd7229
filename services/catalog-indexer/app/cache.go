package app

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/fetch"
)

// cacheLock is the file in a cache by whose lock processes know of each other.
const cacheLock = "lock"

// cache is the directory for what is fetched and unpacked, held by this process as long as it is not closed.
type cache struct {
	dir  string
	lock *os.File
}

// close gives the directory back.
func (c *cache) close() {
	if c != nil && c.lock != nil {
		_ = c.lock.Close() // only the lock hangs on it
	}
}

// defaultCache is where things are unpacked if nothing is set: always the same place, so that what a process
// left there that was killed is found by the next one.
func defaultCache() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("chandler-catalog-indexer-%d", os.Getuid()))
}

// openCache takes a directory for what is fetched and unpacked. Who is alone in it removes what an end in the
// midst has left; beside another process nothing is removed. Every process holds the lock for as long as it
// lives, shared, so that it is never taken for one that has ended.
func openCache(dir string) (*cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, errs.Wrap(errs.Internal, err, "make the directory for what is fetched and unpacked")
	}
	// The directory for temporary files is everybody's: what somebody else made there is not used.
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "look at the directory for what is fetched and unpacked")
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); dir == defaultCache() &&
		(!info.IsDir() || !ok || int(owner.Uid) != os.Getuid()) {
		return nil, errs.New(errs.Forbidden, "%s belongs to another user; name a directory in CHANDLER_CATALOG_CACHE",
			dir).At("catalog-cache", "")
	}
	f, err := os.OpenFile(filepath.Join(dir, cacheLock), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "open the lock of the directory for what is fetched and unpacked")
	}
	c := &cache{dir: dir, lock: f}
	if err := c.enter(); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// enter sweeps the directory if nobody else is there, and takes a share of its lock.
func (c *cache) enter() error {
	if syscall.Flock(int(c.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		if err := (&fetch.Fetcher{Cache: c.dir}).Sweep(); err != nil {
			return err
		}
	}
	for { // who sweeps does so for a moment
		err := syscall.Flock(int(c.lock.Fd()), syscall.LOCK_SH)
		if err != syscall.EINTR {
			return errs.Wrap(errs.Internal, err,
				"take a share of the lock of the directory for what is fetched and unpacked")
		}
	}
}
