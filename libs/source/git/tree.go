package git

import (
	"context"
	"io"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/archive"
	"github.com/chandler-fleet/chandler/libs/source/internal/web"
)

// maxLink bounds the text of a symbolic link.
const maxLink = archive.MaxName

// checkout writes the files of a commit.
func (s Source) checkout(ctx context.Context, objects storer.EncodedObjectStorer, p pointer) (
	*archive.Target, string, error,
) {
	hash, err := peel(objects, p.want)
	if err != nil {
		return nil, "", err
	}
	commit, err := object.GetCommit(objects, hash)
	if err != nil {
		return nil, "", errs.New(errs.Invalid, "commit %s cannot be read: %s", hash, err)
	}
	root, err := s.subtree(objects, commit.TreeHash)
	if err != nil {
		return nil, "", err
	}
	t, err := archive.NewTarget(s.Temp, s.Limits)
	if err != nil {
		return nil, "", err
	}
	c := &checkout{ctx: ctx, objects: objects, t: t}
	if err = c.tree(root, "."); err == nil {
		err = t.CountLinks(ctx)
	}
	if err != nil {
		return t, "", web.About(err, "commit %s", hash)
	}
	if t.Empty() {
		return t, "", errs.New(errs.NotFound, "commit %s holds no files", hash)
	}
	return t, hash.String(), nil
}

// subtree finds the subdirectory that is wanted.
func (s Source) subtree(objects storer.EncodedObjectStorer, h plumbing.Hash) (plumbing.Hash, error) {
	sub := strings.Trim(s.Subdirectory, "/")
	if sub == "" {
		return h, nil
	}
	for part := range strings.SplitSeq(sub, "/") {
		tree, err := object.GetTree(objects, h)
		if err != nil {
			return h, errs.New(errs.Invalid, "directory %s cannot be read: %s", h, err)
		}
		found := false
		for _, e := range tree.Entries {
			if e.Name == part && e.Mode == filemode.Dir {
				h, found = e.Hash, true
			}
		}
		if !found {
			return h, errs.New(errs.NotFound, "it holds no directory %q", sub).At("/subdirectory", "")
		}
	}
	return h, nil
}

type checkout struct {
	ctx     context.Context
	objects storer.EncodedObjectStorer
	t       *archive.Target
}

// tree writes a directory. A tree may list another one any number of times, so that a few kilobytes of
// objects make billions of files: every entry is counted before it is followed.
func (c *checkout) tree(h plumbing.Hash, dir string) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	tree, err := object.GetTree(c.objects, h)
	if err != nil {
		return errs.New(errs.Invalid, "directory %q cannot be read: %s", dir, err)
	}
	for _, e := range tree.Entries {
		if e.Name == "" || strings.Contains(e.Name, "/") || e.Name == "." {
			return errs.New(errs.Invalid, "directory %q has an entry %q, which is no name", dir, e.Name).At(
				e.Name, archive.RuleName)
		}
		raw := e.Name
		if dir != "." {
			raw = dir + "/" + raw // not cleaned yet: Count refuses what is not clean
		}
		name, err := c.t.Count(raw, false)
		if err == nil {
			err = c.entry(e, path.Clean(name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checkout) entry(e object.TreeEntry, name string) error {
	switch e.Mode {
	case filemode.Dir:
		if err := c.t.AddDirectory(name); err != nil {
			return err
		}
		return c.tree(e.Hash, name)
	case filemode.Regular, filemode.Executable, filemode.Deprecated:
		return c.blob(e.Hash, name, func(r io.Reader) error { return c.t.AddFile(name, r) })
	case filemode.Symlink:
		return c.blob(e.Hash, name, func(r io.Reader) error {
			to, err := io.ReadAll(io.LimitReader(r, maxLink))
			if err != nil {
				return err
			}
			return c.t.AddLink(name, string(to), false, ".")
		})
	case filemode.Submodule: // another repository; it is not followed
		return nil
	default:
		return errs.New(errs.Invalid, "entry %q has the mode %s, which is none of a file, a directory or a link", name,
			e.Mode).At(name, archive.RuleKind)
	}
}

func (c *checkout) blob(h plumbing.Hash, name string, use func(io.Reader) error) error {
	o, err := c.objects.EncodedObject(plumbing.BlobObject, h)
	if err != nil {
		return errs.New(errs.Invalid, "entry %q cannot be read: %s", name, err).At(name, archive.RuleFormat)
	}
	r, err := o.Reader()
	if err != nil {
		return errs.New(errs.Invalid, "entry %q cannot be read: %s", name, err).At(name, archive.RuleFormat)
	}
	err = use(r)
	if cerr := r.Close(); err == nil && cerr != nil {
		err = errs.New(errs.Invalid, "entry %q cannot be read: %s", name, cerr).At(name, archive.RuleFormat)
	}
	return err
}
