package oci_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/internal/imagetest"
	"github.com/chandler-fleet/chandler/libs/source/oci"
)

// signer signs as cosign sign --key does.
type signer struct {
	crypto.Signer

	t *testing.T
}

func newSigner(t *testing.T) signer {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signer{k, t}
}

func (s signer) public() string {
	s.t.Helper()
	der, err := x509.MarshalPKIXPublicKey(s.Public())
	if err != nil {
		s.t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func payloadOf(sum string) []byte {
	return fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":"x"},"image":{"docker-manifest-digest":%q},`+
		`"type":"cosign container image signature"},"optional":null}`, sum)
}

func (s signer) sign(payload []byte) string {
	s.t.Helper()
	var signature []byte
	var err error
	if _, is := s.Signer.(ed25519.PrivateKey); is {
		signature, err = s.Sign(rand.Reader, payload, crypto.Hash(0))
	} else {
		hash := sha256.Sum256(payload)
		signature, err = s.Sign(rand.Reader, hash[:], crypto.SHA256)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(signature)
}

// attach puts signatures where cosign does: one layer each, under a tag that is made of the image's digest.
func (h *hub) attach(t *testing.T, repository, sum string, layers ...mutate.Addendum) {
	t.Helper()
	img, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), layers...)
	if err != nil {
		t.Fatal(err)
	}
	h.push(t, repository+":"+strings.Replace(sum, ":", "-", 1)+".sig", img)
}

func signatureLayer(payload []byte, signature string) mutate.Addendum {
	return mutate.Addendum{
		Layer:       static.NewLayer(payload, "application/vnd.dev.cosign.simplesigning.v1+json"),
		Annotations: map[string]string{"dev.cosignproject.cosign/signature": signature},
	}
}

// TestSignaturePolicy: an image is unpacked if a key of its policy has signed the digest that was fetched, and nothing
// that a registry serves instead of such a signature is taken for one.
func TestSignaturePolicy(t *testing.T) {
	t.Parallel()
	ours, theirs := newSigner(t), newSigner(t)
	_, ed, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	edwards := signer{ed, t}
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		layers func(sum string) []mutate.Addendum
		taken  bool
	}{
		"signed": {func(sum string) []mutate.Addendum {
			return []mutate.Addendum{signatureLayer(payloadOf(sum), ours.sign(payloadOf(sum)))}
		}, true},
		"signed with Ed25519": {func(sum string) []mutate.Addendum {
			return []mutate.Addendum{signatureLayer(payloadOf(sum), edwards.sign(payloadOf(sum)))}
		}, true},
		"signed with RSA": {func(sum string) []mutate.Addendum {
			return []mutate.Addendum{signatureLayer(payloadOf(sum), signer{r, t}.sign(payloadOf(sum)))}
		}, true},
		"signed by a stranger, and by us": {func(sum string) []mutate.Addendum {
			return []mutate.Addendum{
				signatureLayer(payloadOf(sum), theirs.sign(payloadOf(sum))),
				signatureLayer(payloadOf(sum), ours.sign(payloadOf(sum))),
			}
		}, true},
		"not signed": {nil, false},
		"signed by a stranger": {func(sum string) []mutate.Addendum {
			return []mutate.Addendum{signatureLayer(payloadOf(sum), theirs.sign(payloadOf(sum)))}
		}, false},
		"the signature of another image": {func(string) []mutate.Addendum {
			other := payloadOf("sha256:" + strings.Repeat("0", 64))
			return []mutate.Addendum{signatureLayer(other, ours.sign(other))}
		}, false},
		"our signature of another image over a payload about this one": {func(sum string) []mutate.Addendum {
			other := payloadOf("sha256:" + strings.Repeat("0", 64))
			return []mutate.Addendum{signatureLayer(payloadOf(sum), ours.sign(other))}
		}, false},
		"something else that we signed": {func(sum string) []mutate.Addendum {
			p := []byte(strings.Replace(string(payloadOf(sum)), "container image signature", "attestation", 1))
			return []mutate.Addendum{signatureLayer(p, ours.sign(p))}
		}, false},
		"no signature in the annotation": {func(sum string) []mutate.Addendum {
			return []mutate.Addendum{signatureLayer(payloadOf(sum), "")}
		}, false},
		"a payload beyond any size": {func(sum string) []mutate.Addendum {
			p := append(payloadOf(sum), strings.Repeat(" ", 1<<17)...)
			return []mutate.Addendum{signatureLayer(p, ours.sign(p))}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			sum := h.push(t, "ops/fleet:v1", fleet())
			if c.layers != nil {
				h.attach(t, "ops/fleet", sum, c.layers(sum)...)
			}
			s := h.source(t, "ops/fleet:v1")
			s.Signatures = &source.SignaturePolicy{Keys: []string{
				ours.public(), edwards.public(), signer{r, t}.public(),
			}}
			tree, err := oci.Open(t.Context(), s)
			if err == nil {
				err = tree.Close()
			}
			switch {
			case c.taken && err != nil:
				t.Error(err)
			case !c.taken && (!errors.Is(err, oci.ErrUnsigned) || !errs.Is(err, errs.Forbidden)):
				t.Errorf("it was not refused as unsigned: %v", err)
			}
		})
	}
}

