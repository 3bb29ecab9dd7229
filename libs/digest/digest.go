// Package digest computes the content addresses that events, plans and catalogs carry.
//
// A digest is SHA-256 over a one-line prefix that names type and version, then RFC 8785 canonical
// JSON (DESIGN, settled details: Digests); raw files are digested by their bytes, without prefix.
package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chandler-fleet/chandler/libs/internal/jsontree"
)

// Digest is "sha256:" and 64 lower-case hexadecimal digits.
type Digest string

const prefix = "sha256:"

// Bytes returns the digest of raw bytes.
func Bytes(b []byte) Digest {
	sum := sha256.Sum256(b)
	return FromSum(sum[:])
}

// FromSum returns the digest whose SHA-256 sum has been computed elsewhere.
func FromSum(sum []byte) Digest {
	text := make([]byte, 0, len(prefix)+2*sha256.Size)
	return Digest(hex.AppendEncode(append(text, prefix...), sum))
}

// JSON returns the digest of v as canonical JSON under the type name, such as "chandler.plan.v1".
// Values must hold no floats: their canonical form is a matter of taste between languages.
func JSON(typ string, v any) (Digest, error) {
	c, err := Canonical(v)
	if err != nil {
		return "", fmt.Errorf("digest of %s: %w", typ, err)
	}
	return Bytes(append([]byte(typ+"\n"), c...)), nil
}

// The bounds of a canonical document. They are above those of all that is digested.
const (
	maxDepth  = 10_000 // as encoding/json has it
	maxValues = 1 << 28
	maxBytes  = 1 << 30
)

// Canonical returns v as RFC 8785 canonical JSON, with one difference: integers that 64 bits hold stay as
// they are, where the RFC rounds those beyond 2^53 (see libs/internal/jsontree).
func Canonical(v any) ([]byte, error) {
	raw, ok := v.(json.RawMessage)
	if !ok {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		raw = b
	}
	if isCanonical(raw) {
		return raw, nil
	}
	var b jsontree.Builder
	b.Reset(jsontree.Limits{Depth: maxDepth, Values: maxValues, Bytes: maxBytes})
	b.Expect(len(raw))
	if err := b.Read(raw); err != nil {
		return nil, err
	}
	if faults := b.Tree().Faults(); len(faults) > 0 {
		return nil, faults[0]
	}
	return b.Tree().Root().Canonical(), nil
}

// Parse checks that s has the form of a digest.
func Parse(s string) (Digest, error) {
	h, ok := strings.CutPrefix(s, prefix)
	if !ok || len(h) != sha256.Size*2 || strings.ToLower(h) != h {
		return "", fmt.Errorf("%q is not a digest: want sha256: and 64 lower-case hexadecimal digits", s)
	}
	if _, err := hex.DecodeString(h); err != nil {
		return "", fmt.Errorf("%q is not a digest: %w", s, err)
	}
	return Digest(s), nil
}

// Hex returns the 64 digits, which are safe in a NATS subject and a Kubernetes label's 63 after a cut.
func (d Digest) Hex() string { return strings.TrimPrefix(string(d), prefix) }

// Short returns 12 digits for people to read.
func (d Digest) Short() string {
	h := d.Hex()
	if len(h) > 12 {
		h = h[:12]
	}
	return h
}

// SaltBytes makes guessing what was committed to as hard as guessing the salt.
const SaltBytes = 16

// Commitment names bytes that lie outside the log, such as a credential, by a salt that lies with them: who has the
// name alone cannot try what it might stand for.
func Commitment(salt, body []byte) string {
	sum := sha256.Sum256(append(append([]byte{}, salt...), body...))
	return "c1:" + hex.EncodeToString(sum[:])
}
