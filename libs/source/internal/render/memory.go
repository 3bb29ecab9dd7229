package render

import (
	"bytes"
	"io"
	"io/fs"
	"strconv"
	"time"
)

// directory is the one directory of a tree.
const directory = "manifests"

// tree is a directory of manifests in memory: manifests/0.json, manifests/1.json …
type tree [][]byte

// Open opens a manifest. Directories are listed by ReadDir alone.
func (t tree) Open(name string) (fs.File, error) {
	for i := range t {
		if name == directory+"/"+file(i) {
			return &opened{Reader: bytes.NewReader(t[i]), info: info{file(i), int64(len(t[i]))}}, nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// ReadDir lists the manifests.
func (t tree) ReadDir(name string) ([]fs.DirEntry, error) {
	if name != directory {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	out := make([]fs.DirEntry, len(t))
	for i := range t {
		out[i] = fs.FileInfoToDirEntry(info{file(i), int64(len(t[i]))})
	}
	return out, nil
}

func file(i int) string { return strconv.Itoa(i) + ".json" }

type opened struct {
	io.Reader

	info info
}

func (o *opened) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o *opened) Close() error               { return nil }

type info struct {
	name string
	size int64
}

func (i info) Name() string     { return i.name }
func (i info) Size() int64      { return i.size }
func (info) Mode() fs.FileMode  { return 0o400 }
func (info) ModTime() time.Time { return time.Time{} }
func (info) IsDir() bool        { return false }
func (info) Sys() any           { return nil }
