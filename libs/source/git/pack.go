package git

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/chandler-fleet/chandler/libs/errs"
)

const (
	// MaxObjects bounds the objects of a pack: the files and directories of a catalog, and the history
	// where a server gives nothing less.
	MaxObjects = 2_000_000
	// maxUnfolded is how often the bytes of all objects may exceed those of the files that are wanted:
	// history holds them many times over.
	maxUnfolded = 8
)

// store receives a pack, checks it, and makes its objects readable until done.
func (s Source) store(ctx context.Context, pack io.Reader) (_ storer.EncodedObjectStorer, _ func() error, err error) {
	temp, err := os.MkdirTemp(s.Temp, "git-")
	if err != nil {
		return nil, nil, errs.Wrap(errs.Internal, err, "make a directory for a git repository")
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temp))
		}
	}()
	at := filepath.Join(temp, "objects", "pack")
	if err := os.MkdirAll(at, 0o700); err != nil {
		return nil, nil, errs.Wrap(errs.Internal, err, "make a directory for a git repository")
	}
	if err := s.unpack(ctx, filepath.Join(at, "received"), pack); err != nil {
		return nil, nil, err
	}
	objects := openStorage(temp)
	return objects, func() error { return errors.Join(objects.Close(), os.RemoveAll(temp)) }, nil
}

// unpack writes a pack and its index, under the name that a repository has them.
func (s Source) unpack(ctx context.Context, at string, pack io.Reader) (err error) {
	f, err := os.Create(at + ".pack")
	if err != nil {
		return errs.Wrap(errs.Internal, err, "write a pack")
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := s.receive(ctx, f, pack); err != nil {
		return err
	}
	idx, err := os.Create(at + ".idx")
	if err != nil {
		return errs.Wrap(errs.Internal, err, "write the index of a pack")
	}
	defer func() { err = errors.Join(err, idx.Close()) }()
	sum, err := s.index(ctx, f, idx)
	if err != nil {
		return err
	}
	name := filepath.Join(filepath.Dir(at), "pack-"+sum.String())
	return errs.Wrap(errs.Internal, errors.Join(os.Rename(at+".pack", name+".pack"), os.Rename(at+".idx", name+".idx")),
		"name a pack")
}

// receive writes a pack to disk, up to the limit.
func (s Source) receive(ctx context.Context, f *os.File, pack io.Reader) error {
	n, err := io.Copy(f, io.LimitReader(pack, s.Limits.Compressed+1))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return protocol(err)
	case n > s.Limits.Compressed:
		return errs.New(errs.TooLarge,
			"the server sends more than %d bytes; keep the catalog in a repository of its own", s.Limits.Compressed)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return errs.Wrap(errs.Internal, err, "read a pack")
	}
	return nil
}

// prefix keeps the first bytes of an object.
type prefix struct {
	b [2 * binary.MaxVarintLen64]byte
	n int
}

func (p *prefix) Write(b []byte) (int, error) {
	p.n += copy(p.b[p.n:], b)
	return len(b), nil
}

// sizes are the two numbers that a difference begins with: of the object that it is one to, and of what it
// makes; -1 where there are none.
func (p *prefix) sizes() (from, to int64) {
	one, i := binary.Uvarint(p.b[:p.n])
	if i <= 0 {
		return -1, -1
	}
	two, j := binary.Uvarint(p.b[i:p.n])
	if j <= 0 || one > 1<<62 || two > 1<<62 {
		return -1, -1
	}
	return int64(one), int64(two)
}
