package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/dir"
)

const (
	// objectCache is the memory for objects of a pack that others are made of.
	objectCache = 16 << 20
	// largeObject is the size from which an object is read as a stream. What is a difference to another one
	// must not be: the library would read that one anew for each step back.
	largeObject = MaxResolved
)

// local is a repository on disk.
type local struct{ *filesystem.Storage }

// openLocal opens a bare repository, or the one in a work tree. One that borrows objects from another
// is refused: that other may lie anywhere.
func openLocal(path string) (repository, error) {
	if info, err := os.Stat(filepath.Join(path, ".git")); err == nil && info.IsDir() {
		path = filepath.Join(path, ".git")
	}
	for _, name := range []string{"HEAD", "objects"} {
		if _, err := os.Stat(filepath.Join(path, name)); err != nil {
			return nil, errs.New(errs.NotFound, "it is no git repository: %s: %s", name, dir.Reason(err))
		}
	}
	if _, err := os.Stat(filepath.Join(path, "objects", "info", "alternates")); err == nil {
		return nil, errs.New(errs.Invalid,
			"it borrows objects from another repository; repack it with git repack -a -d and remove "+
				"objects/info/alternates")
	}
	return local{openStorage(path)}, nil
}

func openStorage(path string) *filesystem.Storage {
	return filesystem.NewStorageWithOptions(osfs.New(path, osfs.WithBoundOS()), cache.NewObjectLRU(objectCache),
		filesystem.Options{LargeObjectThreshold: largeObject})
}

func (l local) close() error { return l.Storage.Close() }

func (l local) find(_ context.Context, reference string) (pointer, error) {
	refs := references{hashes: map[string]plumbing.Hash{}, peeled: map[string]plumbing.Hash{}}
	list, err := l.IterReferences()
	if err != nil {
		return pointer{}, errs.Wrap(errs.Invalid, err, "its references cannot be read")
	}
	err = list.ForEach(func(r *plumbing.Reference) error {
		if r.Type() == plumbing.HashReference {
			refs.hashes[r.Name().String()] = r.Hash()
		}
		return nil
	})
	if err != nil {
		return pointer{}, errs.Wrap(errs.Invalid, err, "its references cannot be read")
	}
	if head, err := storer.ResolveReference(l, plumbing.HEAD); err == nil {
		refs.head = head.Hash()
	}
	p, err := refs.find(reference)
	if err != nil {
		return p, err
	}
	p.commit, err = peel(l, p.want)
	return p, err
}

// peel follows tags to the commit that they name.
func peel(objects storer.EncodedObjectStorer, h plumbing.Hash) (plumbing.Hash, error) {
	const most = 10 // tags of tags
	for range most {
		tag, err := object.GetTag(objects, h)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			break
		}
		if err != nil {
			return h, errs.Wrap(errs.Invalid, err, "tag %s cannot be read", h)
		}
		h = tag.Target
	}
	if _, err := object.GetCommit(objects, h); err != nil {
		return h, errs.New(errs.NotFound, "it has no commit %s", h)
	}
	return h, nil
}

func (l local) objects(context.Context, pointer) (storer.EncodedObjectStorer, func() error, error) {
	return l, func() error { return nil }, nil
}
