package content

import "crypto/sha256"

// Sum names a chunk within an index: the first half of its SHA-256. Two chunks of one sum would take
// 2^64 trials to find, and would be noticed when the value is read.
type Sum [16]byte

// Chunk is a part of a value, which it shares its memory with.
type Chunk struct {
	Sum  Sum
	Data []byte
}

// Split cuts a value into chunks. The same bytes are cut in the same places wherever they stand, but
// for the chunk or two in which they begin.
func Split(value []byte) []Chunk {
	chunks := make([]Chunk, 0, len(value)/meanChunk+1)
	for len(value) > 0 {
		n := cut(value)
		sum := sha256.Sum256(value[:n])
		chunks = append(chunks, Chunk{Sum: Sum(sum[:len(Sum{})]), Data: value[:n:n]})
		value = value[n:]
	}
	return chunks
}

// window is how many bytes decide on a cut: each shift moves the oldest one out of the hash.
const window = 64

// cutMask takes as many of the highest bits of the hash as make one cut in meanChunk bytes. They depend
// on the whole window, the lowest only on the last few bytes.
const cutMask = uint64(meanChunk-1) << (64 - 10)

// cut returns the length of the first chunk: behind the first byte whose window hashes to zeros under
// the mask, within the bounds.
func cut(b []byte) int {
	if len(b) <= minChunk {
		return len(b)
	}
	b = b[:min(len(b), MaxChunk)]
	var h uint64
	for _, c := range b[minChunk-window : minChunk] {
		h = h<<1 + gear[c]
	}
	for i, c := range b[minChunk:] {
		h = h<<1 + gear[c]
		if h&cutMask == 0 {
			return minChunk + i + 1
		}
	}
	return len(b)
}

// gear gives every byte a random number. It must never change: with another one nothing that is
// stored would be found again.
var gear = gearTable()

func gearTable() (t [256]uint64) {
	x := uint64(0x6368616e646c6572) // "chandler"
	for i := range t {
		x += 0x9e3779b97f4a7c15 // splitmix64
		z := x
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		t[i] = z ^ z>>31
	}
	return t
}
