package content_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/content"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// store plays the one who keeps packs and recipes.
type store struct {
	packer *content.Packer
	reader *content.Reader
	packs  map[int][]byte // by number of the index
}

func newStore(t testing.TB) *store {
	t.Helper()
	s := &store{packer: content.NewPacker(1), reader: content.NewReader(), packs: map[int][]byte{}}
	t.Cleanup(s.reader.Close)
	return s
}

func (s *store) take(index *content.ChunkIndex) {
	for _, p := range index.Take() {
		s.packs[p.Number] = s.packer.Pack(p.Raw)
	}
}

func (s *store) stored(r content.Recipe) content.Stored {
	out := content.Stored{Recipe: r.Encode(), Packs: [][]byte{}}
	for _, n := range r.Packs() {
		out.Packs = append(out.Packs, s.packs[n])
	}
	return out
}

func (s *store) read(t testing.TB, r content.Recipe, value []byte) {
	t.Helper()
	got, err := s.reader.Bundle(bundleDigest(value), s.stored(r))
	if err != nil || !bytes.Equal(got, value) {
		t.Fatalf("read %d bytes, want %d: %v", len(got), len(value), err)
	}
}

func bundleDigest(value []byte) digest.Digest {
	return digest.Bytes(append([]byte(bundle.Type+"\n"), value...))
}

// text makes bytes that look like manifests: words in an order that the seed decides.
func text(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, 0, n+16)
	for len(b) < n {
		b = fmt.Appendf(b, `"key%d":%d,`, r.IntN(5000), r.IntN(1000))
	}
	return b[:n]
}

// TestValuesComeBack proves that whatever is put into an index comes back byte for byte, in one process or
// after the index was learned again from its packs (DESIGN D3).
func TestValuesComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := newStore(t)
		index := content.NewChunkIndex()
		var values [][]byte
		var stored []content.Stored
		base := text(rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(0, 60_000).Draw(rt, "size"))
		for range rapid.IntRange(1, 8).Draw(rt, "versions") {
			at := rapid.IntRange(0, len(base)).Draw(rt, "at")
			base = slices.Concat(base[:at], rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(rt, "new"),
				base[min(at+rapid.IntRange(0, 500).Draw(rt, "gone"), len(base)):])
			r := index.Add(base, content.Split(base))
			if r.Size() != len(base) {
				rt.Fatalf("size %d, want %d", r.Size(), len(base))
			}
			s.take(index)
			values, stored = append(values, base), append(stored, s.stored(r))
			if rapid.Bool().Draw(rt, "again") { // another process: the index from its packs
				index = s.relearn(rt, index)
			}
		}
		for i, v := range values {
			if got, err := s.reader.Bundle(bundleDigest(v), stored[i]); err != nil || !bytes.Equal(got, v) {
				rt.Fatalf("value %d: %d bytes, want %d: %v", i, len(got), len(v), err)
			}
		}
	})
}

func (s *store) relearn(t interface{ Fatal(args ...any) }, was *content.ChunkIndex) *content.ChunkIndex {
	now, chunks := content.NewChunkIndex(), was.Chunks()
	packs := map[int][]byte{}
	numbers := make([]int, 0, len(s.packs))
	for n := range s.packs {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		p, err := s.reader.Unpack(s.packs[n])
		if err != nil {
			t.Fatal(err)
		}
		packs[now.Learn(p)] = s.packs[n]
	}
	if now.Chunks() != chunks {
		t.Fatal("the index learned", now.Chunks(), "chunks of", chunks)
	}
	s.packs = packs
	return now
}

// TestSuccessorsCostLittle proves what the form is for: the second of two near-identical values costs
// its new chunks.
func TestSuccessorsCostLittle(t *testing.T) {
	t.Parallel()
	s, index := newStore(t), content.NewChunkIndex()
	first := text(1, 1<<20)
	second := slices.Concat([]byte("a new beginning "), first[:500_000], []byte(" and a line in the middle "),
		first[500_000:])
	r1 := index.Add(first, content.Split(first))
	s.take(index)
	r2 := index.Add(second, content.Split(second))
	if n := index.Pending(); n == 0 || n > 3*content.MaxChunk {
		t.Errorf("the successor brings %d new bytes", n)
	}
	s.take(index)
	s.read(t, r1, first)
	s.read(t, r2, second)
	if n := len(r2.Encode()); n > 64 {
		t.Errorf("the recipe of the successor has %d bytes", n)
	}
}

// TestReadingIsBounded proves that a value draws on few packs, however many hold something of it.
func TestReadingIsBounded(t *testing.T) {
	t.Parallel()
	s, index := newStore(t), content.NewChunkIndex()
	var all []byte
	for i := range 60 {
		part := text(uint64(i)+100, 40_000)
		index.Add(part, content.Split(part))
		s.take(index)
		all = append(all, part...)
	}
	r := index.Add(all, content.Split(all))
	s.take(index)
	if n := len(r.Packs()); n > content.MaxSources+1 {
		t.Errorf("the value draws on %d packs", n)
	}
	s.read(t, r, all)
	r = index.Add(all, content.Split(all))
	if n := index.Pending(); n != 0 {
		t.Errorf("what was stored once more is stored a third time: %d bytes", n)
	}
	s.read(t, r, all)
}

