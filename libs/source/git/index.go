package git

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"os"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/internal/web"
)

const (
	// MaxResolved bounds what is held in memory as a whole: commits, trees, tags, and every object that is
	// stored as a difference to another one, with that other one. The largest real tree has 1 MB, catalogs
	// of a package some MB. Files that are stored by themselves, as large ones should be, are streams.
	MaxResolved = 32 << 20
	// maxChain bounds the differences of one object to another, to another …, which are held together when
	// it is read: git makes chains of 50 at most.
	maxChain = 4 * MaxResolved
	// maxDepth is how long git itself lets such a chain be.
	maxDepth = 4095
	// maxBases bounds the objects that are kept since others are made of them.
	maxBases = 3 * MaxResolved
)

// packed is an object of a pack.
type packed struct {
	offset, size int64
	words        int64 // bytes of the difference, 0 for an object that is stored by itself
	chain        int64 // the same with those that it is a difference to
	depth        int
	crc          uint32
	kind         plumbing.ObjectType // of its content
	hash         plumbing.Hash
	base         *packed
	kids         []*packed
}

// indexer finds out the names of all objects of a pack, with little memory and until its context ends. The
// library's own holds every object in memory as a whole, and a pack of some hundred KB may unfold to
// gigabytes.
type indexer struct {
	s     Source
	scan  *packfile.Scanner
	all   []*packed
	named map[plumbing.Hash][]*packed // differences to an object of which the name alone is known yet
	open  int                         // differences that are not resolved yet
	total int64

	bases map[*packed][]byte
	order []*packed // of bases, oldest first
	held  int
}

