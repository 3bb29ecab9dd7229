package oci

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"hash"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// Limits of what describes an image; those of its content are in libs/source/archive.
const (
	// MaxManifest bounds a manifest, as registries themselves do.
	MaxManifest = 4 << 20
	// MaxConfig bounds the configuration of an image; one with all its history has some 50 KB.
	MaxConfig = 8 << 20
	// MaxLayers is how many layers an image may have; container engines take about 127.
	MaxLayers = 256
	// MaxNesting is how deep an index of indexes may go.
	MaxNesting = 3
	// MaxPlatforms is how many images an index may list.
	MaxPlatforms = 1000
)

// store is where images lie. A reference is a tag or a digest; what it returns is not checked yet.
type store interface {
	head(ctx context.Context, reference string) (digest string, err error)
	manifest(ctx context.Context, reference string) (raw []byte, mediaType string, err error)
	blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error)
	// referrers is an index of the manifests that refer to the one of this digest.
	referrers(ctx context.Context, digest string) (raw []byte, err error)
}

// ErrMismatch is in the chain of every error about content whose digest or size is another one than was asked for.
var ErrMismatch = errors.New("whoever serves it lies or is damaged")

// mismatch is the error for content that is not what it was asked for as.
func mismatch(what, want, got string) error {
	return errs.Wrap(errs.Invalid, ErrMismatch, "%s is not what it says: asked for %s, received %s", what, want, got)
}

// isDigest distinguishes a digest from a tag.
func isDigest(reference string) bool {
	_, err := digest.Parse(reference)
	return err == nil
}

// checked returns a manifest whose bytes match the reference, and its digest.
func checked(ctx context.Context, s store, reference string) (raw []byte, mediaType, sum string, err error) {
	raw, mediaType, err = s.manifest(ctx, reference)
	if err != nil {
		return nil, "", "", err
	}
	if isDigest(reference) {
		if err := matches(raw, reference); err != nil {
			return nil, "", "", err
		}
	}
	return raw, mediaType, string(digest.Bytes(raw)), nil
}

// matches compares a manifest with its digest.
func matches(raw []byte, want string) error {
	if got := string(digest.Bytes(raw)); got != want {
		return mismatch("the manifest", want, got)
	}
	return nil
}

// verified reads a blob and fails at its end where size or digest are not those of its descriptor.
type verified struct {
	io.ReadCloser

	d   v1.Descriptor
	h   hash.Hash
	n   int64
	end error
}

func newHash() hash.Hash { return sha256.New() }

func openBlob(ctx context.Context, s store, d v1.Descriptor) (*verified, error) {
	if !isDigest(d.Digest.String()) {
		return nil, errs.New(errs.Invalid, "a blob has the digest %q, which is no sha256 digest", d.Digest)
	}
	body, err := s.blob(ctx, d)
	if err != nil {
		return nil, err
	}
	return &verified{ReadCloser: body, d: d, h: newHash()}, nil
}

// Read implements io.Reader.
func (v *verified) Read(p []byte) (int, error) {
	if v.end != nil {
		return 0, v.end
	}
	n, err := v.ReadCloser.Read(p)
	v.n += int64(n)
	v.h.Write(p[:n])
	switch {
	case v.n > v.d.Size:
		v.end = errs.Wrap(errs.Invalid, ErrMismatch, "blob %s is larger than the %d bytes that its manifest says",
			v.d.Digest, v.d.Size)
	case errors.Is(err, io.EOF) && v.n < v.d.Size:
		v.end = errs.New(errs.Unavailable, "blob %s ended after %d of %d bytes", v.d.Digest, v.n, v.d.Size)
	case errors.Is(err, io.EOF) && v.sum() != v.d.Digest.String():
		v.end = mismatch("a blob", v.d.Digest.String(), v.sum())
	default:
		return n, err
	}
	if c, ok := v.ReadCloser.(cached); ok {
		c.distrust()
	}
	return 0, v.end
}

func (v *verified) sum() string { return string(digest.FromSum(v.h.Sum(nil))) }

// rest reads a blob to its end, to distinguish a wrong digest from content that is bad in itself.
func (v *verified) rest() error {
	_, err := io.Copy(io.Discard, v)
	if err != nil && v.end == nil {
		return nil // the transfer's own fault; what is known already says more
	}
	return err
}

