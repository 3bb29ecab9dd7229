package source

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"

	"github.com/chandler-fleet/chandler/libs/digest"
)

// RulePublicKey is broken by a signature policy.
const RulePublicKey = "public-key"

// Bounds of a signature policy.
const (
	// MaxSigners is how many keys a policy may name: two overlap in a rotation, a few publishers share a catalog.
	MaxSigners = 16
	// MaxPublicKey bounds one public key in PEM; the largest, of RSA with 16 KBit, has 3 KB.
	MaxPublicKey = 8 << 10
)

// SignaturePolicy says with whose key the catalog image, and every bundle image that it names, must be signed. One of
// the keys named is enough. It is about sources of type image.
type SignaturePolicy struct {
	// Keys are public keys in PEM, as cosign generate-key-pair writes them.
	Keys []string `json:"keys,omitempty"`
}

// policyType is the type prefix of the digest of a policy.
const policyType = "chandler.signature-policy.v1"

// Digest names a policy in events, so that every change of it is one, and no other can be put in its place; "" for
// none.
func (p *SignaturePolicy) Digest() (digest.Digest, error) {
	if p == nil {
		return "", nil
	}
	return digest.JSON(policyType, p)
}

// signatures checks a policy.
func (c *checker) signatures(t Type, p *SignaturePolicy) {
	const at = "/signatures"
	if p == nil {
		return
	}
	if t != Image {
		c.addf(at, RuleNotForType, "a signature policy is for sources of type %s: of others nothing is signed", Image)
	}
	if len(p.Keys) == 0 || len(p.Keys) > MaxSigners {
		c.addf(at+"/keys", RuleRequired, "a signature policy names one to %d public keys", MaxSigners)
	}
	for i, k := range p.Keys {
		if _, err := ParsePublicKey(k); err != nil {
			c.addf(at+"/keys", RulePublicKey, "key %d of the signature policy is no public key in PEM: want one of ECDSA, "+
				"RSA or Ed25519, as cosign public-key writes it", i+1)
		}
	}
}

// ParsePublicKey reads one public key in PEM.
func ParsePublicKey(text string) (any, error) {
	block, rest := pem.Decode([]byte(text))
	if block == nil || len(text) > MaxPublicKey || len(bytes.TrimSpace(rest)) > 0 {
		return nil, x509.ErrUnsupportedAlgorithm
	}
	k, err := x509.ParsePKIXPublicKey(block.Bytes)
	switch k.(type) {
	case *ecdsa.PublicKey, *rsa.PublicKey, ed25519.PublicKey:
		return k, err
	}
	return nil, x509.ErrUnsupportedAlgorithm
}
