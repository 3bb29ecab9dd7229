// Package seal encrypts what is stored to age recipients, and opens it with sets of identities: the first identity is
// active, which is what is encrypted to, others still open what was encrypted to them. It does no I/O itself; an
// identity may ask another process (Opener).
package seal

import (
	"bytes"
	"io"
	"strings"

	"filippo.io/age"
	"filippo.io/age/tag"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys"
)

// KindSeal is the kind of keys that things are encrypted to.
const KindSeal = "age"

// tagPrefix begins a P-256 recipient, whose identity may be in a device.
const tagPrefix = "age1tag1"

// Recipient is a public key that things are encrypted to.
type Recipient struct {
	ID   keys.ID
	text string
	age  age.Recipient
}

// ParseRecipient reads a public key: age1…, or age1tag1… of a key in a device.
func ParseRecipient(text string) (Recipient, error) {
	text = strings.TrimSpace(text)
	r := Recipient{ID: keys.IDOf(KindSeal, []byte(text)), text: text}
	var err error
	if strings.HasPrefix(text, tagPrefix) {
		r.age, err = tag.ParseRecipient(text)
	} else {
		r.age, err = age.ParseX25519Recipient(text)
	}
	if err != nil {
		return Recipient{}, errs.Wrap(errs.Invalid, err, "not a public age key: want one age1… or age1tag1…")
	}
	return r, nil
}

// String is the public key as it is set.
func (r Recipient) String() string { return r.text }

// Seal encrypts to the recipient.
func (r Recipient) Seal(plain []byte) ([]byte, error) {
	if r.age == nil {
		return nil, errs.New(errs.Internal, "there is no key to encrypt to")
	}
	var out bytes.Buffer
	w, err := age.Encrypt(&out, r.age)
	if err == nil {
		_, err = w.Write(plain)
	}
	if err == nil {
		err = w.Close()
	}
	return out.Bytes(), errs.Wrap(errs.Internal, err, "encrypt to key %s", r.ID)
}

// Identity opens what was encrypted to its recipient.
type Identity struct {
	Recipient Recipient
	Identity  age.Identity
}

// Identities are a set of identities: the first is active.
type Identities []Identity

// Opener returns the identity of a key that is elsewhere, named by its setting; ok is false where it knows no such
// name.
type Opener func(name string) (i Identity, ok bool, err error)

// ParseIdentities reads identities: AGE-SECRET-KEY-1…, the first is active; anything else is asked of open, which may
// be nil. Errors name the place, and never quote a key.
func ParseIdentities(value string, open Opener) (Identities, error) {
	entries := keys.Entries(value)
	if len(entries) == 0 {
		return nil, errs.New(errs.Invalid, "there is no age identity: want AGE-SECRET-KEY-1…")
	}
	set := make(Identities, 0, len(entries))
	for n, e := range entries {
		if open != nil {
			i, ok, err := open(e)
			if err != nil {
				return nil, errs.Wrap(errs.KindOf(err), err, "identity %d of %d", n+1, len(entries))
			}
			if ok {
				set = append(set, i)
				continue
			}
		}
		// The cause would quote the secret.
		x, err := age.ParseX25519Identity(e)
		if err != nil {
			return nil, errs.New(errs.Invalid, "identity %d of %d is not an age identity: want AGE-SECRET-KEY-1…", n+1,
				len(entries))
		}
		i, err := Of(x)
		if err != nil {
			return nil, err
		}
		set = append(set, i)
	}
	return set, nil
}

// Of is an identity whose private half is in this process.
func Of(x *age.X25519Identity) (Identity, error) {
	r, err := ParseRecipient(x.Recipient().String())
	return Identity{Recipient: r, Identity: x}, err
}

// Active is what is encrypted to.
func (s Identities) Active() Recipient {
	if len(s) == 0 {
		return Recipient{}
	}
	return s[0].Recipient
}

// Open decrypts at most limit bytes with whichever identity fits. It is errs.Unauthenticated where none does, and
// errs.Invalid for what is damaged or larger. Errors never quote what is in it.
func (s Identities) Open(sealed []byte, limit int) ([]byte, error) {
	if len(s) == 0 {
		return nil, errs.New(errs.Unauthenticated, "there is no key to decrypt with")
	}
	list := make([]age.Identity, len(s))
	for n, i := range s {
		list[n] = i.Identity
	}
	r, err := age.Decrypt(bytes.NewReader(sealed), list...)
	if err != nil {
		if passing(err) {
			return nil, errs.Wrap(errs.Unavailable, err, "decrypt")
		}
		return nil, errs.New(errs.Unauthenticated, "it was not encrypted to a key that is set here: %s", s.names())
	}
	plain, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, errs.New(errs.Invalid, "what is encrypted is damaged")
	}
	if len(plain) > limit {
		return nil, errs.New(errs.TooLarge, "what is encrypted has more than %d bytes", limit)
	}
	return plain, nil
}

// passing reports an error of a device that may be gone the next time, rather than a key that does not fit.
func passing(err error) bool { return errs.Is(err, errs.Unavailable) }

func (s Identities) names() string {
	ids := make([]string, len(s))
	for n, i := range s {
		ids[n] = i.Recipient.ID.String()
	}
	return strings.Join(ids, ", ")
}

// Reseal encrypts to the active recipient what another identity of the set opens.
func (s Identities) Reseal(sealed []byte, limit int) ([]byte, error) {
	plain, err := s.Open(sealed, limit)
	if err != nil {
		return nil, err
	}
	return s.Active().Seal(plain)
}
