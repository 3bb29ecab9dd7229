package bundle

import (
	"encoding/json"
	"errors"

	"github.com/klauspost/compress/zstd"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// windowBytes lets zstd find the same schema again anywhere in one bundle.
const windowBytes = 8 << 20

// Pack compresses a canonical bundle for storing and sending.
func Pack(canonical []byte) []byte {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(windowBytes))
	if err != nil {
		panic("zstd options are constants: " + err.Error())
	}
	return w.EncodeAll(canonical, make([]byte, 0, len(canonical)/8))
}

// Unpack reads what Pack wrote and returns the content with the digest of the canonical bytes, for
// the caller to compare with the one that it asked for. Memory is bounded by MaxBytes.
func Unpack(pack []byte) (Content, digest.Digest, error) {
	raw, err := decompress(pack)
	if err != nil {
		return Content{}, "", err
	}
	return FromCanonical(raw)
}

// FromCanonical reads what Canonical wrote and returns the content with its digest.
func FromCanonical(raw []byte) (Content, digest.Digest, error) {
	var c Content
	if d := depth(raw); d > MaxDepth+2 {
		return Content{}, "", errs.New(errs.TooLarge, "bundle is nested %d deep, more than %d", d, MaxDepth).At(
			"", "bundle.MaxDepth")
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return Content{}, "", errs.New(errs.Invalid, "these are not the bytes of a canonical bundle: %v", err).At(
			"", "R-CAT-51")
	}
	if len(c.Manifests) > MaxManifests {
		return Content{}, "", errs.New(errs.TooLarge, "bundle has %d manifests, more than %d", len(c.Manifests),
			MaxManifests).At("", "bundle.MaxManifests")
	}
	return c, digest.Bytes(append([]byte(Type+"\n"), raw...)), nil
}

func decompress(pack []byte) ([]byte, error) {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxBytes),
		zstd.WithDecoderMaxWindow(MaxBytes))
	if err != nil {
		panic("zstd options are constants: " + err.Error())
	}
	defer r.Close()
	raw, err := r.DecodeAll(pack, nil)
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err, zstd.ErrWindowSizeExceeded):
		return nil, errs.New(errs.TooLarge, "pack unpacks to more than %d bytes", MaxBytes).At("", "bundle.MaxBytes")
	case err != nil:
		return nil, errs.New(errs.Invalid, "pack is not zstd: %v", err).At("", "bundle.Pack")
	}
	return raw, nil
}

func asError(err error, target **errs.Error) bool { return errors.As(err, target) }
