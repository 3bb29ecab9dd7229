package oci

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
)

const (
	// annotationSignature is where cosign keeps the signature of a layer's payload.
	annotationSignature = "dev.cosignproject.cosign/signature"
	// payloadType is what a payload of cosign says that it is.
	payloadType = "cosign container image signature"
	// maxPayload bounds what was signed: names and a digest.
	maxPayload = 64 << 10
	// maxSignatures bounds how many signatures of one image are looked at.
	maxSignatures = 64
)

// ErrUnsigned is in the chain of the error for an image that no key of its policy has signed.
var ErrUnsigned = errors.New("no key of the signature policy has signed it")

// signed finds out whether a key of the policy has signed the image of this digest: cosign keeps signatures in the same
// repository under the tag sha256-<digest>.sig. Each may be a lie of the registry, and is believed for its key alone.
//
// The digest is that of the bytes that were fetched, so that a registry which serves another image under a signed name
// is refused. What another place would have is not known: a mirror without the signatures is as good as an unsigned
// image there, and the next place is asked.
func signed(ctx context.Context, s store, sum string, policy *source.SignaturePolicy) error {
	if policy == nil {
		return nil
	}
	keys := make([]any, 0, len(policy.Keys))
	for _, text := range policy.Keys {
		k, err := source.ParsePublicKey(text)
		if err != nil {
			return errs.New(errs.Invalid, "a key of the signature policy cannot be read")
		}
		keys = append(keys, k)
	}
	unsigned := errs.Wrap(errs.Forbidden, ErrUnsigned, "image %s is refused", sum)
	raw, _, _, err := checked(ctx, s, strings.Replace(sum, ":", "-", 1)+".sig")
	if errs.Is(err, errs.NotFound) {
		return unsigned
	}
	if err != nil {
		return err
	}
	var m v1.Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return unsigned
	}
	for _, l := range m.Layers[:min(len(m.Layers), maxSignatures)] {
		signature, err := base64.StdEncoding.DecodeString(l.Annotations[annotationSignature])
		if err != nil || len(signature) == 0 {
			continue
		}
		payload, err := small(ctx, s, l, maxPayload, "what was signed")
		if errs.Is(err, errs.Unavailable) {
			return err
		}
		if err == nil && verifies(keys, payload, signature) && about(payload, sum) {
			return nil
		}
	}
	return unsigned
}

// about reports whether a payload is cosign's and about the image of this digest.
func about(payload []byte, sum string) bool {
	var p struct {
		Critical struct {
			Image struct {
				Digest string `json:"docker-manifest-digest"`
			} `json:"image"`
			Type string `json:"type"`
		} `json:"critical"`
	}
	return json.Unmarshal(payload, &p) == nil && p.Critical.Type == payloadType && p.Critical.Image.Digest == sum
}

// verifies reports whether one of the keys made the signature.
func verifies(keys []any, payload, signature []byte) bool {
	hash := sha256.Sum256(payload)
	for _, k := range keys {
		switch k := k.(type) {
		case *ecdsa.PublicKey:
			if ecdsa.VerifyASN1(k, hash[:], signature) {
				return true
			}
		case *rsa.PublicKey:
			if rsa.VerifyPKCS1v15(k, crypto.SHA256, hash[:], signature) == nil {
				return true
			}
		case ed25519.PublicKey:
			if ed25519.Verify(k, payload, signature) {
				return true
			}
		}
	}
	return false
}
