// Package source opens what a catalog is read from. Today that is a directory of the indexer's own
// file system, which is never left: links that lead out of it are refused by the operating system's
// own walk (os.Root), whatever they say.
package source

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// TypeDirectory is the source type of a directory.
const TypeDirectory = "directory"

// Settings are the body of kind catalog-source for a directory.
type Settings struct {
	Path string `json:"path"` // absolute
}

// Opener opens sources.
type Opener struct {
	// Root, where set, is the directory that all sources must lie in; relative paths start there.
	Root string
}

// Source is an open directory.
type Source struct {
	root *os.Root
}

// Open opens the directory that settings name. Errors are errs.Invalid for settings that say nothing
// usable and errs.NotFound for a directory that is not there.
func (o Opener) Open(typ string, settings []byte) (*Source, error) {
	if typ != TypeDirectory {
		return nil, errs.New(errs.Invalid, "source type %q is unknown; this version reads %s", typ, TypeDirectory)
	}
	var s Settings
	if err := json.Unmarshal(settings, &s); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "settings of the catalog source")
	}
	path, err := o.resolve(s.Path)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, errs.New(errs.NotFound, "catalog directory %s cannot be opened: %s", s.Path, reason(err))
	}
	return &Source{root: root}, nil
}

func (o Opener) resolve(path string) (string, error) {
	switch {
	case path == "":
		return "", errs.New(errs.Invalid, "the catalog source has no path").At("path", "")
	case o.Root == "" && !filepath.IsAbs(path):
		return "", errs.New(errs.Invalid, "catalog directory %q must be an absolute path", path).At("path", "")
	case o.Root == "":
		return filepath.Clean(path), nil
	case !filepath.IsAbs(path):
		path = filepath.Join(o.Root, path)
	}
	rel, err := filepath.Rel(o.Root, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", errs.New(errs.Forbidden, "catalog directory %q lies outside of the directory that catalogs may be read from", path).At("path", "")
	}
	return filepath.Clean(path), nil
}

// reason is the last part of a file system error: the path is said once, by the caller.
func reason(err error) string {
	s := err.Error()
	if i := strings.LastIndex(s, ": "); i >= 0 {
		return s[i+2:]
	}
	return s
}

// FS is the directory as a file system; it ends with Close.
func (s *Source) FS() fs.FS { return s.root.FS() }

// Close closes the directory.
func (s *Source) Close() error { return s.root.Close() }

// Fingerprint is a digest over names, sizes and times of all files: cheap to compare, and another
// one whenever a file was written. It opens no file.
func (s *Source) Fingerprint(ctx context.Context) (string, error) {
	var b strings.Builder
	err := fs.WalkDir(s.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b.WriteString(strconv.Quote(name))
		if !d.IsDir() { // a directory's own time also moves for what is not its content
			b.WriteString(" " + strconv.FormatInt(info.Size(), 10) + " " + strconv.FormatInt(info.ModTime().UnixNano(), 10))
		}
		b.WriteString(" " + info.Mode().Type().String() + "\n")
		return nil
	})
	if err != nil {
		return "", errs.New(errs.NotFound, "catalog directory cannot be listed: %s", reason(err))
	}
	return string(digest.Bytes([]byte(b.String()))), nil
}