// small reads a whole blob.
func small(ctx context.Context, s store, d v1.Descriptor, limit int64, what string) ([]byte, error) {
	if d.Size > limit {
		return nil, errs.New(errs.TooLarge, "%s has %d bytes, more than %d", what, d.Size, limit)
	}
	v, err := openBlob(ctx, s, d)
	if err != nil {
		return nil, err
	}
	defer func() { _ = v.Close() }() // it was only read
	return io.ReadAll(v)
}

// picture is an image: what is needed of manifest and configuration.
type picture struct {
	store  store
	layers []v1.Descriptor
	labels map[string]string
}

// load reads the image behind a reference. sum is the digest of what the reference names, which is the
// index for an image of several platforms.
func load(ctx context.Context, s store, reference string) (p *picture, sum string, err error) {
	raw, mediaType, sum, err := checked(ctx, s, reference)
	if err != nil {
		return nil, "", err
	}
	for range MaxNesting {
		m, err := readManifest(raw, mediaType)
		if err != nil {
			return nil, "", err
		}
		if len(m.Manifests) == 0 {
			p, err := m.picture(ctx, s)
			return p, sum, err
		}
		next, err := choose(m.Manifests)
		if err != nil {
			return nil, "", err
		}
		raw, mediaType, _, err = checked(ctx, s, next.Digest.String())
		if err != nil {
			return nil, "", err
		}
	}
	return nil, "", errs.New(errs.Invalid, "an index lists indexes more than %d deep", MaxNesting)
}

// manifest is a manifest of an image or an index, which its fields show.
type manifest struct {
	MediaType types.MediaType `json:"mediaType"`
	Config    v1.Descriptor   `json:"config"`
	Layers    []v1.Descriptor `json:"layers"`
	Manifests []v1.Descriptor `json:"manifests"`
}

func readManifest(raw []byte, mediaType string) (*manifest, error) {
	if t := types.MediaType(mediaType); t == types.DockerManifestSchema1 || t == types.DockerManifestSchema1Signed {
		return nil, errs.New(errs.Invalid,
			"the image has a manifest of Docker's first schema; push it again with a tool of this decade (R-CAT-60: "+
				"Docker v2-2 or OCI)")
	}
	var m manifest
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&m); err != nil {
		return nil, errs.New(errs.Invalid, "the manifest cannot be read: %s", err)
	}
	switch {
	case len(m.Manifests) > 0 && len(m.Layers) > 0:
		return nil, errs.New(errs.Invalid, "the manifest claims to be an image and an index at once")
	case len(m.Manifests) > MaxPlatforms:
		return nil, errs.New(errs.TooLarge, "the index lists %d images, more than %d", len(m.Manifests), MaxPlatforms)
	case len(m.Layers) > MaxLayers:
		return nil, errs.New(errs.TooLarge, "the image has %d layers, more than %d", len(m.Layers), MaxLayers)
	case len(m.Manifests) == 0 && m.Config.Digest.Hex == "":
		return nil, errs.New(errs.Invalid,
			"this is no manifest of an image (media type %q); R-CAT-60 asks for Docker v2-2 or OCI", mediaType)
	}
	return &m, nil
}

// choose takes linux/amd64, else the first for linux, else the first. The content of a catalog or a bundle
// is the same for every platform; what has no platform at all (an attestation) is no image.
func choose(list []v1.Descriptor) (v1.Descriptor, error) {
	rank := func(p *v1.Platform) int {
		switch {
		case p == nil:
			return 1
		case p.OS == "unknown":
			return 0
		case p.OS == "linux" && p.Architecture == "amd64":
			return 3
		case p.OS == "linux":
			return 2
		default:
			return 1
		}
	}
	var best v1.Descriptor
	most := 0
	for _, d := range list {
		if r := rank(d.Platform); r > most {
			best, most = d, r
		}
	}
	if most == 0 {
		return best, errs.New(errs.Invalid, "the index lists no image")
	}
	return best, nil
}

// picture reads the configuration.
func (m *manifest) picture(ctx context.Context, s store) (*picture, error) {
	raw, err := small(ctx, s, m.Config, MaxConfig, "the configuration of the image")
	if err != nil {
		return nil, err
	}
	var c struct {
		Config struct {
			Labels map[string]string `json:"Labels"`
		} `json:"config"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, errs.New(errs.Invalid, "the configuration of the image cannot be read: %s", err)
	}
	for _, l := range m.Layers {
		if len(l.URLs) > 0 || !l.MediaType.IsDistributable() {
			return nil, errs.New(errs.Invalid,
				"layer %s lies at another place than the image; a catalog image holds its own content", l.Digest)
		}
	}
	return &picture{store: s, layers: m.Layers, labels: c.Config.Labels}, nil
}
