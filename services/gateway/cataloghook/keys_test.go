package cataloghook_test

import (
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/cataloghook"
)

// TestKeysOverlap: secrets of hooks that were made with an older key hold while it is in the set, new ones are made
// with the first, and a hook of a key that was taken out has no secret.
func TestKeysOverlap(t *testing.T) {
	t.Parallel()
	a, b := strings.Repeat("a", cataloghook.MinKey), strings.Repeat("b", cataloghook.MinKey)
	parse := func(value string) cataloghook.Keys {
		k, err := cataloghook.ParseKeys(value)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	old, both, next := parse(a), parse(b+","+a), parse(b)
	hook := cataloghook.Hook{Tenant: "t", Subject: "s", Nonce: []byte("n"), KeyID: old.ActiveID()}
	secret := old.Secrets(hook)[0]
	if got := both.Secrets(hook); len(got) != 1 || got[0] != secret || both.ActiveID() != next.ActiveID() {
		t.Errorf("with both keys the secret is one of %d", len(got))
	}
	if got := next.Secrets(hook); len(got) != 0 {
		t.Error("a hook of a key that was taken out still has a secret")
	}
	hook.KeyID = "" // of before there were ids
	if got := both.Secrets(hook); len(got) != 2 || got[1] != secret {
		t.Errorf("a hook without the id of a key has %d secrets", len(got))
	}
	_, err := cataloghook.ParseKeys(a + "," + b[1:])
	if !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), "hook key 2 of 2") ||
		strings.Contains(err.Error(), b[1:]) {
		t.Errorf("a short key: %v", err)
	}
}