// index checks a pack, and writes its index.
func (s Source) index(ctx context.Context, pack, to *os.File) (plumbing.Hash, error) {
	x := &indexer{
		s: s, scan: packfile.NewScanner(pack), named: map[plumbing.Hash][]*packed{},
		bases: map[*packed][]byte{},
	}
	err := x.read(ctx)
	var sum plumbing.Hash
	if err == nil {
		if sum, err = x.scan.Checksum(); err != nil {
			err = unreadable(err)
		}
	}
	if err == nil {
		err = x.resolve(ctx)
	}
	if err != nil {
		return sum, err
	}
	slices.SortFunc(x.all, func(a, b *packed) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	w := &idxfile.Writer{}
	for i, o := range x.all {
		if i > 0 && x.all[i-1].hash == o.hash { // one of the two could be a difference to the other, without end
			return sum, errs.New(errs.Invalid, "the server sends a pack that holds object %s twice", o.hash)
		}
		w.Add(o.hash, uint64(o.offset), o.crc)
	}
	err = w.OnFooter(sum)
	if err == nil {
		var idx *idxfile.MemoryIndex
		if idx, err = w.Index(); err == nil {
			_, err = idxfile.NewEncoder(to).Encode(idx)
		}
	}
	return sum, errs.Wrap(errs.Internal, err, "write the index of a pack")
}

// unreadable is the error for a pack that is none.
func unreadable(err error) error {
	return errs.New(errs.Invalid, "the server sends a pack that cannot be read: %s", web.Explain(err))
}

// alive ends a copy with its context.
type alive struct {
	ctx context.Context
	w   io.Writer
}

func (a alive) Write(p []byte) (int, error) {
	if a.ctx.Err() != nil {
		return 0, context.Cause(a.ctx)
	}
	return a.w.Write(p)
}

// read goes through the pack once: it names what is stored by itself, and adds up what all objects would
// unfold to, without unfolding them.
func (x *indexer) read(ctx context.Context) error {
	_, n, err := x.scan.Header()
	if err != nil {
		return unreadable(err)
	}
	if n > MaxObjects {
		return errs.New(errs.TooLarge, "the server sends %d objects, more than %d", n, MaxObjects)
	}
	for range n {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		h, err := x.scan.NextObjectHeader()
		if err != nil {
			return unreadable(err)
		}
		o := &packed{offset: h.Offset, size: h.Length, kind: h.Type}
		if h.Type.IsDelta() {
			err = x.difference(ctx, o, h)
		} else {
			err = x.whole(ctx, o)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		x.all = append(x.all, o)
	}
	return nil
}

// whole reads an object that is stored by itself.
func (x *indexer) whole(ctx context.Context, o *packed) error {
	if err := x.fits(o); err != nil {
		return err
	}
	sum := plumbing.NewHasher(o.kind, o.size)
	_, crc, err := x.scan.NextObject(alive{ctx, sum})
	if err != nil {
		return unreadable(err)
	}
	o.crc, o.hash = crc, sum.Sum()
	return nil
}

// difference reads the beginning of an object that is a difference to another one.
func (x *indexer) difference(ctx context.Context, o *packed, h *packfile.ObjectHeader) error {
	if o.words = h.Length; o.words < 0 || o.words > MaxResolved {
		return tooLargeADifference()
	}
	start := &prefix{}
	_, crc, err := x.scan.NextObject(alive{ctx, start})
	if err != nil {
		return unreadable(err)
	}
	from, size := start.sizes()
	o.crc, o.size = crc, size
	if from > MaxResolved || size > MaxResolved {
		return tooLargeADifference()
	}
	if err := x.fits(o); err != nil {
		return err
	}
	x.open++
	if h.Type == plumbing.REFDeltaObject {
		x.named[h.Reference] = append(x.named[h.Reference], o)
		return nil
	}
	i, ok := slices.BinarySearchFunc(x.all, h.OffsetReference,
		func(p *packed, at int64) int { return cmp.Compare(p.offset, at) })
	if !ok {
		return errs.New(errs.Invalid,
			"the server sends a pack that cannot be read: an object is a difference to what is none")
	}
	x.all[i].kids = append(x.all[i].kids, o)
	return nil
}

func tooLargeADifference() error {
	return errs.New(errs.TooLarge,
		"the pack stores an object of more than %d bytes as a difference, or as one to such an object; let git store "+
			"large files by themselves (core.bigFileThreshold=16m in the server's repository, then git repack -a -d "+
			"-F), or keep the catalog in an archive or an image", MaxResolved).At("", "git.MaxResolved")
}

// fits checks the size of an object, and adds it up.
func (x *indexer) fits(o *packed) error {
	l := x.s.Limits
	switch {
	case o.size < 0:
		return errs.New(errs.Invalid, "the server sends a pack that cannot be read: an object has no size")
	case o.words == 0 && o.kind != plumbing.BlobObject && o.size > MaxResolved:
		return errs.New(errs.TooLarge,
			"the pack has a %s of more than %d bytes; keep the catalog in a repository of its own", o.kind,
			MaxResolved).At("", "git.MaxResolved")
	}
	if x.total += o.size; o.size > l.EntryBytes || x.total > maxUnfolded*l.Bytes {
		return errs.New(errs.TooLarge,
			"the pack unfolds to an object of more than %d bytes, or to more than %d in all; keep the catalog in a "+
				"repository of its own", l.EntryBytes, maxUnfolded*l.Bytes)
	}
	return nil
}

// resolve names the differences, beginning with those to objects that are stored by themselves.
func (x *indexer) resolve(ctx context.Context) error {
	var next []*packed
	for _, o := range slices.Backward(x.all) {
		if o.words == 0 {
			next = append(next, o)
		}
	}
	for len(next) > 0 {
		o := next[len(next)-1]
		next = next[:len(next)-1]
		kids := slices.Concat(o.kids, x.named[o.hash])
		o.kids = nil
		delete(x.named, o.hash)
		for _, kid := range kids {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := x.name(ctx, kid, o); err != nil {
				return err
			}
			next = append(next, kid)
		}
	}
	if x.open > 0 {
		return errs.New(errs.Invalid,
			"the server sends a pack that cannot be read: %d objects are differences to what it does not hold", x.open)
	}
	return nil
}

// name resolves one difference.
func (x *indexer) name(ctx context.Context, o, base *packed) error {
	o.base, o.kind, o.chain, o.depth = base, base.kind, base.chain+o.words, base.depth+1
	if base.size > MaxResolved {
		return tooLargeADifference()
	}
	if o.chain > maxChain || o.depth > maxDepth {
		return errs.New(errs.TooLarge,
			"the pack stores an object as a chain of differences of more than %d bytes, or of more than %d of them; "+
				"let git repack -a -d -F --depth=50 make it again in the server's repository", maxChain, maxDepth).At(
			"", "git.MaxResolved")
	}
	content, err := x.content(ctx, o)
	if err != nil {
		return err
	}
	o.hash = plumbing.ComputeHash(o.kind, content)
	x.open--
	if len(o.kids) > 0 || len(x.named[o.hash]) > 0 {
		x.keep(o, content)
	}
	return nil
}

// content makes an object of the one that it is a difference to. Of a chain two objects are held.
func (x *indexer) content(ctx context.Context, o *packed) ([]byte, error) {
	var chain []*packed
	for ; o.words > 0 && x.bases[o] == nil; o = o.base {
		chain = append(chain, o)
	}
	content, ok := x.bases[o]
	if !ok {
		var err error
		if content, err = x.stored(o); err != nil {
			return nil, err
		}
		x.keep(o, content)
	}
	for _, one := range slices.Backward(chain) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		words, err := x.stored(one)
		if err != nil {
			return nil, err
		}
		if content, err = packfile.PatchDelta(content, words); err != nil {
			return nil, errs.New(errs.Invalid,
				"the server sends a pack that cannot be read: a difference fits its object not: %s", err)
		}
	}
	return content, nil
}

// stored reads what is in the pack.
func (x *indexer) stored(o *packed) ([]byte, error) {
	if _, err := x.scan.SeekObjectHeader(o.offset); err != nil {
		return nil, unreadable(err)
	}
	var b bytes.Buffer
	if _, _, err := x.scan.NextObject(&b); err != nil {
		return nil, unreadable(err)
	}
	return b.Bytes(), nil
}

// keep holds the content of an object for those that are made of it, and lets the oldest go.
func (x *indexer) keep(o *packed, content []byte) {
	x.bases[o] = content
	x.order = append(x.order, o)
	for x.held += len(content); x.held > maxBases; x.order = x.order[1:] {
		x.held -= len(x.bases[x.order[0]])
		delete(x.bases, x.order[0])
	}
}