// TestSignatureOfAnIndex: of an image of several platforms the index is what is signed and what is asked for.
func TestSignatureOfAnIndex(t *testing.T) {
	t.Parallel()
	ours, h := newSigner(t), newHub(t)
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: fleet(), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}},
	})
	sum := h.push(t, "ops/fleet:v1", index)
	s := h.source(t, "ops/fleet:v1")
	s.Signatures = &source.SignaturePolicy{Keys: []string{ours.public()}}
	if _, err := oci.Open(t.Context(), s); !errors.Is(err, oci.ErrUnsigned) {
		t.Errorf("an index that is not signed: %v", err)
	}
	h.attach(t, "ops/fleet", sum, signatureLayer(payloadOf(sum), ours.sign(payloadOf(sum))))
	tree, err := oci.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Close(); err != nil {
		t.Error(err)
	}
}

// TestSignaturesThatCannotBeHad: a registry that does not answer for signatures is no unsigned image: it is tried
// again.
func TestSignaturesThatCannotBeHad(t *testing.T) {
	t.Parallel()
	ours, h := newSigner(t), newHub(t)
	h.push(t, "ops/fleet:v1", fleet())
	h.set(func(w http.ResponseWriter, r *http.Request) bool {
		away := strings.HasSuffix(r.URL.Path, ".sig")
		if away {
			w.WriteHeader(http.StatusInternalServerError)
		}
		return away
	})
	s := h.source(t, "ops/fleet:v1")
	s.Signatures = &source.SignaturePolicy{Keys: []string{ours.public()}}
	if _, err := oci.Open(t.Context(), s); !errs.Is(err, errs.Unavailable) || errors.Is(err, oci.ErrUnsigned) {
		t.Errorf("the registry is away for signatures: %v", err)
	}
}

// TestEvidence: what is kept of a signed bundle image gives the same files again without the registry, and nothing else
// once a byte of it is another one, a stranger signed it, or it is larger than may be kept (ADR 0034).
func TestEvidence(t *testing.T) {
	t.Parallel()
	ours, theirs, h := newSigner(t), newSigner(t), newHub(t)
	img := imagetest.Image(nil, imagetest.Tar(imagetest.File("manifests/csv.yaml", "kind: ClusterServiceVersion\n"),
		imagetest.File("metadata/annotations.yaml", "annotations: {}\n"), imagetest.File("bin/opm", "other things")))
	sum := h.push(t, "ops/gauge:v1", img)
	h.attach(t, "ops/gauge", sum, signatureLayer(payloadOf(sum), ours.sign(payloadOf(sum))))
	fetched := func(most int64) []byte {
		t.Helper()
		s := h.source(t, "ops/gauge:v1")
		s.Signatures, s.Evidence = &source.SignaturePolicy{Keys: []string{ours.public()}}, most
		tree, err := oci.Bundle(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.Close(); err != nil || tree.Digest != sum {
			t.Fatal(tree.Digest, err)
		}
		return tree.Evidence
	}
	again := func(raw []byte, by signer) (string, error) {
		e, err := oci.ReadEvidence(raw)
		if err != nil {
			return "", err
		}
		tree, err := e.Bundle(t.Context(), source.SignaturePolicy{Keys: []string{by.public()}}, t.TempDir())
		if err != nil {
			return "", err
		}
		text, err := fs.ReadFile(tree.FS(), "manifests/csv.yaml")
		return string(text), errors.Join(err, tree.Close())
	}
	raw := fetched(oci.MaxBundleEvidence)
	if text, err := again(raw, ours); err != nil || text != "kind: ClusterServiceVersion\n" {
		t.Errorf("it holds %q: %v", text, err)
	}
	if _, err := again(raw, theirs); !errors.Is(err, oci.ErrUnsigned) {
		t.Errorf("by the key of a stranger: %v", err)
	}
	for at := 0; at < len(raw); at += 61 {
		changed := bytes.Clone(raw)
		changed[at] ^= 0x20
		if text, err := again(changed, ours); err == nil && text != "kind: ClusterServiceVersion\n" {
			t.Fatalf("with byte %d of %d changed it is taken, and holds %q", at, len(raw), text)
		}
		if _, err := again(raw[:at], ours); err == nil {
			t.Fatalf("%d of %d bytes are taken", at, len(raw))
		}
	}
	if small := fetched(100); small != nil {
		t.Errorf("%d bytes are kept of at most 100", len(small))
	}
}
