package author

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/libs/catalog/fbc"
)

// formatFlag is -o json|yaml of commands that write documents.
func formatFlag(c *cobra.Command, into *string, otherwise fbc.Format) {
	c.Flags().StringVarP(into, "output", "o", string(otherwise), "json or yaml")
}

// oneOf checks the value of a flag.
func oneOf(flag, value string, choices ...string) error {
	if slices.Contains(choices, value) {
		return nil
	}
	return fmt.Errorf("--%s %q is not known; use %s", flag, value, strings.Join(choices, ", "))
}

// writeFile writes a file whole or not at all: beside its place first, then into it by one rename.
func writeFile(file string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := errors.Join(write(f), f.Close()); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if st, err := os.Stat(file); err == nil {
		mode = st.Mode().Perm()
	}
	if err := os.Chmod(f.Name(), mode); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

// writeDir makes a directory whole or not at all. One that is there must be empty, or is replaced.
func writeDir(dir string, replace bool, fill func(tmp string) error) (err error) {
	dir = filepath.Clean(dir)
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0 && !replace:
		return fmt.Errorf("the directory %s is not empty; name a new one", dir)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(tmp))
		}
	}()
	if err := fill(tmp); err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o755); err != nil { //nolint:gosec // catalogs are for everybody to read
		return err
	}
	return swap(tmp, dir)
}

// swap puts a directory into a place, and takes away what was there once the new one is in it.
func swap(tmp, dir string) error {
	old := tmp + "-old"
	err := os.Rename(dir, old)
	if errors.Is(err, os.ErrNotExist) {
		return os.Rename(tmp, dir)
	}
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return errors.Join(err, os.Rename(old, dir))
	}
	return os.RemoveAll(old)
}

// byPackage writes each package into a directory of its own, as R-CAT-4 recommends, and what belongs to
// none beside them. One file is open at a time, whatever the number of packages.
type byPackage struct {
	dir    string
	format fbc.Format
	pkg    string
	file   *os.File
	out    *fbc.Writer
}

func (w *byPackage) name() string { return "catalog." + string(w.format) }

// Write writes a document behind the others of its package.
func (w *byPackage) Write(b fbc.Blob) error {
	if w.file == nil || b.Package != w.pkg {
		if err := w.Close(); err != nil {
			return err
		}
		if err := w.next(b); err != nil {
			return err
		}
	}
	return w.out.Write(b)
}

func (w *byPackage) next(b fbc.Blob) error {
	dir := w.dir
	if b.Package != "" {
		if strings.HasPrefix(b.Package, ".") || !filepath.IsLocal(b.Package) || filepath.Base(b.Package) != b.Package {
			return fmt.Errorf("%s names a package that cannot be the name of a directory", b)
		}
		dir = filepath.Join(w.dir, b.Package)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	//nolint:gosec // everybody may read it, as the directory
	f, err := os.OpenFile(filepath.Join(dir, w.name()), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	w.pkg, w.file, w.out = b.Package, f, fbc.NewWriter(f, w.format)
	return nil
}

// Close ends the file that is open.
func (w *byPackage) Close() error {
	if w.file == nil {
		return nil
	}
	err := errors.Join(w.out.Flush(), w.file.Close())
	w.file = nil
	return err
}
