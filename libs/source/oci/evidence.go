package oci

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"strings"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/archive"
	"github.com/chandler-fleet/chandler/libs/source/signature"
)

// MaxBundleEvidence bounds what is kept of a bundle image: manifests, configuration, layers and signatures as they
// were fetched. The largest published ones have 2 MB, since nothing but YAML is in them.
const MaxBundleEvidence = 16 << 20

// piece is one answer of a registry.
type piece struct {
	Name string `json:"name"`           // digest, or the tag of the signatures
	Type string `json:"type,omitempty"` // media type of a manifest
	Size int    `json:"size"`
}

// table is the head of encoded evidence; the pieces follow it in order.
type table struct {
	Image  string  `json:"image"`          // digest of what was asked for
	Name   string  `json:"name,omitempty"` // repository by which the catalog names it
	Pieces []piece `json:"pieces"`
}

// keeper remembers what a store answers. Its methods are called one after the other.
type keeper struct {
	store

	left   int64 // bytes that may still be kept; below 0 nothing is kept any more
	pieces []piece
	data   [][]byte
	mu     sync.Mutex
}

func (k *keeper) keep(name, mediaType string, data []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pieces {
		if p.Name == name {
			return
		}
	}
	if k.left -= int64(len(data)); k.left >= 0 {
		k.pieces = append(k.pieces, piece{name, mediaType, len(data)})
		k.data = append(k.data, data)
	}
}

func (k *keeper) manifest(ctx context.Context, reference string) ([]byte, string, error) {
	raw, mediaType, err := k.store.manifest(ctx, reference)
	if err != nil {
		return raw, mediaType, err
	}
	name := string(digest.Bytes(raw))
	if strings.HasSuffix(reference, ".sig") { // asked for by its tag again
		name = reference
	}
	k.keep(name, mediaType, raw)
	return raw, mediaType, nil
}

func (k *keeper) referrers(ctx context.Context, sum string) ([]byte, error) {
	raw, err := k.store.referrers(ctx, sum)
	if err == nil {
		k.keep(referrersPiece(sum), "", raw)
	}
	return raw, err
}

// referrersPiece names the list of what refers to an image.
func referrersPiece(sum string) string { return "referrers/" + sum }

func (k *keeper) blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	body, err := k.store.blob(ctx, d)
	if err != nil || d.Size > k.left {
		if err == nil {
			k.left = -1
		}
		return body, err
	}
	return &copied{ReadCloser: body, k: k, d: d}, nil
}

// copied keeps what is read of a blob, once it was read whole.
type copied struct {
	io.ReadCloser

	k   *keeper
	d   v1.Descriptor
	got bytes.Buffer
}

func (c *copied) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if int64(c.got.Len()) <= c.d.Size {
		c.got.Write(p[:n])
	}
	return n, err
}

func (c *copied) Close() error {
	_, _ = io.Copy(io.Discard, c) // what an unpacker leaves belongs to the digest; what fails has another digest
	if string(digest.Bytes(c.got.Bytes())) == c.d.Digest.String() {
		c.k.keep(c.d.Digest.String(), "", c.got.Bytes())
	} else {
		c.k.left = -1 // without this blob the rest proves nothing
	}
	return c.ReadCloser.Close()
}

// evidence encodes what was kept; nil where it is more than may be kept.
func (k *keeper) evidence(img signature.Image) []byte {
	if k.left < 0 {
		return nil
	}
	head, err := json.Marshal(table{img.Digest, img.Name, k.pieces})
	if err != nil {
		return nil
	}
	out := binary.AppendUvarint(nil, uint64(len(head)))
	out = append(out, head...)
	for _, d := range k.data {
		out = append(out, d...)
	}
	return out
}

// Evidence is what an image was when it was fetched: who has it finds out again, by digests and signatures alone, what
// the image holds and who has signed it. Nothing in it is believed because of who hands it over.
type Evidence struct {
	image  signature.Image
	pieces map[string]kept
}

type kept struct {
	mediaType string
	data      []byte
}

// ReadEvidence decodes evidence. What is no evidence is errs.Invalid.
func ReadEvidence(raw []byte) (Evidence, error) {
	bad := errs.New(errs.Invalid, "the evidence of an image cannot be read")
	size, n := binary.Uvarint(raw)
	if n <= 0 || size > uint64(len(raw)-n) {
		return Evidence{}, bad
	}
	var t table
	if json.Unmarshal(raw[n:n+int(size)], &t) != nil {
		return Evidence{}, bad
	}
	rest := raw[n+int(size):]
	out := Evidence{image: signature.Image{Digest: t.Image, Name: t.Name}, pieces: map[string]kept{}}
	for _, p := range t.Pieces {
		if p.Size < 0 || p.Size > len(rest) {
			return Evidence{}, bad
		}
		out.pieces[p.Name] = kept{p.Type, rest[:p.Size]}
		rest = rest[p.Size:]
	}
	return out, nil
}

// Bundle unpacks a bundle image below temp if it was signed as the policy wants it; else ErrUnsigned is in the chain of
// the error. Each byte of the result is covered by the signature.
func (e Evidence) Bundle(ctx context.Context, policy source.SignaturePolicy, temp string) (*Tree, error) {
	p, sum, err := load(ctx, e, e.image.Digest)
	if err != nil {
		return nil, err
	}
	if err := signed(ctx, e, signature.Image{Digest: sum, Name: e.image.Name}, &policy); err != nil {
		return nil, err
	}
	wanted, err := bundleParts(p.labels)
	if err != nil {
		return nil, err
	}
	target, err := p.unpack(ctx, Source{Temp: temp, Limits: evidenceLimits()}, wanted)
	if err != nil {
		return nil, err
	}
	return &Tree{Target: target, Digest: sum, Labels: p.labels}, nil
}

// maxUnpacked bounds what one bundle image is unpacked to: the place for it is a pod's temporary directory, and the
// largest published bundles have 10 MB of manifests.
const maxUnpacked = 48 << 20

func evidenceLimits() archive.Limits {
	l := archive.Standard()
	l.Bytes, l.EntryBytes, l.Compressed = maxUnpacked, maxUnpacked, MaxBundleEvidence
	return l
}

func (e Evidence) get(name string) (kept, error) {
	p, ok := e.pieces[name]
	if !ok {
		return p, errs.New(errs.NotFound, "the evidence has no %s", name)
	}
	return p, nil
}

func (e Evidence) head(_ context.Context, reference string) (string, error) {
	_, err := e.get(reference)
	return reference, err
}

func (e Evidence) manifest(_ context.Context, reference string) ([]byte, string, error) {
	p, err := e.get(reference)
	return p.data, p.mediaType, err
}

func (e Evidence) blob(_ context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	p, err := e.get(d.Digest.String())
	return io.NopCloser(bytes.NewReader(p.data)), err
}

func (e Evidence) referrers(_ context.Context, sum string) ([]byte, error) {
	p, err := e.get(referrersPiece(sum))
	return p.data, err
}
