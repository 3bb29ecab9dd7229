// Package dir opens a directory of the file system as a catalog source. The directory is never left:
// links that lead out of it are refused by the operating system's own walk (os.Root), whatever they say.
package dir

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// MaxEntries is how many files and directories a source may have: as many as libs/catalog loads.
const MaxEntries = 200_000

// Resolve returns the clean absolute path of a source. With a root, a relative path starts there, and a
// path outside of it is errs.Forbidden; without one only an absolute path is taken.
func Resolve(root, path string) (string, error) {
	switch {
	case path == "":
		return "", errs.New(errs.Invalid, "the catalog source has no path").At("/path", "required")
	case root == "" && !filepath.IsAbs(path):
		return "", errs.New(errs.Invalid,
			"path %q of the catalog source must be absolute, since no directory is set that sources lie in", path).At(
			"/path", "path")
	case root == "":
		return filepath.Clean(path), nil
	case !filepath.IsAbs(path):
		path = filepath.Join(root, path)
	}
	if !within(root, path) {
		return "", outside(path)
	}
	return follow(root, filepath.Clean(path))
}

// follow refuses a path that leaves the root by way of links.
func follow(root, path string) (string, error) {
	realRoot, err := filepath.EvalSymlinks(root)
	if err != nil {
		return "", errs.New(errs.NotFound, "the directory that catalogs may be read from cannot be opened: %s",
			Reason(err))
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", errs.New(errs.NotFound, "catalog source %s cannot be opened: %s", path, Reason(err))
	}
	if !within(realRoot, target) {
		return "", outside(path)
	}
	return target, nil
}

func within(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

func outside(path string) error {
	return errs.New(errs.Forbidden, "catalog source %q lies outside of the directory that catalogs may be read from",
		path).At("/path", "path")
}

// Reason is the last part of a file system error: the path is said once, by the caller.
func Reason(err error) string {
	s := err.Error()
	if i := strings.LastIndex(s, ": "); i >= 0 {
		return s[i+2:]
	}
	return s
}

// Dir is an open directory.
type Dir struct {
	root *os.Root
	path string
}

// Open opens a directory; errs.NotFound where it is not there or is none.
func Open(path string) (*Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, errs.New(errs.NotFound, "catalog directory %s cannot be opened: %s", path, Reason(err))
	}
	return &Dir{root: root, path: path}, nil
}

// FS is the directory as a file system; it ends with Close.
func (d *Dir) FS() fs.FS { return d.root.FS() }

// Close closes the directory.
func (d *Dir) Close() error { return d.root.Close() }

// Fingerprint is a digest over names, sizes and times of all files: cheap to compare, and another
// one whenever a file was written. It opens no file.
func (d *Dir) Fingerprint(ctx context.Context) (string, error) {
	var b strings.Builder
	seen := 0
	err := fs.WalkDir(d.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		seen++
		if seen > MaxEntries {
			return errs.New(errs.TooLarge,
				"catalog directory %s has more than %d files and directories; give a directory that holds the "+
					"catalog alone", d.path, MaxEntries)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		b.WriteString(strconv.Quote(name))
		if !entry.IsDir() { // a directory's own time also moves for what is not its content
			b.WriteString(" " + strconv.FormatInt(info.Size(), 10) + " " +
				strconv.FormatInt(info.ModTime().UnixNano(), 10))
		}
		b.WriteString(" " + info.Mode().Type().String() + "\n")
		return nil
	})
	switch {
	case err == nil:
		return string(digest.Bytes([]byte(b.String()))), nil
	case ctx.Err() != nil || errs.Is(err, errs.TooLarge):
		return "", err
	default:
		return "", errs.New(errs.NotFound, "catalog directory %s cannot be listed: %s", d.path, Reason(err))
	}
}

// Settled reports, as errs.Unavailable, that the directory is not what it was at a fingerprint: what was
// read meanwhile may be half of one state and half of another.
func (d *Dir) Settled(ctx context.Context, fingerprint string) error {
	now, err := d.Fingerprint(ctx)
	if err != nil {
		return err
	}
	if now != fingerprint {
		return errs.New(errs.Unavailable, "catalog directory %s changed while it was read; it is read again", d.path)
	}
	return nil
}
