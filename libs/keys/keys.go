// Package keys names the keys of an installation and keeps sets of them: one is active, which is what new things are
// signed with, others are still accepted. A key is replaced without a moment in which nobody can verify: the new one is
// accepted everywhere first, then it becomes active, then the old one goes when nothing uses it any more. The package
// does no I/O; what signs may be elsewhere (crypto.Signer).
package keys

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// IDBytes is the length of a key's id: long enough that two keys of one installation never share one by chance, and
// short enough for people. It proves nothing: which key signed is found by it, what was signed is proved by the key.
const IDBytes = 8

// ID names a key. It is derived from the public half, so that it needs no register and a file says which key it holds.
type ID [IDBytes]byte

// String is the id as people and tables have it.
func (i ID) String() string { return hex.EncodeToString(i[:]) }

// IDOf is the id of a key by its public half; kind is what the key is for, so that equal bytes of two kinds are two.
func IDOf(kind string, public []byte) ID {
	h := sha256.New()
	h.Write([]byte("chandler.key-id.v1\n" + kind + "\n"))
	h.Write(public)
	return ID(h.Sum(nil)[:IDBytes])
}

// KindSign is the kind of keys that sign grants and messages of the hub.
const KindSign = "ed25519"

// publicOf is the public half of a signer, which has to be of Ed25519. crypto.Signer is what a key of this process is
// as well as one in a device or in another process, where Sign may fail.
func publicOf(s crypto.Signer) (ed25519.PublicKey, error) {
	if s != nil {
		if k, ok := s.Public().(ed25519.PublicKey); ok && len(k) == ed25519.PublicKeySize {
			return k, nil
		}
	}
	return nil, errs.New(errs.Internal, "there is no Ed25519 key to sign with")
}

// SignerID is the id of a signer's key as text, "" where there is none.
func SignerID(s crypto.Signer) string {
	public, err := publicOf(s)
	if err != nil {
		return ""
	}
	return IDOf(KindSign, public).String()
}

// SignatureBytes is the length of a signature with the id of its key in front, as signify and minisign have it.
const SignatureBytes = IDBytes + ed25519.SignatureSize

// Sign signs a message and puts the id of the key in front.
func Sign(s crypto.Signer, message []byte) ([]byte, error) {
	public, err := publicOf(s)
	if err != nil {
		return nil, err
	}
	id := IDOf(KindSign, public)
	bare, err := s.Sign(nil, message, crypto.Hash(0))
	if err != nil {
		return nil, errs.Wrap(errs.Unavailable, err, "sign with key %s", id)
	}
	if _, local := s.(ed25519.PrivateKey); !local && !ed25519.Verify(public, message, bare) {
		// What a device or another process answers is checked: every executor would refuse a wrong signature.
		return nil, errs.New(errs.Unavailable, "key %s made a signature that it does not verify", id)
	}
	return append(id[:], bare...), nil
}

// SignedBy is the id of the key that a signature says it is made with; ok is false where it has another form.
func SignedBy(signature []byte) (id ID, ok bool) {
	if len(signature) != SignatureBytes {
		return ID{}, false
	}
	return ID(signature[:IDBytes]), true
}

// Accepted are public keys whose signatures are believed. The zero value believes nobody.
type Accepted struct{ list []ed25519.PublicKey }

// Accept returns the set of these keys; what has another length than a key is left out.
func Accept(public ...ed25519.PublicKey) Accepted {
	return Accepted{list: slices.DeleteFunc(slices.Clone(public), func(k ed25519.PublicKey) bool {
		return len(k) != ed25519.PublicKeySize
	})}
}

// Empty reports whether nobody is believed.
func (a Accepted) Empty() bool { return len(a.list) == 0 }

// Public are the keys, the active one first.
func (a Accepted) Public() []ed25519.PublicKey { return slices.Clone(a.list) }

// Has reports whether a key is in the set.
func (a Accepted) Has(id ID) bool {
	return slices.ContainsFunc(a.list, func(k ed25519.PublicKey) bool { return IDOf(KindSign, k) == id })
}

