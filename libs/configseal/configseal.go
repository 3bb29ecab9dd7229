// Package configseal keeps configuration values from those who carry them: NATS, and the step logs in the cluster.
//
// The installer has one secret. From it and the id of a cluster a key is derived (HKDF-SHA256) that hub and executor of
// that cluster share, and no other cluster's: every replica derives the same one, so that it survives restarts and the
// hand-over of a cluster, and an executor elsewhere needs that one key alone. A value is sealed by AES-256-GCM with a
// nonce made of the value and its commitment by HMAC, so that a value is sealed to the same bytes whenever a message is
// made anew: a message that says the same stays the same. Equal values of one cluster under different commitments
// differ. Tenant, cluster and the id of the key are authenticated. The package is pure.
package configseal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// version is what a sealed value begins with.
const version = "sealed1"

// minSecret is how many bytes a secret has at least: those of a key.
const minSecret = 32

// idBytes tells the keys of one cluster apart; it need not resist guessing.
const idBytes = 6

// Root are the secrets that keys of clusters are derived from. The zero value seals and opens nothing.
type Root struct{ secrets [][]byte }

// NewRoot returns a root. Values are sealed by the first secret, and opened by any: others are on their way out.
func NewRoot(secrets ...[]byte) (Root, error) {
	if len(secrets) == 0 {
		return Root{}, errs.New(errs.Invalid, "no secret to seal configuration values with")
	}
	for _, s := range secrets {
		if len(s) < minSecret {
			return Root{}, errs.New(errs.Invalid, "a secret to seal configuration values with has %d bytes, want %d",
				len(s), minSecret)
		}
	}
	return Root{secrets: secrets}, nil
}

// Key seals and opens values of one cluster. The zero value does neither.
type Key struct {
	scope string
	parts []part
}

type part struct {
	id    string
	aead  cipher.AEAD
	nonce []byte // key of the HMAC that nonces are made by
}

// For derives the key of a cluster.
func (r Root) For(tenant, clusterID string) (Key, error) {
	k := Key{scope: scopeOf(tenant, clusterID)}
	for _, secret := range r.secrets {
		m, err := derive(secret, k.scope)
		if err != nil {
			return Key{}, err
		}
		one, err := m.part()
		if err != nil {
			return Key{}, err
		}
		k.parts = append(k.parts, one)
	}
	if len(k.parts) == 0 {
		return Key{}, errs.New(errs.Internal, "no secret to seal configuration values with")
	}
	return k, nil
}

// material is what a part is made of: the key, the key of the HMAC that nonces are made by, and the id.
type material [2*sha256.Size + idBytes]byte

func derive(secret []byte, scope string) (m material, err error) {
	at := 0
	for _, use := range []struct {
		name string
		size int
	}{{"key", sha256.Size}, {"nonce", sha256.Size}, {"id", idBytes}} {
		raw, err := hkdf.Key(sha256.New, secret, nil, "chandler.sealed.v1\x00"+use.name+"\x00"+scope, use.size)
		if err != nil {
			return m, errs.Wrap(errs.Internal, err, "derive a key")
		}
		at += copy(m[at:], raw)
	}
	return m, nil
}

func (m material) part() (part, error) {
	block, err := aes.NewCipher(m[:sha256.Size])
	if err != nil {
		return part{}, errs.Wrap(errs.Internal, err, "derive a key")
	}
	aead, err := cipher.NewGCM(block)
	return part{
		id: hex.EncodeToString(m[2*sha256.Size:]), aead: aead, nonce: m[sha256.Size : 2*sha256.Size],
	}, errs.Wrap(errs.Internal, err, "derive a key")
}

// Export is the key of a cluster as text, for an executor elsewhere: ParseKey reads it. It is a secret.
func (r Root) Export(tenant, clusterID string) (string, error) {
	texts := make([]string, 0, len(r.secrets))
	for _, secret := range r.secrets {
		m, err := derive(secret, scopeOf(tenant, clusterID))
		if err != nil {
			return "", err
		}
		texts = append(texts, base64.RawStdEncoding.EncodeToString(m[:]))
	}
	if len(texts) == 0 {
		return "", errs.New(errs.Internal, "no secret to seal configuration values with")
	}
	return strings.Join(texts, ","), nil
}

// ParseKey reads what Export wrote for a cluster. Errors are of kind errs.Invalid, and never quote the key.
func ParseKey(tenant, clusterID, text string) (Key, error) {
	k := Key{scope: scopeOf(tenant, clusterID)}
	entries := strings.Split(text, ",")
	for i, e := range entries {
		raw, err := base64.RawStdEncoding.Strict().DecodeString(e)
		if err != nil || len(raw) != len(material{}) {
			return Key{}, errs.New(errs.Invalid, "key %d of %d that opens configuration values: want %d bytes in base64 "+
				"without padding", i+1, len(entries), len(material{}))
		}
		one, err := material(raw).part()
		if err != nil {
			return Key{}, err
		}
		k.parts = append(k.parts, one)
	}
	return k, nil
}

func scopeOf(tenant, clusterID string) string { return tenant + "\x00" + clusterID }

// Seal seals a value, a JSON document. What is nothing, or null, stays so: that there is no value is no secret.
func (k Key) Seal(commitment string, value json.RawMessage) (json.RawMessage, error) {
	if none(value) {
		return value, nil
	}
	if len(k.parts) == 0 {
		return nil, errs.New(errs.Internal, "no key to seal a configuration with")
	}
	p := k.parts[0]
	mac := hmac.New(sha256.New, p.nonce)
	_, _ = mac.Write([]byte(commitment + "\x00")) // never fails
	_, _ = mac.Write(value)
	nonce := mac.Sum(nil)[:p.aead.NonceSize()]
	body := p.aead.Seal(nonce, nonce, value, k.about(p.id))
	return json.Marshal(version + "." + p.id + "." + base64.RawStdEncoding.EncodeToString(body))
}

// Open opens what Seal made. Errors are of kind errs.Forbidden, and name no value.
func (k Key) Open(value json.RawMessage) (json.RawMessage, error) {
	if none(value) {
		return value, nil
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		return nil, errs.New(errs.Forbidden, "a configuration is not sealed: it is not the hub's")
	}
	parts := strings.Split(text, ".")
	if len(parts) != 3 || parts[0] != version {
		return nil, errs.New(errs.Forbidden, "a configuration is not sealed in a form that is known here")
	}
	body, err := base64.RawStdEncoding.Strict().DecodeString(parts[2])
	if err != nil {
		return nil, errs.New(errs.Forbidden, "a sealed configuration is damaged")
	}
	for _, p := range k.parts {
		if p.id != parts[1] || len(body) < p.aead.NonceSize() {
			continue
		}
		n := p.aead.NonceSize()
		plain, err := p.aead.Open(nil, body[:n], body[n:], k.about(p.id))
		if err != nil {
			return nil, errs.New(errs.Forbidden, "a sealed configuration is damaged, or another cluster's")
		}
		return plain, nil
	}
	return nil, errs.New(errs.Forbidden,
		"a configuration is sealed by a key that this cluster does not have, or has no more")
}

func (k Key) about(id string) []byte { return []byte(version + "\x00" + id + "\x00" + k.scope) }

func none(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }

// String keeps keys out of logs.
func (k Key) String() string { return "key of a cluster" }

// GoString implements fmt.GoStringer.
func (k Key) GoString() string { return k.String() }

// String keeps secrets out of logs.
func (r Root) String() string { return "secrets" }

// GoString implements fmt.GoStringer.
func (r Root) GoString() string { return r.String() }
