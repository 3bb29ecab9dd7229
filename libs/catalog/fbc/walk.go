package fbc

import (
	"bytes"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// Walk calls each for every document of a catalog, in order of file and line, until its first error. What
// is wrong with documents, so that they are not among those, is in the findings. A bundle directory
// comes as the olm.bundle that an image of it would be rendered to (R-CAT-58), its manifests inline.
func Walk(fsys fs.FS, each func(Blob) error) (catalog.Findings, error) {
	var more catalog.Findings
	findings, err := catalog.Visit(fsys, func(d catalog.Document) error {
		if d.Bundle {
			b, f, err := readBundle(fsys, d.File)
			more = append(more, f...)
			if err != nil || b.Schema == "" {
				return err
			}
			return each(b)
		}
		return each(Blob{Schema: d.Schema, Package: d.Package, Name: d.Name, Raw: d.Raw})
	})
	return append(findings, more...), err
}

// fileName is the one file of FS.
const fileName = "catalog.json"

// FS is a tree with one file that holds the documents, for what loads catalogs from trees. The file is
// put together while it is read.
func FS(blobs []Blob) fs.FS { return memory(blobs) }

type memory []Blob

// Open opens the directory or its file.
func (m memory) Open(name string) (fs.File, error) {
	switch name {
	case ".":
		return &directory{blobs: m}, nil
	case fileName:
		return m.open(), nil
	}
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// info is what is known of the directory and of its file; neither has a time.
type info struct {
	name string
	size int64
	mode fs.FileMode
}

func (i info) Name() string               { return i.name }
func (i info) Size() int64                { return i.size }
func (i info) Mode() fs.FileMode          { return i.mode }
func (i info) ModTime() time.Time         { return time.Time{} }
func (i info) IsDir() bool                { return i.mode.IsDir() }
func (i info) Sys() any                   { return nil }
func (i info) Type() fs.FileMode          { return i.mode.Type() }
func (i info) Info() (fs.FileInfo, error) { return i, nil }

const (
	fileMode      = 0o444
	directoryMode = fs.ModeDir | 0o555
)

func (m memory) info() info {
	i := info{name: fileName, mode: fileMode}
	for _, b := range m {
		i.size += int64(len(b.Raw)) + 1
	}
	return i
}

type directory struct {
	blobs memory
	read  bool
}

func (d *directory) Stat() (fs.FileInfo, error) { return info{name: ".", mode: directoryMode}, nil }
func (d *directory) Close() error               { return nil }

func (d *directory) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: ".", Err: errs.New(errs.Invalid, "is a directory")}
}

// ReadDir returns the one file.
func (d *directory) ReadDir(n int) ([]fs.DirEntry, error) {
	if d.read {
		if n > 0 {
			return nil, io.EOF
		}
		return nil, nil
	}
	d.read = true
	return []fs.DirEntry{d.blobs.info()}, nil
}

type file struct {
	io.Reader

	info info
}

// open puts the documents behind one another; JSON objects need nothing between them, lines are for people.
func (m memory) open() *file {
	parts := make([]io.Reader, 0, 2*len(m))
	for _, b := range m {
		parts = append(parts, bytes.NewReader(b.Raw), strings.NewReader("\n"))
	}
	return &file{Reader: io.MultiReader(parts...), info: m.info()}
}

func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *file) Close() error               { return nil }

// readBundle renders one bundle directory. One that makes no bundle has findings instead.
func readBundle(fsys fs.FS, dir string) (Blob, catalog.Findings, error) {
	sub, err := fs.Sub(fsys, dir)
	if err != nil {
		return Blob{}, nil, err
	}
	f, findings := catalog.ReadBundle(sub, nil, "")
	for i := range findings {
		findings[i].File = path.Join(dir, findings[i].File)
	}
	if findings.Errors() > 0 {
		return Blob{}, findings, nil
	}
	b, err := FromBundle(f)
	return b, findings, err
}
