package git

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/archive"
)

// packing writes packs that no program would.
type packing struct {
	t testing.TB
	b bytes.Buffer
	n uint32
	w *zlib.Writer
}

// object adds an object whose content is written by parts, and returns its place.
func (p *packing) object(kind plumbing.ObjectType, size int, reference []byte, parts ...[]byte) int {
	p.t.Helper()
	at := 12 + p.b.Len()
	p.n++
	first := byte(kind)<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		p.b.WriteByte(first | 0x80)
		first = byte(size & 0x7f)
	}
	p.b.WriteByte(first)
	p.b.Write(reference)
	if p.w == nil { // one for all, and fast: else the race detector takes seconds for what is large, or many
		var err error
		if p.w, err = zlib.NewWriterLevel(nil, zlib.BestSpeed); err != nil {
			p.t.Fatal(err)
		}
	}
	p.w.Reset(&p.b)
	for _, part := range parts {
		if _, err := p.w.Write(part); err != nil {
			p.t.Fatal(err)
		}
	}
	if err := p.w.Close(); err != nil {
		p.t.Fatal(err)
	}
	return at
}

// zeros adds a blob of so many MiB.
func (p *packing) zeros(mib int) (int, plumbing.Hash) {
	part := make([]byte, 1<<20)
	parts := make([][]byte, mib)
	sum := sha1.New() // the one of plumbing also looks for collisions, which takes long
	_, _ = fmt.Fprintf(sum, "blob %d\x00", mib<<20)
	for i := range parts {
		parts[i] = part
		_, _ = sum.Write(part) // a sum takes everything
	}
	return p.object(plumbing.BlobObject, mib<<20, nil, parts...), plumbing.Hash(sum.Sum(nil))
}

// back is the way from an object to an earlier one.
func back(from, to int) []byte {
	n := from - to
	b := []byte{byte(n & 0x7f)}
	for n >>= 7; n > 0; n >>= 7 {
		n--
		b = append([]byte{byte(n&0x7f) | 0x80}, b...)
	}
	return b
}

// again is a difference that copies an object of a size, and appends text.
func again(size int, text string) []byte {
	d := binary.AppendUvarint(nil, uint64(size))
	d = binary.AppendUvarint(d, uint64(size+len(text)))
	for at := 0; at < size; {
		n := min(size-at, 0xffffff)
		d = append(d, 0xff, byte(at), byte(at>>8), byte(at>>16), byte(at>>24), byte(n), byte(n>>8), byte(n>>16))
		at += n
	}
	if text != "" {
		d = append(append(d, byte(len(text))), text...)
	}
	return d
}

func (p *packing) differs(from int, d []byte) int {
	return p.object(plumbing.OFSDeltaObject, len(d), back(12+p.b.Len(), from), d)
}

// encoded adds a tree or a commit.
func (p *packing) encoded(o interface {
	Encode(plumbing.EncodedObject) error
},
) plumbing.Hash {
	p.t.Helper()
	m := &plumbing.MemoryObject{}
	if err := o.Encode(m); err != nil {
		p.t.Fatal(err)
	}
	r, err := m.Reader()
	if err != nil {
		p.t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		p.t.Fatal(err)
	}
	p.object(m.Type(), len(b), nil, b)
	return m.Hash()
}

// commit adds a commit of files.
func (p *packing) commit(files map[string]plumbing.Hash) plumbing.Hash {
	tree := &object.Tree{}
	for _, name := range []string{"a", "b", "c"} {
		if h, ok := files[name]; ok {
			tree.Entries = append(tree.Entries, object.TreeEntry{Name: name, Mode: filemode.Regular, Hash: h})
		}
	}
	who := object.Signature{Name: "x", Email: "x@dock.test", When: time.Unix(1, 0)}
	return p.encoded(&object.Commit{TreeHash: p.encoded(tree), Author: who, Committer: who})
}

func (p *packing) bytes() []byte {
	out := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("PACK"), 2), p.n)
	out = append(out, p.b.Bytes()...)
	sum := sha1.Sum(out)
	return append(out, sum[:]...)
}

// TestHeapOfLargeFile proves that a large file that is stored by itself takes no memory, and is read
// (issue: hostile input: what a small pack unfolds to).
func TestHeapOfLargeFile(t *testing.T) { //nolint:paralleltest // it measures what is allocated
	const mib = 96
	p := &packing{t: t}
	_, blob := p.zeros(mib)
	commit := p.commit(map[string]plumbing.Hash{"a": blob})
	pack := p.bytes()
	s := Source{Temp: t.TempDir(), Limits: archive.Standard()}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	objects, done, err := s.store(t.Context(), bytes.NewReader(pack))
	if err != nil {
		t.Fatal(err)
	}
	tree, _, err := s.checkout(t.Context(), objects, pointer{want: commit})
	if err = errors.Join(err, done()); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > mib/4 {
		t.Errorf("a pack of %d bytes had %d MiB allocated", len(pack), got)
	}
	info, err := fs.Stat(tree.FS(), "a")
	if err != nil || info.Size() != mib<<20 {
		t.Errorf("%v, %v", info, err)
	}
	if err := tree.Close(); err != nil {
		t.Error(err)
	}
}

