package content

import (
	"cmp"
	"crypto/sha256"
	"hash/crc32"
	"slices"
)

// ChunkIndex is what is stored of one package, as far as a writer knows it: chunks of packs that are stored,
// and of the pack that is being filled. It is not for several goroutines at a time.
type ChunkIndex struct {
	chunks map[Sum]place
	sizes  []int // of the packs, by number
	open   *Raw  // the pack that is being filled: the last one, if any
	full   []Numbered
}

type place struct{ pack, chunk int }

// Numbered is a new pack with its number in the index.
type Numbered struct {
	Number int
	Raw
}

// NewChunkIndex returns an index that holds nothing.
func NewChunkIndex() *ChunkIndex { return &ChunkIndex{chunks: map[Sum]place{}} }

// Learn adds a pack that is stored and returns its number.
func (s *ChunkIndex) Learn(p Pack) int {
	n := s.number(p.Size())
	for i := range p.ends {
		data, _ := p.span(i, 1)
		sum := sha256.Sum256(data)
		s.chunks[Sum(sum[:len(Sum{})])] = place{n, i}
	}
	return n
}

func (s *ChunkIndex) number(size int) int {
	s.sizes = append(s.sizes, size)
	return len(s.sizes) - 1
}

// Chunks is how many chunks the index knows.
func (s *ChunkIndex) Chunks() int { return len(s.chunks) }

// Pending is how many bytes of chunks are in packs that were not taken yet.
func (s *ChunkIndex) Pending() int {
	n := 0
	for _, p := range s.full {
		n += p.Size()
	}
	if s.open != nil {
		n += s.open.Size()
	}
	return n
}

// Add puts a value in the index: its new chunks into the pack that is being filled. The recipe holds
// once the packs that it names are stored.
func (s *ChunkIndex) Add(value []byte, chunks []Chunk) Recipe {
	r := Recipe{size: len(value), sum: crc32.Checksum(value, castagnoli)}
	passed := s.passed(chunks)
	for _, c := range chunks {
		at, known := s.chunks[c.Sum]
		if !known || passed[at.pack] {
			at = s.put(c.Data)
			s.chunks[c.Sum] = at
		}
		r.spans = extend(r.spans, at)
	}
	return r
}

// extend names one more chunk.
func extend(spans []span, at place) []span {
	if n := len(spans); n > 0 {
		if s := &spans[n-1]; s.pack == at.pack && s.first+s.count == at.chunk {
			s.count++
			return spans
		}
	}
	return append(spans, span{at.pack, at.chunk, 1})
}

// passed returns the packs that a value does not draw on although they hold something of it, since it
// would take too many or too much to read it again.
func (s *ChunkIndex) passed(chunks []Chunk) map[int]bool {
	gives := map[int]int{}
	for _, c := range chunks {
		if at, ok := s.chunks[c.Sum]; ok && !s.isNew(at.pack) {
			gives[at.pack] += len(c.Data)
		}
	}
	sources := make([]int, 0, len(gives))
	bytes := 0
	for n := range gives {
		sources = append(sources, n)
		bytes += s.sizes[n]
	}
	if len(sources) <= MaxSources && bytes <= maxSourceBytes {
		return nil
	}
	// Those that give most stay, half as many as may, so that the next version does not meet the limit again;
	// of two that give the same the later one, which a successor shares more with.
	slices.SortFunc(sources, func(a, b int) int { return cmp.Or(cmp.Compare(gives[b], gives[a]), cmp.Compare(b, a)) })
	passed := map[int]bool{}
	taken, total := 0, 0
	for _, n := range sources {
		if taken == MaxSources/2 || total+s.sizes[n] > maxSourceBytes/2 {
			passed[n] = true
			continue
		}
		taken++
		total += s.sizes[n]
	}
	return passed
}

// isNew reports whether a pack is being filled now. What is full and not taken yet is treated like a
// stored one, so that a value draws on no more packs than it may.
func (s *ChunkIndex) isNew(n int) bool { return s.open != nil && n == len(s.sizes)-1 }

// put appends a chunk to the pack that is being filled.
func (s *ChunkIndex) put(data []byte) place {
	if s.open != nil && (s.open.Size()+len(data) > PackBytes || len(s.open.lengths) == MaxChunks) {
		s.close()
	}
	if s.open == nil {
		s.open = &Raw{}
		s.number(0)
	}
	at := place{len(s.sizes) - 1, len(s.open.lengths)}
	*s.open = s.open.with(data)
	return at
}

func (s *ChunkIndex) close() {
	n := len(s.sizes) - 1
	s.sizes[n] = s.open.Size()
	s.full = append(s.full, Numbered{n, *s.open})
	s.open = nil
}

// Take closes the pack that is being filled and returns all that were not taken yet. They must be stored
// before, or together with, any value that was added since the last time.
func (s *ChunkIndex) Take() []Numbered {
	if s.open != nil {
		s.close()
	}
	out := s.full
	s.full = nil
	return out
}
