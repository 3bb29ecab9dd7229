package content

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// recipeVersion begins an encoded recipe.
const recipeVersion = 1

// castagnoli is the polynomial that processors compute themselves.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// span is a row of chunks of one pack.
type span struct{ pack, first, count int }

// Recipe says of which chunks a value is made. Packs are numbers of the index that made the recipe.
type Recipe struct {
	size  int
	sum   uint32
	spans []span
}

// Size is the length of the value.
func (r Recipe) Size() int { return r.size }

// Packs returns the numbers of the packs in the order of their first use: that in which their names are
// to stand beside the encoded recipe.
func (r Recipe) Packs() []int {
	var out []int
	seen := map[int]bool{}
	for _, s := range r.spans {
		if !seen[s.pack] {
			seen[s.pack] = true
			out = append(out, s.pack)
		}
	}
	return out
}

// Encode returns the recipe for storing. In it packs are their places in Packs, and a span begins so
// many chunks behind the one before of the same pack: mostly none or few.
func (r Recipe) Encode() []byte {
	b := make([]byte, 0, 16+4*len(r.spans))
	b = append(b, recipeVersion)
	b = binary.BigEndian.AppendUint32(b, r.sum)
	b = binary.AppendUvarint(b, uint64(r.size))
	b = binary.AppendUvarint(b, uint64(len(r.spans)))
	local := map[int]int{}
	var next []int
	for _, s := range r.spans {
		n, ok := local[s.pack]
		if !ok {
			n = len(next)
			local[s.pack], next = n, append(next, 0)
		}
		b = binary.AppendUvarint(b, uint64(n))
		b = appendSigned(b, s.first-next[n])
		b = binary.AppendUvarint(b, uint64(s.count))
		next[n] = s.first + s.count
	}
	return b
}

// parseRecipe reads what Encode wrote. packs is how many stand beside it.
func parseRecipe(b []byte, packs int) (Recipe, error) {
	bad := func(why string) (Recipe, error) {
		return Recipe{}, errs.New(errs.Invalid, "a recipe %s", why).At("", "content.Recipe")
	}
	const head = 1 + crc32.Size
	if len(b) < head || b[0] != recipeVersion {
		return bad("does not begin with its version")
	}
	r := Recipe{sum: binary.BigEndian.Uint32(b[1:])}
	d := decoder{rest: b[head:]}
	r.size = d.number(MaxValueBytes)
	count := d.number(maxSpans)
	if !d.ok() || 3*count > len(d.rest) {
		return bad("has no sound size or number of spans")
	}
	r.spans = make([]span, 0, count)
	next := make([]int, packs)
	for range count {
		s := span{pack: d.number(packs - 1), first: d.signed(MaxChunks), count: 0}
		s.count = d.number(MaxChunks)
		if !d.ok() || s.pack >= packs || s.count == 0 {
			return bad("has a span that names no chunks")
		}
		s.first += next[s.pack]
		next[s.pack] = s.first + s.count
		r.spans = append(r.spans, s)
	}
	if len(d.rest) > 0 {
		return bad("has bytes behind its end")
	}
	return r, nil
}
