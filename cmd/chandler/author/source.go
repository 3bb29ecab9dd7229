package author

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/fetch"
)

// references says what a reference may be, in the help of every command that takes one.
const references = `A reference is a directory (file-based catalog, bundle directories, one bundle, or an OCI layout), a file
(an archive tar, tar.gz or tar.zst; an SQLite database; or one file of documents; - for standard input), an
https address of an archive, git+https://host/repository[#branch-or-commit], grpc://host:port of a running
catalog, or else an image.`

// sourceFlags say how to get at registries and servers.
type sourceFlags struct {
	insecure bool
	auth     string
	mirrors  map[string]string
}

// sources opens what references name.
type sources struct {
	Env

	from sourceFlags
}

func (t *sources) sourceFlags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&t.from.insecure, "insecure", false, "allow registries and servers without TLS")
	f.StringVar(&t.from.auth, "authfile", "",
		"docker configuration with the credentials of registries (default: as docker and podman find it)")
	f.StringToStringVar(&t.from.mirrors, "mirror", nil,
		"ask another registry for images that begin so: registry.test/a=mirror.test/a")
}

// tree is an open reference.
type tree struct {
	fs     fs.FS
	name   string // as the person wrote it
	labels map[string]string
	image  string // the bundle's pull specification, where the tree is the one of an image
	close  func() error
}

// dirManifests and fileAnnotations are what a bundle has at its root (R-CAT-50).
const (
	dirManifests    = "manifests"
	fileAnnotations = "metadata/annotations.yaml"
)

// bundle reports whether the tree is one bundle and not a catalog.
func (r *tree) bundle() bool {
	if r.labels[catalog.AnnotationPackage] != "" {
		return true
	}
	return isBundle(r.fs, ".")
}

func isBundle(fsys fs.FS, dir string) bool {
	at := func(name string) (fs.FileInfo, error) {
		if dir != "." {
			name = dir + "/" + name
		}
		return fs.Stat(fsys, name)
	}
	manifests, err1 := at(dirManifests)
	annotations, err2 := at(fileAnnotations)
	return err1 == nil && err2 == nil && manifests.IsDir() && !annotations.IsDir()
}

// stdin is the reference that means standard input.
const stdin = "-"

// open opens a reference. The tree must be closed.
func (t *sources) open(ctx context.Context, ref string) (*tree, error) {
	if ref == stdin {
		return t.spool()
	}
	typ, s, err := classify(ref)
	if err != nil {
		return nil, err
	}
	if typ == "" {
		return oneFile(ref), nil
	}
	o, s := t.fetcher(s)
	tr, err := o.Open(ctx, typ, s)
	if s.Image != "" && errs.Is(err, errs.Invalid) {
		// It may be the image of one bundle, which the labels tell; where it is not, the first error is right.
		if b, berr := t.openBundleImage(ctx, ref); berr == nil {
			return b, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return &tree{fs: tr.FS, name: ref, labels: tr.Labels, close: tr.Close}, nil
}

// openBundle opens a bundle: a directory that begins at base where it is relative, or an image.
func (t *sources) openBundle(ctx context.Context, base, ref string) (*tree, error) {
	dir := ref
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(base, dir)
	}
	if st, err := os.Stat(dir); err == nil && st.IsDir() {
		r, err := t.open(ctx, dir)
		if err == nil && !r.bundle() {
			err = errors.Join(fmt.Errorf("%s is no bundle: it needs %s/ and %s", ref, dirManifests, fileAnnotations),
				r.close())
			return nil, err
		}
		return r, err
	}
	if strings.HasPrefix(ref, "./") || strings.HasPrefix(ref, "../") || filepath.IsAbs(ref) {
		return nil, fmt.Errorf("the bundle directory %s is not there", dir)
	}
	return t.openBundleImage(ctx, ref)
}

// openBundleImage opens the image of a bundle, and notes it by digest.
func (t *sources) openBundleImage(ctx context.Context, ref string) (*tree, error) {
	o, s := t.fetcher(source.Settings{})
	tr, err := o.Bundle(ctx, ref, s)
	if err != nil {
		return nil, err
	}
	image := ref
	if tr.Resolved != "" {
		image = tr.Resolved
	}
	return &tree{fs: tr.FS, name: ref, labels: tr.Labels, image: image, close: tr.Close}, nil
}

// classify says what a reference is: see references. A plain file of documents has no type.
func classify(ref string) (source.Type, source.Settings, error) {
	switch {
	case strings.HasPrefix(ref, "grpc://"):
		return source.GRPC, source.Settings{Address: strings.TrimPrefix(ref, "grpc://")}, nil
	case strings.HasPrefix(ref, "git+"):
		url, branch, _ := strings.Cut(strings.TrimPrefix(ref, "git+"), "#")
		return source.Git, source.Settings{URL: url, Reference: branch}, nil
	case strings.HasPrefix(ref, "https://"), strings.HasPrefix(ref, "http://"):
		return source.Archive, source.Settings{URL: ref}, nil
	}
	abs, err := filepath.Abs(ref)
	if err != nil {
		return "", source.Settings{}, err
	}
	st, err := os.Stat(ref)
	switch {
	case err == nil && st.IsDir():
		if _, err := os.Stat(filepath.Join(abs, "oci-layout")); err == nil {
			return source.Image, source.Settings{Path: abs}, nil
		}
		return source.Directory, source.Settings{Path: abs}, nil
	case err == nil:
		typ, err := sniff(abs)
		return typ, source.Settings{Path: abs}, err
	case !errors.Is(err, fs.ErrNotExist):
		return "", source.Settings{}, err
	case strings.HasPrefix(ref, "./"), strings.HasPrefix(ref, "../"), filepath.IsAbs(ref), !strings.Contains(ref, "/"):
		return "", source.Settings{}, fmt.Errorf("%s: there is no such file or directory", ref)
	}
	return source.Image, source.Settings{Image: ref}, nil
}

// sniff tells what a file is by its first bytes.
func sniff(file string) (source.Type, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	const enough = 512 // the mark of tar stands at 257
	head := make([]byte, enough)
	n, err := io.ReadFull(f, head)
	if cerr := f.Close(); cerr != nil {
		return "", cerr
	}
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", err
	}
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		return source.SQLite, nil
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}), bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}),
		n > 262 && string(head[257:262]) == "ustar":
		return source.Archive, nil
	}
	return "", nil
}