// TestLargeValue proves that a value of the greatest size fills several packs, none larger than it may be.
func TestLargeValue(t *testing.T) {
	t.Parallel()
	s, index := newStore(t), content.NewChunkIndex()
	value := make([]byte, content.MaxValueBytes)
	r := rand.NewChaCha8([32]byte{1})
	for i := 0; i < len(value); i += 8 {
		binary.LittleEndian.PutUint64(value[i:], r.Uint64())
	}
	recipe := index.Add(value, content.Split(value))
	s.take(index)
	if n := len(recipe.Packs()); n < content.MaxValueBytes/content.PackBytes || n > content.MaxPacks {
		t.Errorf("%d packs", n)
	}
	s.read(t, recipe, value)
}

// TestOldForm proves that a bundle stored under one frame is still read.
func TestOldForm(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	value := text(3, 10_000)
	if got, err := s.reader.Bundle(bundleDigest(value), content.Stored{Whole: bundle.Pack(value)}); err != nil ||
		!bytes.Equal(got, value) {
		t.Errorf("read %d bytes: %v", len(got), err)
	}
}

// TestRefusals proves that what does not fit together is refused with a reason, never returned.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s, index := newStore(t), content.NewChunkIndex()
	value := text(4, 100_000)
	r := index.Add(value, content.Split(value))
	s.take(index)
	good := s.stored(r)
	other := content.NewChunkIndex()
	foreign := text(5, 100_000)
	other.Add(foreign, content.Split(foreign))
	foreignPack := s.packer.Pack(other.Take()[0].Raw)
	bomb := bundle.Pack(make([]byte, content.MaxPackBytes+1))
	cases := map[string]struct {
		stored content.Stored
		digest digest.Digest
		kind   errs.Kind
		says   string
	}{
		"another digest": {good, bundleDigest(foreign), errs.Internal, "has the digest"},
		"nothing":        {content.Stored{}, bundleDigest(value), errs.Invalid, "neither"},
		"empty recipe": {
			content.Stored{Recipe: []byte{}, Packs: good.Packs},
			bundleDigest(value),
			errs.Invalid, "version",
		},
		"recipe of a later version": {
			content.Stored{Recipe: append([]byte{9}, good.Recipe[1:]...), Packs: good.Packs},
			bundleDigest(value), errs.Invalid, "version",
		},
		"short recipe": {
			content.Stored{Recipe: good.Recipe[:len(good.Recipe)-1], Packs: good.Packs},
			bundleDigest(value), errs.Invalid, "recipe",
		},
		"long recipe": {
			content.Stored{Recipe: append(slices.Clone(good.Recipe), 0), Packs: good.Packs},
			bundleDigest(value), errs.Invalid, "behind its end",
		},
		"no pack": {
			content.Stored{Recipe: good.Recipe},
			bundleDigest(value), errs.Invalid,
			"names no chunks",
		},
		"a pack of another": {
			content.Stored{Recipe: good.Recipe, Packs: [][]byte{foreignPack}},
			bundleDigest(value), errs.Invalid, "recipe",
		},
		"a pack cut short": {
			content.Stored{Recipe: good.Recipe, Packs: [][]byte{good.Packs[0][:100]}},
			bundleDigest(value), errs.Invalid, "zstd",
		},
		"a bomb": {
			content.Stored{Recipe: good.Recipe, Packs: [][]byte{bomb}},
			bundleDigest(value),
			errs.TooLarge, "more than",
		},
		"too many packs": {
			content.Stored{Recipe: good.Recipe, Packs: make([][]byte, content.MaxPacks+1)},
			bundleDigest(value), errs.TooLarge, "packs",
		},
		"a whole that is no zstd": {content.Stored{Whole: []byte("{}")}, bundleDigest(value), errs.Invalid, "zstd"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := s.reader.Bundle(c.digest, c.stored)
			if got != nil || !errs.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%d bytes, %v (%s), want %s saying %q", len(got), err, errs.KindOf(err), c.kind, c.says)
			}
		})
	}
}

// TestSplitIsStable pins the cuts: with others nothing that is stored would be found again.
func TestSplitIsStable(t *testing.T) {
	t.Parallel()
	chunks := content.Split(text(6, 50_000))
	sizes := make([]int, 0, len(chunks))
	for _, c := range chunks {
		sizes = append(sizes, len(c.Data))
	}
	const want = "[883 711 1659 461 2175 616 1346 2425] 43"
	if got := fmt.Sprint(sizes[:8], len(sizes)); got != want {
		t.Errorf("cuts are %s, want %s", got, want)
	}
}
