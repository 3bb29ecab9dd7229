package seal_test

import (
	"bytes"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
)

func identity(t *testing.T) string {
	t.Helper()
	x, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return x.String()
}

func parse(t *testing.T, value string) seal.Identities {
	t.Helper()
	s, err := seal.ParseIdentities(value, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRotation: what was encrypted to an older key is opened while that is in the set, and encrypted to the active one
// it is opened without.
func TestRotation(t *testing.T) {
	t.Parallel()
	const limit = 100
	a, b := identity(t), identity(t)
	old, both, next := parse(t, a), parse(t, b+"\n"+a), parse(t, b)
	plain := []byte("kubeconfig")
	sealed, err := old.Active().Seal(plain)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := next.Open(sealed, limit); !errs.Is(err, errs.Unauthenticated) ||
		!strings.Contains(err.Error(), next.Active().ID.String()) {
		t.Errorf("a key that was not encrypted to: %v", err)
	}
	again, err := both.Reseal(sealed, limit)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		set    seal.Identities
		sealed []byte
		opens  bool
	}{
		"before, by both":            {both, sealed, true},
		"after, by both":             {both, again, true},
		"after, by the new one":      {next, again, true},
		"after, by the old one only": {old, again, false},
	} {
		got, err := c.set.Open(c.sealed, limit)
		if c.opens != (err == nil) || c.opens && !bytes.Equal(got, plain) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := both.Open(again, len(plain)-1); !errs.Is(err, errs.TooLarge) {
		t.Errorf("more than the limit: %v", err)
	}
	if _, err := both.Open(again[:len(again)-3], limit); !errs.Is(err, errs.Invalid) {
		t.Errorf("damaged: %v", err)
	}
	if r, err := seal.ParseRecipient(both.Active().String()); err != nil || r.ID != next.Active().ID {
		t.Errorf("the recipient's id is %s, %v; the identity's is %s", r.ID, err, next.Active().ID)
	}
}

// TestParseIdentitiesNamesThePlace: an identity that cannot be read is named by its place and never quoted.
func TestParseIdentitiesNamesThePlace(t *testing.T) {
	t.Parallel()
	good := identity(t)
	bad := good[:len(good)-4] + "QQQQ"
	for value, want := range map[string]string{"": "no age identity", good + "," + bad: "identity 2 of 2"} {
		_, err := seal.ParseIdentities(value, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), bad[20:40]) {
			t.Errorf("%v", err)
		}
	}
}
