package keys_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/cmd/chandler/keys"
)

// TestComplete: secrets of an older version get what they lack and keep what they have.
func TestComplete(t *testing.T) {
	t.Parallel()
	k, err := keys.Make()
	if err != nil {
		t.Fatal(err)
	}
	if same, added, err := k.Complete(); added || err != nil || same != k {
		t.Errorf("nothing is missing: %v %v", added, err)
	}
	old := k
	old.CatalogIdentity, old.CatalogRecipient, old.HookKey = "", "", ""
	old, added, err := old.Complete()
	if !added || err != nil {
		t.Errorf("got %v %v", added, err)
	}
	if old.CatalogIdentity == "" || old.CatalogRecipient == "" || len(old.HookKey) < 32 || old.GrantKey != k.GrantKey ||
		old.Identity != k.Identity {
		t.Errorf("got %+v", old)
	}
	seen := map[string]bool{}
	for _, v := range k.Variables() {
		if v.Value == "" || seen[v.Name] || seen[v.Value] {
			t.Errorf("%s is empty or there twice", v.Name)
		}
		seen[v.Name], seen[v.Value] = true, true
	}
}
