package keys_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/cmd/chandler/keys"
)

// TestRotateInAFile: a file keeps every key through a rotation until it is retired, the public half follows the active
// key, and what is not about keys stays as it is.
func TestRotateInAFile(t *testing.T) {
	t.Parallel()
	k, err := keys.Make()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# secrets of this installation\n")
	for _, v := range k.Variables() {
		b.WriteString(v.Name + "=" + v.Value + "\n")
	}
	f := keys.ParseFile([]byte(b.String()))
	if string(f.Bytes()) != b.String() {
		t.Fatal("a file that is not changed is another one")
	}
	for _, p := range keys.Purposes() {
		old := only(t, f, p)
		next, err := f.Add(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := of(t, f, p); !slices.Equal(got, []string{old[0], next}) {
			t.Errorf("%s: after add %v", p, got)
		}
		if err := f.Retire(p, old[0]); err == nil || !strings.Contains(err.Error(), "is active") {
			t.Errorf("%s: the active key was retired: %v", p, err)
		}
		if err := f.Activate(p, next); err != nil {
			t.Fatal(err)
		}
		if got := of(t, f, p); !slices.Equal(got, []string{next, old[0]}) {
			t.Errorf("%s: after activate %v", p, got)
		}
		if err := f.Retire(p, "0000000000000000"); err == nil || !strings.Contains(err.Error(), next) {
			t.Errorf("%s: a key that is not there: %v", p, err)
		}
		if err := f.Retire(p, old[0]); err != nil {
			t.Fatal(err)
		}
		if got := only(t, f, p); got[0] != next {
			t.Errorf("%s: after retire %v", p, got)
		}
	}
	out := string(f.Bytes())
	for _, gone := range []string{
		k.GrantKey, k.Identity, k.Recipient, k.CatalogIdentity, k.CatalogRecipient, k.HookKey,
	} {
		if strings.Contains(out, gone) {
			t.Error("a key that was retired is still in the file")
		}
	}
	for _, stays := range []string{"# secrets of this installation\n", k.Token, k.PostgresPassword} {
		if !strings.Contains(out, stays) {
			t.Errorf("%q is gone", stays)
		}
	}
	if strings.Count(out, "\n") != strings.Count(b.String(), "\n") {
		t.Error("lines were added")
	}
	if _, err := f.Add("grants"); err == nil || !strings.Contains(err.Error(), "grant credentials") {
		t.Errorf("an unknown purpose: %v", err)
	}
}

func of(t *testing.T, f *keys.File, p keys.Purpose) (ids []string) {
	t.Helper()
	list, err := f.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.Purpose == p {
			if e.Active != (len(ids) == 0) {
				t.Errorf("%s: key %s is active: %v", p, e.Key, e.Active)
			}
			ids = append(ids, e.Key)
		}
	}
	return ids
}

func only(t *testing.T, f *keys.File, p keys.Purpose) []string {
	t.Helper()
	ids := of(t, f, p)
	if len(ids) != 1 {
		t.Fatalf("%s has keys %v, want one", p, ids)
	}
	return ids
}
