package author

import (
	"bytes"
	"errors"
	"io/fs"
	"time"
)

// overlay is a tree with another text in one file.
type overlay struct {
	fs.FS

	name string
	text []byte
}

// Open opens the file, or what is below.
func (o overlay) Open(name string) (fs.File, error) {
	f, err := o.FS.Open(name)
	if err != nil || name != o.name {
		return f, err
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return &textFile{bytes.NewReader(o.text), sized{info, int64(len(o.text))}}, nil
}

// Stat is that of the file with the other text.
func (o overlay) Stat(name string) (fs.FileInfo, error) {
	info, err := fs.Stat(o.FS, name)
	if err != nil || name != o.name {
		return info, err
	}
	return sized{info, int64(len(o.text))}, nil
}

// sized is a file of another size.
type sized struct {
	fs.FileInfo

	size int64
}

func (s sized) Size() int64        { return s.size }
func (s sized) ModTime() time.Time { return time.Time{} }

type textFile struct {
	*bytes.Reader

	info fs.FileInfo
}

func (f *textFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *textFile) Close() error               { return nil }
