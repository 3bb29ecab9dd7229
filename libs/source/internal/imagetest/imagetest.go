// Package imagetest makes images, archives and repositories of examples for the tests of sources.
package imagetest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"path"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Entry is one entry of an archive.
type Entry struct {
	tar.Header

	Text string
}

// File is a file.
func File(name, text string) Entry {
	return Entry{tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}, text}
}

// Link is a symbolic link.
func Link(name, to string) Entry {
	return Entry{tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}, ""}
}

// Tar makes an archive. It panics on entries that cannot be written: they stand in tests.
func Tar(entries ...Entry) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		must(w.WriteHeader(&e.Header))
		_, err := io.WriteString(w, e.Text)
		must(err)
	}
	must(w.Close())
	return b.Bytes()
}

// Tree lists a tree of files below a directory of the archive.
func Tree(fsys fs.FS, below string) []Entry {
	var out []Entry
	must(fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(fsys, name)
		out = append(out, File(path.Join(below, name), string(text)))
		return err
	}))
	return out
}

// Gzip compresses.
func Gzip(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b)
	must(err)
	must(w.Close())
	return out.Bytes()
}

// Image makes an image of layers, each an archive with or without compression.
func Image(labels map[string]string, layers ...[]byte) v1.Image {
	img := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	for _, l := range layers {
		var err error
		img, err = mutate.AppendLayers(img, static.NewLayer(l, types.OCILayer))
		must(err)
	}
	c, err := img.ConfigFile()
	must(err)
	c = c.DeepCopy()
	c.Config.Labels = labels
	img, err = mutate.ConfigFile(img, c)
	must(err)
	return img
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
