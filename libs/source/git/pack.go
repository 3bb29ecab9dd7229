package git

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/internal/web"
)

const (
	// MaxObjects bounds the objects of a pack: the files and directories of a catalog, and the history
	// where a server gives nothing less.
	MaxObjects = 2_000_000
	// maxUnfolded is how often the bytes of all objects may exceed those of the files that are wanted:
	// history holds them many times over.
	maxUnfolded = 8
)

// store receives a pack, looks it through, and makes its objects readable until done.
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
	f, err := os.Create(filepath.Join(temp, "received.pack"))
	if err != nil {
		return nil, nil, errs.Wrap(errs.Internal, err, "write a pack")
	}
	defer func() { _ = f.Close() }() // it is removed with the rest
	if err := s.receive(ctx, f, pack); err != nil {
		return nil, nil, err
	}
	if err := s.inspect(f); err != nil {
		return nil, nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, nil, errs.Wrap(errs.Internal, err, "read a pack")
	}
	objects := openStorage(temp)
	if err := packfile.UpdateObjectStorage(objects, f); err != nil {
		return nil, nil, errs.New(errs.Invalid, "the server sends a pack that cannot be read: %s", err)
	}
	return objects, func() error { return errors.Join(objects.Close(), os.RemoveAll(temp)) }, nil
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
		return errs.New(errs.TooLarge, "the server sends more than %d bytes; keep the catalog in a repository of its own", s.Limits.Compressed)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return errs.Wrap(errs.Internal, err, "read a pack")
	}
	return nil
}

// inspect adds up what the objects of a pack would unfold to, without unfolding them.
func (s Source) inspect(f *os.File) error {
	scan := packfile.NewScanner(f)
	_, n, err := scan.Header()
	if err != nil {
		return errs.New(errs.Invalid, "the server sends a pack that cannot be read: %s", web.Explain(err))
	}
	if n > MaxObjects {
		return errs.New(errs.TooLarge, "the server sends %d objects, more than %d", n, MaxObjects)
	}
	var total int64
	for range n {
		h, err := scan.NextObjectHeader()
		if err != nil {
			return errs.New(errs.Invalid, "the server sends a pack that cannot be read: %s", web.Explain(err))
		}
		size := h.Length
		start := &prefix{}
		if size >= 0 && size <= s.Limits.EntryBytes {
			if _, _, err := scan.NextObject(start); err != nil {
				return errs.New(errs.Invalid, "the server sends a pack that cannot be read: %s", web.Explain(err))
			}
			if h.Type == plumbing.OFSDeltaObject || h.Type == plumbing.REFDeltaObject {
				size = start.target()
			}
		}
		if size < 0 {
			return errs.New(errs.Invalid, "the server sends a pack that cannot be read: an object has no size")
		}
		if total += size; size > s.Limits.EntryBytes || total > maxUnfolded*s.Limits.Bytes {
			return errs.New(errs.TooLarge, "the pack unfolds to an object of more than %d bytes, or to more than %d in all; keep the catalog in a repository of its own", s.Limits.EntryBytes, maxUnfolded*s.Limits.Bytes)
		}
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

// target is the size of what a delta makes: the second of its two leading numbers; -1 where it is none.
func (p *prefix) target() int64 {
	_, i := binary.Uvarint(p.b[:p.n])
	if i <= 0 {
		return -1
	}
	size, j := binary.Uvarint(p.b[i:p.n])
	if j <= 0 || size > 1<<62 {
		return -1
	}
	return int64(size)
}