// TestDifferences proves that differences are followed, to objects before and after them, one to another,
// also of large files.
func TestDifferences(t *testing.T) {
	t.Parallel()
	const size = 12 << 20
	zero := make([]byte, size)
	hash := func(tail string) plumbing.Hash {
		return plumbing.ComputeHash(plumbing.BlobObject, slices.Concat(zero, []byte(tail)))
	}
	p := &packing{t: t}
	first := again(size+1, "y") // to what comes later, itself a difference
	known := hash("x")
	p.object(plumbing.REFDeltaObject, len(first), known[:], first)
	at, base := p.zeros(size >> 20)
	p.differs(at, again(size, "x"))
	commit := p.commit(map[string]plumbing.Hash{"a": base, "b": hash("x"), "c": hash("xy")})
	s := Source{Temp: t.TempDir(), Limits: archive.Standard()}
	objects, done, err := s.store(t.Context(), bytes.NewReader(p.bytes()))
	if err != nil {
		t.Fatal(err)
	}
	tree, _, err := s.checkout(t.Context(), objects, pointer{want: commit})
	if err = errors.Join(err, done()); err != nil {
		t.Fatal(err)
	}
	for name, tail := range map[string]string{"a": "", "b": "x", "c": "xy"} {
		if got, err := fs.ReadFile(tree.FS(), name); err != nil ||
			!bytes.Equal(got, slices.Concat(zero, []byte(tail))) {
			t.Errorf("%s has %d bytes, %v", name, len(got), err)
		}
	}
	if err := tree.Close(); err != nil {
		t.Error(err)
	}
}

// TestHostilePacks proves that nothing is resolved that would take much memory, or has no end.
func TestHostilePacks(t *testing.T) {
	t.Parallel()
	const large = MaxResolved >> 20
	self := plumbing.ComputeHash(plumbing.BlobObject, []byte("text"))
	for name, c := range map[string]struct {
		pack func(p *packing)
		kind errs.Kind
		says string
	}{
		"a large base": {func(p *packing) {
			at, _ := p.zeros(large + 1)
			p.differs(at, again((large+1)<<20, ""))
		}, errs.TooLarge, "core.bigFileThreshold"},
		"a large base that is denied": {func(p *packing) {
			at, _ := p.zeros(large + 1)
			p.differs(at, again(4, "x"))
		}, errs.TooLarge, "core.bigFileThreshold"},
		"a large result": {func(p *packing) {
			at, _ := p.zeros(large)
			p.differs(at, again(large<<20, "x"))
		}, errs.TooLarge, "core.bigFileThreshold"},
		"large words": {func(p *packing) {
			at := p.object(plumbing.BlobObject, 4, nil, []byte("text"))
			p.object(plumbing.OFSDeltaObject, MaxResolved+1, back(12+p.b.Len(), at), []byte{4, 4})
		}, errs.TooLarge, "core.bigFileThreshold"},
		"a large tree": {
			func(p *packing) { p.object(plumbing.TreeObject, MaxResolved+1, nil) }, errs.TooLarge,
			"a tree of more than",
		},
		"a large commit": {
			func(p *packing) { p.object(plumbing.CommitObject, MaxResolved+1, nil) }, errs.TooLarge,
			"a commit of more than",
		},
		"a large tag": {
			func(p *packing) { p.object(plumbing.TagObject, MaxResolved+1, nil) }, errs.TooLarge,
			"a tag of more than",
		},
		"a base not here": {
			func(p *packing) { p.object(plumbing.REFDeltaObject, 4, make([]byte, 20), again(4, "")) },
			errs.Invalid, "cannot be read",
		},
		"a base that is none": {func(p *packing) {
			at := p.object(plumbing.BlobObject, 4, nil, []byte("text"))
			p.differs(at+1, again(4, ""))
		}, errs.Invalid, "to what is none"},
		"one that fits not": {func(p *packing) {
			at := p.object(plumbing.BlobObject, 4, nil, []byte("text"))
			p.differs(at, again(5, ""))
		}, errs.Invalid, "fits its object not"},
		"a difference to itself": {func(p *packing) {
			d := again(4, "")
			p.object(plumbing.REFDeltaObject, len(d), self[:], d)
			p.object(plumbing.BlobObject, 4, nil, []byte("text"))
		}, errs.Invalid, "twice"},
		"a long chain": {func(p *packing) {
			at := p.object(plumbing.BlobObject, 4, nil, []byte("text"))
			for i := range maxDepth + 1 {
				at = p.differs(at, again(4+i, "x"))
			}
		}, errs.TooLarge, "chain of differences"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &packing{t: t}
			c.pack(p)
			s := Source{Temp: t.TempDir(), Limits: archive.Standard()}
			_, _, err := s.store(t.Context(), bytes.NewReader(p.bytes()))
			if !errs.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %s with %q", err, c.kind, c.says)
			}
			if left, err := os.ReadDir(s.Temp); err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// TestLookEnds proves that a pack is looked through no longer than its look lasts.
func TestLookEnds(t *testing.T) {
	t.Parallel()
	p := &packing{t: t}
	at, _ := p.zeros(1)
	p.differs(at, again(1<<20, "x"))
	s := Source{Temp: t.TempDir(), Limits: archive.Standard()}
	name := s.Temp + "/pack"
	if err := os.WriteFile(name, p.bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	enough := errs.New(errs.Unavailable, "enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	if _, err := s.index(ctx, f, nil); !errors.Is(err, enough) {
		t.Errorf("a look that ended gives %v", err)
	}
}
