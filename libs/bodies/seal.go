package bodies

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// format is the first byte of what is sealed; another one is a form of a later release.
const format = 1

// maxSalt is what the one byte for the length of a salt can say.
const maxSalt = math.MaxUint8

// Row is a body as it is stored. Where KeyID is "", Salt and Body are in the clear, as releases before stored
// them; else Body holds both, sealed, and Salt is empty: with the salt in sight a short body could be guessed
// from its commitment.
type Row struct {
	Commitment string
	Kind       Kind
	KeyID      string
	Salt, Body []byte
	// OnlySealed says that all of the kind were sealed once: one in the clear that comes later is not the gateway's.
	OnlySealed bool
}

// Rules that a body breaks which does not open.
const (
	RuleKey    = "body-key-set"
	RuleIntact = "body-intact"
	RuleSealed = "body-sealed"
)

// Seal seals a row that is in the clear by the active key of its kind.
func (k Keys) Seal(tenant string, r Row) (Row, error) {
	list := k.of[r.Kind.holds()]
	if len(list) == 0 {
		return Row{}, errs.New(errs.Internal, "there is no key to seal a %s by: %s", r.Kind, r.Kind.Variable())
	}
	if r.KeyID != "" || len(r.Salt) > maxSalt {
		return Row{}, errs.New(errs.Internal, "the %s %s cannot be sealed: it is sealed, or has a salt of %d bytes", r.Kind,
			r.Commitment, len(r.Salt))
	}
	aead, err := k.cipher(list[0], tenant, r.Kind)
	if err != nil {
		return Row{}, err
	}
	plain := make([]byte, 0, 1+len(r.Salt)+len(r.Body))
	plain = append(plain, byte(len(r.Salt)))
	plain = append(append(plain, r.Salt...), r.Body...)
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(plain)+aead.Overhead())
	if _, err := rand.Read(nonce); err != nil {
		return Row{}, fmt.Errorf("draw a nonce: %w", err)
	}
	sealed := append([]byte{format}, aead.Seal(nonce, nonce, plain, about(tenant, r.Kind, r.Commitment, list[0].id))...)
	return Row{Commitment: r.Commitment, Kind: r.Kind, KeyID: list[0].id, Salt: []byte{}, Body: sealed}, nil
}

// Unopened says whether an error is that of a body which does not open, and not of the database that has it. What
// rests on that body has to wait, and nothing else has.
func Unopened(err error) bool {
	e, ok := errors.AsType[*errs.Error](err)
	return ok && slices.Contains([]string{RuleKey, RuleIntact, RuleSealed}, e.Rule)
}

// Open returns the body of a row, after it was compared with its commitment. Errors never quote what is in it. One that
// is sealed by a key that is not set here is errs.Unavailable: it opens when the service has the key.
func (k Keys) Open(tenant string, r Row) ([]byte, error) {
	plain, err := k.Clear(tenant, r)
	return plain.Body, err
}

// Clear returns a row in the clear, with its salt.
func (k Keys) Clear(tenant string, r Row) (Row, error) {
	if r.KeyID == "" && r.OnlySealed {
		return Row{}, errs.New(errs.Internal, "the %s %s is in the clear, although all of its kind were sealed: somebody else "+
			"has put it there", r.Kind, r.Commitment).At("", RuleSealed)
	}
	if r.KeyID != "" {
		var err error
		if r, err = k.unseal(tenant, r); err != nil {
			return Row{}, err
		}
	}
	if r.Kind.committed() && digest.Commitment(r.Salt, r.Body) != r.Commitment {
		return Row{}, errs.New(errs.Internal, "what is stored as the %s %s is not what was committed to", r.Kind,
			r.Commitment).At("", RuleIntact)
	}
	return r, nil
}

func (k Keys) unseal(tenant string, r Row) (Row, error) {
	for _, one := range k.of[r.Kind.holds()] {
		if one.id != r.KeyID {
			continue
		}
		aead, err := k.cipher(one, tenant, r.Kind)
		if err != nil {
			return Row{}, err
		}
		n := aead.NonceSize()
		if len(r.Body) < 1+n || r.Body[0] != format {
			return Row{}, errs.New(errs.Internal, "the %s %s is sealed in a form that is not known here", r.Kind,
				r.Commitment).At("", RuleIntact)
		}
		plain, err := aead.Open(nil, r.Body[1:1+n], r.Body[1+n:], about(tenant, r.Kind, r.Commitment, one.id))
		if err != nil || len(plain) == 0 || len(plain) < 1+int(plain[0]) {
			return Row{}, errs.New(errs.Internal, "the %s %s is damaged, or was stored under another name", r.Kind,
				r.Commitment).At("", RuleIntact)
		}
		n = 1 + int(plain[0])
		salt, body := plain[1:n], plain[n:]
		return Row{Commitment: r.Commitment, Kind: r.Kind, Salt: salt, Body: body}, nil
	}
	return Row{}, errs.New(errs.Unavailable, "the %s %s is sealed by the key %s, which is not set here: %s", r.Kind,
		r.Commitment, r.KeyID, k.names(r.Kind)).At("", RuleKey)
}

// names says which keys of a kind there are.
func (k Keys) names(kind Kind) string {
	ids := []string{}
	for _, one := range k.of[kind.holds()] {
		ids = append(ids, one.id)
	}
	if len(ids) == 0 {
		return kind.Variable() + " is none of the settings of this service"
	}
	return kind.Variable() + " has " + strings.Join(ids, ", ")
}

// maxCiphers bounds what is remembered of tenants: a cipher has some 1 KiB, and is made anew in microseconds.
const maxCiphers = 1024

// ciphers remembers the ciphers of tenants: lists open hundreds of bodies by one.
type ciphers struct {
	mu    sync.Mutex
	known map[cipherOf]cipher.AEAD
}

type cipherOf struct {
	id, tenant string
	kind       Kind
}

// cipher is that of one tenant's bodies of one kind: a key of its own, so that random nonces of one key stay few.
func (k Keys) cipher(o key, tenant string, kind Kind) (cipher.AEAD, error) {
	of := cipherOf{o.id, tenant, kind}
	k.ciphers.mu.Lock()
	defer k.ciphers.mu.Unlock()
	if known, ok := k.ciphers.known[of]; ok {
		return known, nil
	}
	aead, err := o.cipher(tenant, kind)
	if err != nil {
		return nil, err
	}
	if len(k.ciphers.known) >= maxCiphers || k.ciphers.known == nil {
		k.ciphers.known = map[cipherOf]cipher.AEAD{}
	}
	k.ciphers.known[of] = aead
	return aead, nil
}

func (o key) cipher(tenant string, kind Kind) (cipher.AEAD, error) {
	secret, err := hkdf.Key(sha256.New, []byte(o.secret), nil, "chandler.body.v1\x00"+string(kind)+"\x00"+tenant,
		sha256.Size)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "derive a key")
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "derive a key")
	}
	aead, err := cipher.NewGCM(block)
	return aead, errs.Wrap(errs.Internal, err, "derive a key")
}

// about is what a sealed body is bound to. No part holds a zero byte.
func about(tenant string, kind Kind, commitment, id string) []byte {
	return []byte("chandler.body.v1\x00" + tenant + "\x00" + string(kind) + "\x00" + commitment + "\x00" + id)
}
