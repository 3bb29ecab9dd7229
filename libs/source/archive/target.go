package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Kind is what an entry is.
type Kind byte

// The kinds of entries that a catalog may hold.
const (
	Directory Kind = 'd'
	File      Kind = 'f'
	Link      Kind = 'l' // symbolic
)

// Target is a private directory that takes entries.
type Target struct {
	dir    string
	root   *os.Root
	limits Limits
	nodes  map[string]node
	layer  int // counts layers; entries of one layer must not repeat

	entries                  int
	names, bytes, compressed int64
}

type node struct {
	kind  Kind
	layer int
	size  int64 // of a file
}

// NewTarget makes an empty directory below temp, or below the system's own for "".
func NewTarget(temp string, l Limits) (*Target, error) {
	dir, err := os.MkdirTemp(temp, "source-")
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "make a directory for what is unpacked")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, errors.Join(err, os.RemoveAll(dir)),
			"open the directory for what is unpacked")
	}
	return &Target{dir: dir, root: root, limits: l, nodes: map[string]node{}}, nil
}

// FS is what was taken so far.
func (t *Target) FS() fs.FS { return t.root.FS() }

// Path is the place of an entry in the file system, for libraries that open files by themselves.
func (t *Target) Path(name string) string { return path.Join(t.dir, name) }

// Has returns the kind of an entry, 0 for none.
func (t *Target) Has(name string) Kind { return t.nodes[name].kind }

// Empty reports whether nothing was taken.
func (t *Target) Empty() bool { return len(t.nodes) == 0 }

// Close removes the directory.
func (t *Target) Close() error {
	return errors.Join(t.root.Close(), os.RemoveAll(t.dir))
}

// NextLayer lets the entries that follow replace those from before.
func (t *Target) NextLayer() { t.layer++ }

// Count counts an entry, whether it is taken or passed over, and returns its name without "./" and a
// trailing "/". A leading "/" is dropped for a layer. What the file system must bear of a name is checked
// where an entry is taken: the base of an image may hold anything.
func (t *Target) Count(raw string, layer bool) (string, error) {
	if err := t.another(raw, len(raw)); err != nil {
		return "", err
	}
	name := raw
	if layer {
		name = strings.TrimLeft(name, "/")
	}
	switch {
	case len(raw) > MaxName: // also of what is passed over: whiteouts are remembered, whatever they name
		return "", refuse(errs.TooLarge, raw, RuleName, "has a name of %d bytes, more than %d", len(raw), MaxName)
	case raw == "" || strings.ContainsRune(raw, 0):
		return "", refuse(errs.Invalid, raw, RuleName, "has no name that can be used")
	case strings.HasPrefix(name, "/"):
		return "", refuse(errs.Invalid, raw, RuleName, "has an absolute name; make the archive with relative ones")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", refuse(errs.Invalid, raw, RuleName, "has a name that leaves the archive by \"..\"")
		}
	}
	return path.Clean(name), nil
}

// another counts an entry, and the bytes that its name adds to what is kept.
func (t *Target) another(name string, added int) error {
	t.entries++
	t.names += int64(added)
	switch {
	case t.entries > t.limits.Entries:
		return refuse(errs.TooLarge, name, RuleEntries,
			"is one too many: at most %d are read; give a directory that holds the catalog alone", t.limits.Entries)
	case t.names > t.limits.Names:
		return refuse(errs.TooLarge, name, RuleNames,
			"brings the names of all entries to more than %d bytes; give a directory that holds the catalog alone",
			t.limits.Names)
	}
	return nil
}

// bearable checks what the file system must bear of a name.
func (t *Target) bearable(name string) error {
	switch {
	case !utf8.ValidString(name):
		return refuse(errs.Invalid, name, RuleName, "has a name that is no UTF-8")
	case strings.Count(name, "/") > t.limits.Depth:
		return refuse(errs.TooLarge, name, RuleDepth, "lies more than %d directories deep", t.limits.Depth)
	}
	return nil
}

// AddDirectory takes a directory; one that is there already is nothing new.
func (t *Target) AddDirectory(name string) error {
	if name == "." {
		return nil
	}
	if n, ok := t.nodes[name]; ok && n.kind == Directory {
		t.nodes[name] = node{kind: Directory, layer: t.layer}
		return nil
	}
	if err := t.room(name); err != nil {
		return err
	}
	return t.made(name, Directory, t.root.Mkdir(name, 0o700))
}

// AddFile takes a file.
func (t *Target) AddFile(name string, body io.Reader) error {
	if err := t.room(name); err != nil {
		return err
	}
	f, err := t.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err := t.made(name, File, err); err != nil {
		return err
	}
	w := &limitedWriter{t: t, name: name, to: f}
	_, err = io.Copy(w, body)
	t.nodes[name] = node{kind: File, layer: t.layer, size: w.n}
	if cerr := f.Close(); err == nil && cerr != nil {
		err = t.fault(name, cerr)
	}
	return err
}

// limitedWriter counts what a file holds.
type limitedWriter struct {
	t    *Target
	name string
	to   *os.File
	n    int64
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	w.n += int64(len(p))
	w.t.bytes += int64(len(p))
	switch l := w.t.limits; {
	case w.n > l.EntryBytes:
		return 0, refuse(errs.TooLarge, w.name, RuleEntryBytes, "has more than %d bytes; split it", l.EntryBytes)
	case w.t.bytes > l.Bytes:
		return 0, w.t.full(w.name)
	}
	n, err := w.to.Write(p)
	if err != nil {
		return n, w.t.fault(w.name, err)
	}
	return n, nil
}

