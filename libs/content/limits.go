package content

import "github.com/chandler-fleet/chandler/libs/bundle"

// Sizes of chunks. Measured over 1,171 published bundles (329 MB as canonical JSON): chunks of 1 KiB
// cost 3.5 MB in packs and 0.4 MB in recipes, of 2 KiB 3.6 and 0.2 MB; but where every version comes by
// itself, its new chunks cost 9.0 MB with 1 KiB and 12.6 MB with 2 KiB. They are part of no format: other
// sizes only find less of what is stored already.
const (
	minChunk  = 256
	meanChunk = 1 << 10
	// MaxChunk bounds one chunk, for values in which no cut is found.
	MaxChunk = 8 << 10
)

// Limits on packs and recipes, which bound what reading one value can take.
const (
	// PackBytes is at how many bytes of chunks a pack is full: most packages fit into one, and it is
	// unpacked within 10 ms.
	PackBytes = 4 << 20
	// MaxPackBytes bounds an unpacked pack with its list of lengths: a chunk takes two bytes there.
	MaxPackBytes = PackBytes + MaxChunk + packedLengths
	// MaxChunks bounds the chunks of one pack; a full pack of real manifests has 3,300.
	MaxChunks = PackBytes/minChunk + 1
	// packedLengths bounds header and list of lengths.
	packedLengths = 16 + 2*MaxChunks
	// MaxSources is how many packs that were stored before a new value may draw on. Where more hold
	// something of it, half as many are taken, those that give most, and the rest is stored once more.
	MaxSources = 12
	// maxSourceBytes bounds what these packs have unpacked, for the time that reading takes.
	maxSourceBytes = 16 << 20
	// MaxValueBytes bounds a value in packs.
	MaxValueBytes = bundle.MaxBytes
	// MaxDocumentBytes bounds a package document, which may be larger than a bundle: the largest of 99 real
	// ones has 4 MB.
	MaxDocumentBytes = 64 << 20
	// MaxPacks bounds the packs of one recipe: its sources, and what the largest value fills by itself.
	MaxPacks = MaxSources + MaxValueBytes/PackBytes + 2
	// maxSpans bounds the spans of a recipe: as many as the largest value has chunks.
	maxSpans = MaxValueBytes/minChunk + 1
)
