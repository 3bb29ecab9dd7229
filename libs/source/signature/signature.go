// Package signature says whether one of some public keys has signed an image by its digest, as cosign sign --key does.
// It is pure: bytes and keys in, a verdict out. The indexer asks before it takes content, the hub before it signs a
// grant (ADR 0034).
package signature

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
)

// payloadType is what a payload of cosign says that it is.
const payloadType = "cosign container image signature"

// Keys are those of a policy, each of which is enough.
type Keys []any

// KeysOf reads the keys of a policy. A policy that cannot be read, or names none, is errs.Invalid.
func KeysOf(policy source.SignaturePolicy) (Keys, error) {
	keys := make(Keys, 0, len(policy.Keys))
	for _, text := range policy.Keys {
		k, err := source.ParsePublicKey(text)
		if err != nil {
			return nil, errs.New(errs.Invalid, "a key of the signature policy cannot be read")
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, errs.New(errs.Invalid, "the signature policy names no key")
	}
	return keys, nil
}

// Signed reports whether one of the keys made the signature, of a payload that is about the image of this digest.
func (ks Keys) Signed(sum string, payload, signature []byte) bool {
	return ks.made(payload, signature) && about(payload, sum)
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

func (ks Keys) made(payload, signature []byte) bool {
	hash := sha256.Sum256(payload)
	for _, k := range ks {
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
