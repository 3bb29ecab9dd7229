package oci

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// MaxCache bounds the bytes that a cache keeps: the layers of the largest known catalogs, and many bundles.
const MaxCache = 2 << 30

// Cache keeps blobs on disk, by repository and digest, so that a bundle that is fetched again costs the
// request for its manifest alone. A blob is never found through another repository than its own: who
// may read one may not therefore read the other. What comes out is checked as what a registry sends.
type Cache struct {
	// Dir is a directory of its own.
	Dir string
	// Max replaces MaxCache.
	Max int64
	// Now is the clock by which the oldest use is found; nil is time.Now.
	Now func() time.Time

	mu sync.Mutex
}

func (c *Cache) path(repository string, d v1.Descriptor) string {
	return filepath.Join(c.Dir, digest.Bytes([]byte(repository)).Hex(), d.Digest.Hex)
}

// open returns a blob from the cache, or from fetch and keeps it.
func (c *Cache) open(repository string, d v1.Descriptor, fetch func() (io.ReadCloser, error)) (io.ReadCloser, error) {
	path := c.path(repository, d)
	if f, err := os.Open(path); err == nil {
		if info, err := f.Stat(); err == nil && info.Size() == d.Size {
			_ = os.Chtimes(path, time.Time{}, c.now()) // at worst it goes too early
			return cached{f}, nil
		}
		_ = f.Close() // it was only read
	}
	body, err := fetch()
	if err != nil || d.Size > c.max()/4 { // one blob must not throw out all others
		return body, err
	}
	temp, err := c.temporary(path)
	if err != nil {
		return body, nil //nolint:nilerr // a cache that cannot be written costs time, nothing else
	}
	return &keeping{ReadCloser: body, c: c, d: d, path: path, temp: temp}, nil
}

// cached is a blob from the cache.
type cached struct{ *os.File }

// distrust removes a blob that has changed: the next poll fetches it again.
func (c cached) distrust() { _ = os.Remove(c.Name()) }

func (c *Cache) temporary(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return os.CreateTemp(filepath.Dir(path), "part-")
}

func (c *Cache) max() int64 { return cmp.Or(c.Max, MaxCache) }

func (c *Cache) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

// keeping writes what is read into the cache, and keeps it once all was read and its digest is right.
type keeping struct {
	io.ReadCloser

	c    *Cache
	d    v1.Descriptor
	path string
	temp *os.File
	bad  bool
	done bool
}

func (k *keeping) Read(p []byte) (int, error) {
	n, err := k.ReadCloser.Read(p)
	if !k.bad {
		_, werr := k.temp.Write(p[:n])
		k.bad = werr != nil
	}
	k.done = k.done || errors.Is(err, io.EOF)
	return n, err
}

func (k *keeping) Close() error {
	err := k.ReadCloser.Close()
	ok := k.done && !k.bad && k.temp.Close() == nil && k.right() && os.Rename(k.temp.Name(), k.path) == nil
	if !ok {
		_ = k.temp.Close() // perhaps a second time
		_ = os.Remove(k.temp.Name())
		return err
	}
	_ = os.Chtimes(k.path, time.Time{}, k.c.now()) // at worst it goes too early
	return errors.Join(err, k.c.trim())
}

// right checks what was written: only then may it be found under its digest.
func (k *keeping) right() bool {
	f, err := os.Open(k.temp.Name())
	if err != nil {
		return false
	}
	v := &verified{ReadCloser: f, d: k.d, h: newHash()}
	_, err = io.Copy(io.Discard, v)
	return errors.Join(err, f.Close()) == nil
}

// trim removes what was used least recently until the rest is within the bound.
func (c *Cache) trim() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	type blob struct {
		path string
		size int64
		used time.Time
	}
	var all []blob
	var total int64
	err := filepath.WalkDir(c.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err != nil {
			return ignoreGone(err)
		}
		all = append(all, blob{path, info.Size(), info.ModTime()})
		total += info.Size()
		return nil
	})
	if err != nil {
		return errs.Wrap(errs.Internal, err, "look through the cache of blobs")
	}
	slices.SortFunc(all, func(a, b blob) int { return a.used.Compare(b.used) })
	for _, b := range all {
		if total <= c.max() {
			break
		}
		if err := ignoreGone(os.Remove(b.path)); err != nil {
			return errs.Wrap(errs.Internal, err, "remove a blob from the cache")
		}
		total -= b.size
	}
	return nil
}

// ignoreGone passes over what another call removed meanwhile.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
