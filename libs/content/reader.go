package content

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash/crc32"

	"github.com/klauspost/compress/zstd"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// Stored is one row of content: either a recipe with its packs, in the order of Recipe.Packs, or the value
// under one zstd frame, as rows before docs/adr/0009 are and values that are too large for packs.
type Stored struct {
	Whole  []byte
	Recipe []byte
	Packs  [][]byte
}

// Reader reads values. It may be used from several goroutines.
type Reader struct{ *Unpacker }

// NewReader returns a reader. Close gives its memory back.
func NewReader() *Reader { return &Reader{NewUnpacker()} }

// Bundle returns the canonical bundle of a digest.
func (r *Reader) Bundle(d digest.Digest, s Stored) ([]byte, error) {
	return r.read(bundle.Type, d, s, MaxValueBytes)
}

// Document returns the canonical JSON of a digest under a type name, such as a package document.
func (r *Reader) Document(typ string, d digest.Digest, s Stored) ([]byte, error) {
	return r.read(typ, d, s, MaxDocumentBytes)
}

func (r *Reader) read(typ string, d digest.Digest, s Stored, limit int) ([]byte, error) {
	raw, err := r.value(s, limit)
	if err != nil {
		return nil, errs.Wrap(errs.KindOf(err), err, "content %s", d.Short())
	}
	h := sha256.New()
	h.Write([]byte(typ + "\n"))
	h.Write(raw)
	if got := digest.FromSum(h.Sum(nil)); got != d {
		return nil, errs.New(errs.Internal, "the content stored as %s has the digest %s", d, got)
	}
	return raw, nil
}

func (r *Reader) value(s Stored, limit int) ([]byte, error) {
	switch {
	case s.Recipe == nil && len(s.Whole) == 0:
		return nil, errs.New(errs.Invalid, "there is neither a recipe nor a value").At("", "content.Recipe")
	case s.Recipe == nil:
		return decompress(s.Whole, limit)
	case len(s.Packs) > MaxPacks:
		return nil, errs.New(errs.TooLarge, "a recipe names %d packs, more than %d", len(s.Packs), MaxPacks).At(
			"", "content.MaxPacks")
	}
	return Assemble(s.Recipe, len(s.Packs), func(i int) (Pack, error) { return r.Unpack(s.Packs[i]) })
}

// Decompress reads a value that was stored under one zstd frame, at most MaxValueBytes of it.
func Decompress(whole []byte) ([]byte, error) { return decompress(whole, MaxValueBytes) }

// decompress reads a value under one zstd frame, with a decoder of its own: there are few of these.
func decompress(whole []byte, limit int) ([]byte, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(limit)),
		zstd.WithDecoderMaxWindow(MaxValueBytes))
	if err != nil {
		panic("zstd options are constants: " + err.Error())
	}
	defer dec.Close()
	raw, err := dec.DecodeAll(whole, nil)
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err, zstd.ErrWindowSizeExceeded):
		return nil, errs.New(errs.TooLarge, "it unpacks to more than %d bytes", limit).At("", "content.MaxValueBytes")
	case err != nil:
		return nil, errs.New(errs.Invalid, "it is not zstd: %v", err).At("", "content.Pack")
	}
	return raw, nil
}

// Assemble makes a value of its recipe. It asks for each pack once, in order, and keeps none.
func Assemble(recipe []byte, packs int, unpacked func(i int) (Pack, error)) ([]byte, error) {
	r, err := parseRecipe(recipe, packs)
	if err != nil {
		return nil, err
	}
	if r.size == 0 && len(r.spans) == 0 {
		return []byte{}, nil
	}
	spans := make([][]int, packs) // by pack, so that one is in memory at a time
	for i, s := range r.spans {
		spans[s.pack] = append(spans[s.pack], i)
	}
	parts := make([][]byte, len(r.spans))
	for n, list := range spans {
		p, err := unpacked(n)
		if err != nil {
			return nil, err
		}
		if err := r.take(p, list, parts, packs == 1); err != nil {
			return nil, err
		}
	}
	return r.join(parts)
}

// take fills in the parts that come from one pack. Of several packs they are copied, so that no more than
// one pack is in memory.
func (r Recipe) take(p Pack, list []int, parts [][]byte, alone bool) error {
	for _, i := range list {
		part, ok := p.span(r.spans[i].first, r.spans[i].count)
		if !ok {
			return errs.New(errs.Invalid, "a recipe names chunks %d to %d of a pack of %d", r.spans[i].first,
				r.spans[i].first+r.spans[i].count-1, p.Chunks()).
				At("", "content.Recipe")
		}
		if alone {
			parts[i] = part
			continue
		}
		parts[i] = bytes.Clone(part)
	}
	return nil
}

func (r Recipe) join(parts [][]byte) ([]byte, error) {
	total := 0
	for _, p := range parts {
		total += len(p)
		if total > r.size {
			break
		}
	}
	if total != r.size {
		return nil, errs.New(errs.Invalid, "the chunks of a recipe have not the %d bytes that it promises", r.size).At(
			"", "content.Recipe")
	}
	value := make([]byte, 0, r.size)
	for _, p := range parts {
		value = append(value, p...)
	}
	if crc32.Checksum(value, castagnoli) != r.sum {
		return nil, errs.New(errs.Invalid, "the chunks of a recipe do not have the sum that it promises").At(
			"", "content.Recipe")
	}
	return value, nil
}