// full is the error for the entry with which all files are too large together.
func (t *Target) full(name string) error {
	return refuse(errs.TooLarge, name, RuleBytes,
		"brings all files to more than %d bytes; give a smaller catalog or a subdirectory", t.limits.Bytes)
}

// AddLink takes a symbolic link whose target lies inside. Where layer is set, an absolute target begins
// at the root of the image, of which from is the directory that this target stands for.
func (t *Target) AddLink(name, to string, layer bool, from string) error {
	if path.IsAbs(to) && layer {
		rel, ok := strings.CutPrefix(path.Clean(to)+"/", "/"+strings.TrimPrefix(from+"/", "./"))
		if !ok {
			return refuse(errs.Invalid, name, RuleLink,
				"is a link to %q, which lies outside of the directory that is read", short(to))
		}
		to = strings.Repeat("../", strings.Count(name, "/")) + strings.TrimSuffix(rel, "/")
	}
	if at := path.Join(path.Dir(name), to); to == "" || path.IsAbs(to) || at == ".." || strings.HasPrefix(at, "../") {
		return refuse(errs.Invalid, name, RuleLink, "is a link to %q, which lies outside of the directory that is read",
			short(to))
	}
	if err := t.room(name); err != nil {
		return err
	}
	return t.made(name, Link, t.root.Symlink(to, name))
}

// AddHardLink takes another name for a file that was taken before.
func (t *Target) AddHardLink(name, to string) error {
	if t.nodes[to].kind != File {
		return refuse(errs.Invalid, name, RuleLink,
			"is a hard link to %q, which is no file that stands before it in the directory that is read", short(to))
	}
	if name == to {
		return refuse(errs.Invalid, name, RuleLink, "is a hard link to itself")
	}
	if err := t.room(name); err != nil {
		return err
	}
	size := t.nodes[to].size
	if t.bytes += size; t.bytes > t.limits.Bytes { // who reads all files reads it again
		return t.full(name)
	}
	if err := t.made(name, File, t.root.Link(to, name)); err != nil {
		return err
	}
	t.nodes[name] = node{kind: File, layer: t.layer, size: size}
	return nil
}

// CountLinks adds to the bytes of all files those that symbolic links would have read once more. It is
// called when all entries are there, since a link may stand before its file.
func (t *Target) CountLinks(ctx context.Context) error {
	var links []string
	for name, n := range t.nodes {
		if n.kind == Link {
			links = append(links, name)
		}
	}
	slices.Sort(links)
	for _, name := range links {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		info, err := t.root.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			continue // it leads nowhere, in a ring or to a directory: whoever reads gets nothing by it
		}
		if t.bytes += info.Size(); t.bytes > t.limits.Bytes {
			return t.full(name)
		}
	}
	return nil
}

// room creates the directories above an entry, and removes what an earlier layer had in its place.
func (t *Target) room(name string) error {
	if err := t.bearable(name); err != nil {
		return err
	}
	for i := range name {
		if name[i] != '/' {
			continue
		}
		above := name[:i]
		switch n, ok := t.nodes[above]; {
		case !ok:
			if err := t.another(name, 0); err != nil { // it has no entry of its own, and shares its name
				return err
			}
			if err := t.made(above, Directory, t.root.Mkdir(above, 0o700)); err != nil {
				return err
			}
		case n.kind == Directory:
			t.nodes[above] = node{kind: Directory, layer: t.layer}
		default:
			return refuse(errs.Invalid, name, RuleLink, "lies below %q, which is a link or a file", short(above))
		}
	}
	n, ok := t.nodes[name]
	switch {
	case !ok:
		return nil
	case n.layer == t.layer:
		return refuse(errs.Invalid, name, RuleDuplicate, "stands in the archive twice")
	default:
		return t.drop(name)
	}
}

func (t *Target) made(name string, k Kind, err error) error {
	if err != nil {
		return t.fault(name, err)
	}
	t.nodes[name] = node{kind: k, layer: t.layer}
	return nil
}

// fault sorts errors of the file system: a name that it cannot take is the archive's fault.
func (t *Target) fault(name string, err error) error {
	if errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EILSEQ) {
		return refuse(errs.Invalid, name, RuleName, "has a name that the file system does not take")
	}
	reason := errors.New("the file system refuses it")
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		reason = e
	}
	return errs.Wrap(errs.Unavailable, reason, "entry %q cannot be unpacked", short(name))
}

// Whiteout removes what earlier layers brought under a name.
func (t *Target) Whiteout(ctx context.Context, name string) error {
	n, ok := t.nodes[name]
	switch {
	case name == "." || ok && n.layer == t.layer && n.kind == Directory:
		return t.Opaque(ctx, name)
	case ok && n.layer != t.layer:
		return t.drop(name)
	default:
		return nil
	}
}

// Opaque removes what earlier layers brought into a directory.
func (t *Target) Opaque(ctx context.Context, dir string) error {
	if dir != "." && t.nodes[dir].kind != Directory {
		return nil
	}
	return fs.WalkDir(t.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil || name == dir:
			return err
		}
		if t.nodes[name].layer == t.layer {
			return nil
		}
		if err := t.drop(name); err != nil {
			return err
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
}

// drop removes an entry and what is below it.
func (t *Target) drop(name string) error {
	if t.nodes[name].kind != Directory {
		delete(t.nodes, name)
		return t.removed(name, t.root.Remove(name))
	}
	err := fs.WalkDir(t.FS(), name, func(below string, _ fs.DirEntry, err error) error {
		delete(t.nodes, below)
		return err
	})
	if err == nil {
		err = t.root.RemoveAll(name)
	}
	return t.removed(name, err)
}

func (t *Target) removed(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("remove %s of an earlier layer: %w", short(name), err)
}