// fetcher reads sources with the credentials and mirrors of the flags.
func (t *sources) fetcher(s source.Settings) (*fetch.Fetcher, source.Settings) {
	s.Insecure = t.from.insecure
	o := &fetch.Fetcher{}
	for from, to := range t.from.mirrors {
		o.Mirrors = append(o.Mirrors, source.Mirror{Source: from, Mirrors: []string{to}})
	}
	if file := t.authFile(); file != "" {
		s.Secrets = []string{string(source.DockerConfig)}
		o.Secrets = func(_ context.Context, name string) (source.Secret, error) {
			value, err := os.ReadFile(file)
			return source.Secret{Name: name, Kind: source.DockerConfig, Value: value}, err
		}
	}
	return o, s
}

// authFile finds the docker configuration: the flag, then the places where docker and podman look.
func (t *sources) authFile() string {
	if t.from.auth != "" {
		return t.from.auth
	}
	var places []string
	env := func(name string, below ...string) {
		if dir, ok := t.Lookup(name); ok && dir != "" {
			places = append(places, filepath.Join(append([]string{dir}, below...)...))
		}
	}
	env("REGISTRY_AUTH_FILE")
	env("DOCKER_CONFIG", "config.json")
	env("XDG_RUNTIME_DIR", "containers", "auth.json")
	env("HOME", ".docker", "config.json")
	for _, p := range places {
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() {
			return p
		}
	}
	return ""
}

// spool keeps standard input in a file, since catalogs are read more than once.
func (t *sources) spool() (*tree, error) {
	dir, remove, err := temporary()
	if err != nil {
		return nil, err
	}
	f, err := os.Create(filepath.Join(dir, "stdin"))
	if err == nil {
		_, err = io.Copy(f, io.LimitReader(t.In, catalog.MaxFileBytes+1))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	return &tree{fs: os.DirFS(dir), name: "standard input", close: remove}, nil
}

// oneFile is a tree with one file of a directory.
func oneFile(file string) *tree {
	return &tree{
		fs: single{os.DirFS(filepath.Dir(file)), filepath.Base(file)}, name: file,
		close: func() error { return nil },
	}
}

// single shows one file of a directory.
type single struct {
	dir  fs.FS
	name string
}

// Open opens the directory or its file.
func (s single) Open(name string) (fs.File, error) {
	if name != "." && name != s.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return s.dir.Open(name)
}

// ReadDir lists the one file.
func (s single) ReadDir(name string) ([]fs.DirEntry, error) {
	if name != "." {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	info, err := fs.Stat(s.dir, s.name)
	if err != nil {
		return nil, err
	}
	return []fs.DirEntry{fs.FileInfoToDirEntry(info)}, nil
}
