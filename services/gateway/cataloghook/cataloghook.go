// Package cataloghook proves that a request to poll a catalog comes from somebody who was given the
// secret of its hook. A secret is derived from the gateway's hook key, the catalog and a nonce, so that no
// secret needs to be stored and another nonce ends the one before. It is pure.
package cataloghook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys"
)

const (
	// MinKey is the least length of the gateway's hook key: below it a secret could be guessed from another.
	MinKey = 32
	// NonceBytes makes each hook its own.
	NonceBytes = 16
	// idChars is the length of an id: a nonce as text.
	idChars = (NonceBytes*8 + 5) / 6
	// prefix identifies the secret to people, and to programs that search for leaked secrets.
	prefix = "chh_"
	// signature is how the header of a signed request begins.
	signature = "sha256="
)

// Hook is a catalog's hook as it is stored.
type Hook struct {
	Tenant, Subject string
	Nonce           []byte
	Created         time.Time
	// KeyID is that of the key that its secret is derived from; "" of a hook that is older than ids.
	KeyID string
}

// ID names the hook in its address and at the beginning of its secret, so that it is found by what nobody can
// guess. It proves nothing.
func (h Hook) ID() string { return base64.RawURLEncoding.EncodeToString(h.Nonce) }

// NonceOf reads an ID; false for what is none.
func NonceOf(id string) ([]byte, bool) {
	if len(id) != idChars {
		return nil, false
	}
	nonce, err := base64.RawURLEncoding.Strict().DecodeString(id)
	return nonce, err == nil
}

// Key is a hook key with its id.
type Key struct{ ID, value string }

// Keys are a set of hook keys: the first is active, which secrets of new hooks are derived from; the secrets that were
// derived from others hold until their hooks are made anew, or the key is taken out.
type Keys []Key

// ParseKeys reads hook keys, separated by commas or white space. Errors name the place, and never quote a key.
func ParseKeys(value string) (Keys, error) {
	entries := keys.Entries(value)
	list := make(Keys, 0, len(entries))
	for i, e := range entries {
		if len(e) < MinKey {
			return nil, errs.New(errs.Invalid, "hook key %d of %d has %d characters, at least %d are wanted", i+1,
				len(entries), len(e), MinKey).At("hook-key", "min-length")
		}
		list = append(list, Key{ID: keys.IDOf(kindHook, []byte(e)).String(), value: e})
	}
	return list, nil
}

// kindHook is the kind of these keys. They have no public half: a hash of that many random characters gives none away.
const kindHook = "hook"

// ActiveID is the id of the key that secrets are derived from, "" where there is none.
func (k Keys) ActiveID() string {
	if len(k) == 0 {
		return ""
	}
	return k[0].ID
}

// Secrets are what the secret of a hook may be: one, of the key that it names; several for a hook that names none; none
// where its key was taken out.
func (k Keys) Secrets(h Hook) []string {
	var list []string
	for _, one := range k {
		if h.KeyID == "" || h.KeyID == one.ID {
			list = append(list, Secret(one.value, h.Tenant, h.Subject, h.Nonce))
		}
	}
	return list
}

// Secret is the secret of a hook: its id and what only the gateway can make of it.
func Secret(key, tenant, subject string, nonce []byte) string {
	mac := hmac.New(sha256.New, []byte(key))
	// The parts cannot run into each other: no name holds a zero byte, and the nonce has a fixed length.
	mac.Write([]byte("chandler.catalog-hook.v1\x00" + tenant + "\x00" + subject + "\x00"))
	mac.Write(nonce)
	return prefix + Hook{Nonce: nonce}.ID() + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Proof is what a request brings: a token, or a signature of its body.
type Proof struct {
	Token     string // Authorization: Bearer, or X-Gitlab-Token
	Signature string // X-Hub-Signature-256: sha256=<hex>
}

// ID is that of the hook whose secret the token is said to be; "" where there is no token, or no secret.
func (p Proof) ID() string {
	rest, ours := strings.CutPrefix(p.Token, prefix)
	if id, _, whole := strings.Cut(rest, "."); ours && whole {
		return id
	}
	return ""
}

// TokenHolds reports whether the token fits the secret, or there is none: what can be known without the body.
func (p Proof) TokenHolds(secret string) bool {
	given, want := sha256.Sum256([]byte(p.Token)), sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(given[:], want[:]) == 1 || p.Token == ""
}

// Empty reports whether a request brings nothing.
func (p Proof) Empty() bool { return p.Token == "" && p.Signature == "" }

// Holds reports whether the proof fits the secret. Where both are brought both must fit. It takes the same
// time whatever is wrong.
func (p Proof) Holds(secret string, body []byte) bool {
	ok := p.TokenHolds(secret) && !p.Empty()
	if p.Signature != "" {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		given, err := hex.DecodeString(strings.TrimPrefix(p.Signature, signature))
		ok = err == nil && strings.HasPrefix(p.Signature, signature) && hmac.Equal(given, mac.Sum(nil)) && ok
	}
	return ok
}
