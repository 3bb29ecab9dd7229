// Package limitfs bounds how many bytes are read of a tree of files, all of them together, and ends reading when
// it is told to, also in the middle of a file.
package limitfs

import (
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
)

// ErrStopped is what reading returns once the channel that New was given is closed.
var ErrStopped = errors.New("reading was stopped")

// FS is a file system of which only so much is read. It may be used by several goroutines.
type FS struct {
	files fs.FS
	limit int64
	read  atomic.Int64
	stop  <-chan struct{}
}

// New returns a view of files of which at most limit bytes can be read, until stop is closed.
func New(files fs.FS, limit int64, stop <-chan struct{}) *FS {
	return &FS{files: files, limit: limit, stop: stop}
}

// Spent reports whether more was asked for than may be read. What was read is then not all that there is.
func (m *FS) Spent() bool { return m.read.Load() > m.limit }

// Stopped reports whether reading is to end.
func (m *FS) Stopped() bool {
	select {
	case <-m.stop:
		return true
	default:
		return false
	}
}

// may returns why nothing more is read.
func (m *FS) may() error {
	switch {
	case m.Stopped():
		return ErrStopped
	case m.Spent():
		return fmt.Errorf("more than %d bytes of files are read", m.limit)
	}
	return nil
}

// Open opens a file whose bytes count.
func (m *FS) Open(name string) (fs.File, error) {
	if err := m.may(); err != nil {
		return nil, err
	}
	f, err := m.files.Open(name)
	if err != nil {
		return nil, err
	}
	if dir, ok := f.(fs.ReadDirFile); ok {
		return &directory{file{f, m}, dir}, nil
	}
	return &file{f, m}, nil
}

// ReadDir reads a directory, which costs nothing.
func (m *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := m.may(); err != nil {
		return nil, err
	}
	return fs.ReadDir(m.files, name)
}

// Stat describes a file without opening it.
func (m *FS) Stat(name string) (fs.FileInfo, error) { return fs.Stat(m.files, name) }

type file struct {
	fs.File
	fs *FS
}

func (f *file) Read(b []byte) (int, error) {
	if err := f.fs.may(); err != nil {
		return 0, err
	}
	n, err := f.File.Read(b)
	f.fs.read.Add(int64(n))
	if err == nil {
		err = f.fs.may()
	}
	return n, err
}

// directory is a file that can list what it holds, as those of some file systems all can.
type directory struct {
	file
	dir fs.ReadDirFile
}

func (d *directory) ReadDir(n int) ([]fs.DirEntry, error) { return d.dir.ReadDir(n) }
