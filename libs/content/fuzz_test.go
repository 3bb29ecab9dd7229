package content_test

import (
	"bytes"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/content"
)

// FuzzReader reads anything as recipe and packs: it must refuse what is not sound within its limits, and
// what it does return must be what the digest says (DESIGN D10).
func FuzzReader(f *testing.F) {
	s, index := newStore(f), content.NewChunkIndex()
	for i, v := range [][]byte{text(1, 5_000), text(2, 40_000), {}} {
		r := index.Add(v, content.Split(v))
		s.take(index)
		stored := s.stored(r)
		first, second := []byte(nil), []byte(nil)
		if len(stored.Packs) > 0 {
			first = stored.Packs[0]
		}
		if len(stored.Packs) > 1 {
			second = stored.Packs[1]
		}
		f.Add(stored.Recipe, first, second, len(stored.Packs))
		f.Add([]byte(nil), bundle.Pack(v), []byte(nil), i)
	}
	f.Fuzz(func(t *testing.T, recipe, first, second []byte, n int) {
		packs := [][]byte{first, second}[:min(max(n, 0), 2)]
		got, err := content.Assemble(recipe, len(packs),
			func(i int) (content.Pack, error) { return s.reader.Unpack(packs[i]) })
		if err == nil && len(got) > content.MaxValueBytes {
			t.Fatalf("%d bytes", len(got))
		}
		raw, err := s.reader.Bundle(bundleDigest(got), content.Stored{Recipe: recipe, Packs: packs})
		if err == nil && recipe != nil && !bytes.Equal(raw, got) {
			t.Fatal("two readings differ")
		}
		p, err := s.reader.Unpack(first)
		if err == nil && p.Size() > content.MaxPackBytes {
			t.Fatalf("a pack of %d bytes", p.Size())
		}
	})
}
