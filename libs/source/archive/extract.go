package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Part chooses what is unpacked: From is a directory or a file in the archive, "." all of it, and To its
// place in the target.
type Part struct{ From, To string }

// Options say how an archive is read.
type Options struct {
	// Parts are what is taken; none means everything.
	Parts []Part
	// Layer reads the layer of an image instead of an archive.
	Layer bool
}

// maxWindow bounds the memory that a zstd stream may ask for: what "zstd --long" writes.
const maxWindow = 128 << 20

// Extract unpacks an archive into a target.
func Extract(ctx context.Context, r io.Reader, t *Target, o Options) error {
	if len(o.Parts) == 0 {
		o.Parts = []Part{{".", "."}}
	}
	e := &extractor{t: t, o: o, in: &input{ctx: ctx, r: r, t: t}}
	if o.Layer {
		t.NextLayer()
		e.gone, e.above = map[string]bool{}, map[string]bool{}
	}
	err := e.explain(e.run())
	if err == nil && !o.Layer {
		err = t.CountLinks(ctx)
	}
	return err
}

type extractor struct {
	t     *Target
	o     Options
	in    *input
	out   *output
	last  string          // the entry that is being read
	gone  map[string]bool // whiteouts of this layer
	above map[string]bool // entries of this layer that stand in the place of a directory above a part
}

// input counts what is read before decompression, and keeps the reader's own error apart from what
// a decoder makes of it.
type input struct {
	ctx context.Context
	r   io.Reader
	t   *Target
	n   int64
	err error
}

func (i *input) Read(p []byte) (int, error) {
	if err := i.ended(); err != nil {
		return 0, err
	}
	n, err := i.r.Read(p)
	i.n += int64(n)
	i.t.compressed += int64(n)
	if limit := i.t.limits.Compressed; i.t.compressed > limit {
		err = errs.New(errs.TooLarge, "more than %d bytes are to be read; give a smaller catalog", limit).At(
			"", RuleCompressed)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		i.err = err
	}
	return n, err
}

// ended is the error of a read that was cancelled.
func (i *input) ended() error {
	if i.ctx.Err() != nil {
		i.err = context.Cause(i.ctx)
		return i.err
	}
	return nil
}

// output counts what decompression gives, and remembers whether it ended with a block of zeros.
type output struct {
	r    io.Reader
	in   *input
	n    int64
	tail [512]byte // the last bytes
	err  error
}

func (o *output) Read(p []byte) (int, error) {
	n, err := o.r.Read(p)
	o.n += int64(n)
	if n >= len(o.tail) {
		copy(o.tail[:], p[n-len(o.tail):n])
	} else {
		copy(o.tail[:], o.tail[n:])
		copy(o.tail[len(o.tail)-n:], p[:n])
	}
	if l := o.in.t.limits; o.n > l.RatioFree && o.n/l.Ratio > o.in.n {
		o.err = errs.New(errs.TooLarge, "the archive grows by more than a factor of %d", l.Ratio).At("", RuleRatio)
		return 0, o.err
	}
	return n, err
}

func (e *extractor) run() error {
	head := bufio.NewReaderSize(e.in, 64<<10)
	body, end, err := decompress(head)
	if err != nil {
		return err
	}
	defer end()
	e.out = &output{r: body, in: e.in}
	tr := tar.NewReader(e.out)
	for {
		// A buffer may hold thousands of entries, so that Read alone would notice the end late.
		if err := e.in.ended(); err != nil {
			return err
		}
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) { // Count says it better
			return err
		}
		e.last = h.Name
		if err := e.entry(h, tr); err != nil {
			return err
		}
	}
	if !e.o.Layer && e.out.tail != [512]byte{} || e.out.n == 0 {
		return io.ErrUnexpectedEOF
	}
	// What follows the end is padding; it is read so that checksums over the whole are checked.
	_, err = io.Copy(io.Discard, e.out)
	return err
}

// decompress recognizes the format by its first bytes: names and media types may be wrong.
func decompress(r *bufio.Reader) (body io.Reader, end func(), err error) {
	magic, err := r.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(r)
		return z, func() {}, err
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}), len(magic) == 4 && magic[0]&0xf0 == 0x50 &&
		bytes.Equal(magic[1:], []byte{0x2a, 0x4d, 0x18}):
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxWindow))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	default:
		return r, func() {}, nil
	}
}

// explain turns the errors of decoders into ones with a kind, in the order of what is the true cause.
func (e *extractor) explain(err error) error {
	var kind *errs.Error
	switch {
	case err == nil:
		return nil
	case e.in.err != nil:
		if errors.As(e.in.err, &kind) {
			return e.in.err
		}
		return errs.Wrap(errs.Unavailable, e.in.err, "the transfer broke off")
	case e.out != nil && e.out.err != nil:
		return errs.New(errs.TooLarge, "entry %q: %s", short(e.last), e.out.err).At(short(e.last), RuleRatio)
	case errors.As(err, &kind):
		return err
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return errs.New(errs.TooLarge,
			"the archive asks for more than %d bytes of memory to be read; compress it with a window of at most 2^27 "+
				"bytes", maxWindow).At("", RuleRatio)
	case errors.Is(err, io.ErrUnexpectedEOF) && e.last == "":
		return errs.New(errs.Invalid, "the archive is empty, or ends before its first entry").At("", RuleTruncated)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return refuse(errs.Invalid, e.last, RuleTruncated,
			"is the last that can be read: the archive ends in the midst; make it again")
	case e.last == "":
		return errs.New(errs.Invalid, "this is neither a tar nor a tar.gz nor a tar.zst file: %s", err).At(
			"", RuleFormat)
	default:
		return refuse(errs.Invalid, e.last, RuleFormat,
			"is the last that can be read, the archive is damaged after it: %s", err)
	}
}

