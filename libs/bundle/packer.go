package bundle

import "github.com/klauspost/compress/zstd"

// Packer packs many bundles as Pack does, without the several megabytes of tables that each single
// call needs anew. It may be used from several goroutines; as many pack at a time as it was made for.
type Packer struct{ w *zstd.Encoder }

// NewPacker returns a packer for so many goroutines at a time.
func NewPacker(workers int) *Packer {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(max(workers, 1)), zstd.WithWindowSize(windowBytes))
	if err != nil {
		panic("zstd options are constants: " + err.Error())
	}
	return &Packer{w: w}
}

// Pack compresses a canonical bundle for storing and sending; the result is that of the function Pack.
func (p *Packer) Pack(canonical []byte) []byte {
	return p.w.EncodeAll(canonical, make([]byte, 0, len(canonical)/8))
}