// Verify reports whether a key of the set made the signature of the message.
func (a Accepted) Verify(message, signature []byte) bool {
	id, ok := SignedBy(signature)
	if !ok {
		return false
	}
	for _, k := range a.list {
		if IDOf(KindSign, k) == id && ed25519.Verify(k, message, signature[IDBytes:]) {
			return true
		}
	}
	return false
}

// Signing is a set of keys that sign: the first is active.
type Signing struct {
	Active   crypto.Signer
	Accepted Accepted
}

// ActiveID is the id of the active key.
func (s Signing) ActiveID() ID { return IDOf(KindSign, s.Accepted.list[0]) }

// publicPrefix marks a key of which only the public half is given: it is accepted and signs nothing.
const publicPrefix = "public:"

// Opener returns the signer of a key that is elsewhere, named by its setting; ok is false where it knows no such name.
type Opener func(name string) (s crypto.Signer, ok bool, err error)

// Entries splits the value of a setting that holds several keys: by commas and white space.
func Entries(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// ParseSigning reads keys that sign: seeds in base64, the first is active; "public:" and a public half in base64 is
// accepted only; anything else is asked of open, which may be nil. Errors name the place, and never quote a key.
func ParseSigning(value string, open Opener) (Signing, error) {
	entries := Entries(value)
	var set Signing
	var public []ed25519.PublicKey
	for i, e := range entries {
		s, k, err := parseOne(e, open)
		if err != nil {
			return Signing{}, errs.Wrap(errs.KindOf(err), err, "key %d of %d", i+1, len(entries))
		}
		if i == 0 {
			if s == nil {
				return Signing{}, errs.New(errs.Invalid, "the first key is active and has to be able to sign: "+
					"it cannot be a public half alone")
			}
			set.Active = s
		}
		public = append(public, k)
	}
	if set.Active == nil {
		return Signing{}, errs.New(errs.Invalid, "there is no key: want the seed of an Ed25519 key, %d bytes in base64",
			ed25519.SeedSize)
	}
	set.Accepted = Accept(public...)
	return set, nil
}

// ParseAccepted reads public halves as PublicEntry writes them, the active one first. Errors name the place.
func ParseAccepted(entries []string) (Accepted, error) {
	if len(entries) == 0 {
		return Accepted{}, errs.New(errs.Invalid, "there is no public key")
	}
	public := make([]ed25519.PublicKey, 0, len(entries))
	for i, e := range entries {
		if !strings.HasPrefix(e, publicPrefix) {
			return Accepted{}, errs.New(errs.Invalid, "public key %d of %d does not begin with %q", i+1, len(entries),
				publicPrefix)
		}
		_, k, err := parseOne(e, nil)
		if err != nil {
			return Accepted{}, errs.Wrap(errs.KindOf(err), err, "public key %d of %d", i+1, len(entries))
		}
		public = append(public, k)
	}
	return Accept(public...), nil
}

func parseOne(entry string, open Opener) (crypto.Signer, ed25519.PublicKey, error) {
	if half, ok := strings.CutPrefix(entry, publicPrefix); ok {
		k, err := base64.StdEncoding.DecodeString(half)
		if err != nil || len(k) != ed25519.PublicKeySize {
			return nil, nil, errs.New(errs.Invalid, "not the public half of an Ed25519 key: want %d bytes in base64 "+
				"after %q", ed25519.PublicKeySize, publicPrefix)
		}
		return nil, k, nil
	}
	if open != nil {
		if s, ok, err := open(entry); ok || err != nil {
			if err != nil {
				return nil, nil, err
			}
			k, err := publicOf(s)
			return s, k, err
		}
	}
	seed, err := base64.StdEncoding.DecodeString(entry)
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, nil, errs.New(errs.Invalid, "not the seed of an Ed25519 key: want %d bytes in base64", ed25519.SeedSize)
	}
	s := ed25519.NewKeyFromSeed(seed)
	k, err := publicOf(s)
	return s, k, err
}

// PublicEntry is the setting's form of a public half.
func PublicEntry(k ed25519.PublicKey) string {
	return publicPrefix + base64.StdEncoding.EncodeToString(k)
}
