package keys_test

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys"
)

func seed(b byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, ed25519.SeedSize))
}

func parse(t *testing.T, value string) keys.Signing {
	t.Helper()
	s, err := keys.ParseSigning(value, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRotation: at each step of a rotation every process accepts what every other process signs, also while some have
// the settings of the step before; afterwards the old key is believed no more.
func TestRotation(t *testing.T) {
	t.Parallel()
	old, next := seed(1), seed(2)
	public := keys.PublicEntry(parse(t, old).Accepted.Public()[0])
	steps := []keys.Signing{
		parse(t, old),
		parse(t, old+","+next),
		parse(t, next+"\n"+old),
		parse(t, next+" , "+public), // the private half is gone, what it signed still counts
		parse(t, next),
	}
	message := []byte("message")
	signed := make([][]byte, len(steps))
	for i, s := range steps {
		var err error
		if signed[i], err = keys.Sign(s.Active, message); err != nil {
			t.Fatal(err)
		}
		if id, ok := keys.SignedBy(signed[i]); !ok || id != s.ActiveID() {
			t.Errorf("step %d: the signature is by %s, active is %s", i, id, s.ActiveID())
		}
	}
	for i := range steps {
		for j := max(0, i-1); j <= min(i+1, len(steps)-1); j++ {
			if !steps[i].Accepted.Verify(message, signed[j]) {
				t.Errorf("who is at step %d refuses what is signed at step %d", i, j)
			}
		}
	}
	if steps[4].Accepted.Verify(message, signed[0]) {
		t.Error("a key that was retired is still believed")
	}
	if steps[0].Accepted.Verify(message, signed[4]) {
		t.Error("a key that nobody was told of is believed")
	}
}

// TestVerifyRefuses: nothing but the whole signature of an accepted key counts.
func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	mine, other := parse(t, seed(1)), parse(t, seed(2))
	both := keys.Accept(append(mine.Accepted.Public(), other.Accepted.Public()...)...)
	good, err := keys.Sign(mine.Active, []byte("m"))
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := keys.Sign(other.Active, []byte("m"))
	if err != nil {
		t.Fatal(err)
	}
	if !both.Verify([]byte("m"), good) {
		t.Fatal("a good signature is refused")
	}
	for name, s := range map[string][]byte{
		"nothing":                    nil,
		"without an id":              good[keys.IDBytes:],
		"by another key with its id": append(bytes.Clone(good[:keys.IDBytes]), foreign[keys.IDBytes:]...),
		"with another key's id":      append(bytes.Clone(foreign[:keys.IDBytes]), good[keys.IDBytes:]...),
		"with an unknown key":        append(make([]byte, keys.IDBytes), good[keys.IDBytes:]...),
		"with something appended":    append(bytes.Clone(good), 0),
	} {
		if both.Verify([]byte("m"), s) {
			t.Errorf("a signature %s is accepted", name)
		}
	}
	if (keys.Accepted{}).Verify([]byte("m"), good) || !keys.Accept(nil, []byte("short")).Empty() {
		t.Error("a set without keys believes somebody")
	}
}

// device is a key elsewhere.
type device struct {
	crypto.Signer
	answer []byte
	err    error
}

func (d device) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) { return d.answer, d.err }

// TestDevice: what a device answers is checked before it is sent anywhere, and its failure is one that passes.
func TestDevice(t *testing.T) {
	t.Parallel()
	s := parse(t, seed(1))
	for name, d := range map[string]device{
		"a wrong signature": {Signer: s.Active, answer: make([]byte, ed25519.SignatureSize)},
		"half of one":       {Signer: s.Active, answer: []byte{1}},
		"an error":          {Signer: s.Active, err: errors.New("no token in the slot")},
	} {
		if _, err := keys.Sign(d, []byte("m")); !errs.Is(err, errs.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	open := func(name string) (crypto.Signer, bool, error) {
		return s.Active, name == "device:1", nil
	}
	if set, err := keys.ParseSigning("device:1,"+seed(2), open); err != nil || set.ActiveID() != s.ActiveID() ||
		len(set.Accepted.Public()) != 2 {
		t.Errorf("%+v, %v", set, err)
	}
}

// TestParseSigningNamesThePlace: a key that cannot be read is named by its place and never quoted.
func TestParseSigningNamesThePlace(t *testing.T) {
	t.Parallel()
	const secret = "c2VjcmV0"
	public := keys.PublicEntry(parse(t, seed(1)).Accepted.Public()[0])
	for value, want := range map[string]string{
		"":                                 "there is no key",
		secret:                             "key 1 of 1",
		seed(1) + "," + secret:             "key 2 of 2",
		public:                             "has to be able to sign",
		seed(1) + "," + "public:" + secret: "key 2 of 2",
	} {
		_, err := keys.ParseSigning(value, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v", value, err)
		}
	}
}