// entry takes one entry, or passes over it.
func (e *extractor) entry(h *tar.Header, body io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader { // the comment that git archive writes
		return nil
	}
	name, err := e.t.Count(h.Name, e.o.Layer)
	if err != nil {
		return err
	}
	if e.o.Layer {
		if done, err := e.whiteout(name); done || err != nil {
			return err
		}
	}
	at, from, ok := e.place(name)
	switch {
	case h.Typeflag != tar.TypeDir && (name == "." || at == "."):
		return refuse(errs.Invalid, name, RuleKind, "is no directory; the root of an archive, and a catalog, is one")
	case !ok && e.o.Layer && h.Typeflag != tar.TypeDir:
		return e.replaces(name)
	case !ok:
		return nil
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return e.t.AddDirectory(at)
	case tar.TypeReg:
		return e.t.AddFile(at, body)
	case tar.TypeSymlink:
		return e.t.AddLink(at, h.Linkname, e.o.Layer, from)
	case tar.TypeLink:
		to, err := e.linked(name, h.Linkname)
		if err != nil {
			return err
		}
		return e.t.AddHardLink(at, to)
	default:
		return refuse(errs.Invalid, name, RuleKind,
			"is a device, a pipe or a sparse file (type %q); a catalog has files, directories and links", h.Typeflag)
	}
}

// place returns where an entry goes, and which directory of the archive the target stands for there.
func (e *extractor) place(name string) (at, from string, ok bool) {
	for _, p := range e.o.Parts {
		if rest, ok := below(name, p.From); ok {
			from := p.From
			if p.To != "." { // links are then relative to the directory beside
				from = path.Dir(p.From)
			}
			return path.Join(p.To, rest), from, true
		}
	}
	return "", "", false
}

// below cuts a directory from a name.
func below(name, dir string) (rest string, ok bool) {
	switch dir {
	case ".":
		return name, true
	case name:
		return "", true
	default:
		return strings.CutPrefix(name, dir+"/")
	}
}

// linked returns the place of the file that a hard link names.
func (e *extractor) linked(name, to string) (string, error) {
	clean := path.Clean(strings.TrimLeft(to, "/"))
	at, _, ok := e.place(clean)
	if !ok || strings.HasPrefix(to, "/") && !e.o.Layer || clean == ".." || strings.HasPrefix(clean, "../") {
		return "", refuse(errs.Invalid, name, RuleLink,
			"is a hard link to %q, which lies outside of the directory that is read", short(to))
	}
	return at, nil
}

// Whiteouts of the image format.
const (
	whiteoutPrefix = ".wh."
	whiteoutOpaque = ".wh..wh..opq"
)

// whiteout carries out what a whiteout says of earlier layers.
func (e *extractor) whiteout(name string) (bool, error) {
	base := path.Base(name)
	if !strings.HasPrefix(base, whiteoutPrefix) {
		return false, nil
	}
	victim := strings.TrimPrefix(base, whiteoutPrefix)
	if victim == "" || victim == "." || victim == ".." {
		return true, refuse(errs.Invalid, name, RuleName, "is a whiteout that names nothing")
	}
	if e.gone[name] {
		return true, refuse(errs.Invalid, name, RuleDuplicate, "stands in the layer twice")
	}
	e.gone[name] = true
	dir := path.Dir(name)
	if base == whiteoutOpaque {
		if at, _, ok := e.place(dir); ok {
			return true, e.t.Opaque(e.in.ctx, at)
		}
		return true, e.covers(dir)
	}
	victim = path.Join(dir, victim)
	if at, _, ok := e.place(victim); ok {
		return true, e.t.Whiteout(e.in.ctx, at)
	}
	return true, e.covers(victim)
}

// replaces takes an entry that is no directory, beside the parts or above them. Each may hide a part
// once: else a few kilobytes of one name would look through all that was unpacked, for every entry.
func (e *extractor) replaces(name string) error {
	if !e.hides(name) {
		return nil
	}
	if e.above[name] {
		return refuse(errs.Invalid, name, RuleDuplicate, "stands in the layer twice")
	}
	e.above[name] = true
	return e.covers(name)
}

// hides reports whether a name is that of a directory above a part.
func (e *extractor) hides(name string) bool {
	return slices.ContainsFunc(e.o.Parts, func(p Part) bool {
		_, ok := below(p.From, name)
		return ok && p.From != name
	})
}

// covers removes the parts that an entry above them hides: a whiteout, or a file where a directory was.
func (e *extractor) covers(name string) error {
	for _, p := range e.o.Parts {
		if _, ok := below(p.From, name); ok && p.From != name {
			if err := e.t.Whiteout(e.in.ctx, p.To); err != nil {
				return err
			}
		}
	}
	return nil
}
