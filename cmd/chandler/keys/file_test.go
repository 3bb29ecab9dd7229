package keys_test

import (
	"crypto/ed25519"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/plugin"

	"github.com/chandler-fleet/chandler/cmd/chandler/keys"
	libkeys "github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
	"github.com/chandler-fleet/chandler/libs/keys/sshagent"
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
	f, err := keys.ParseFile([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
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

// TestAFileSetsKeysOnce: a file that sets keys twice, in whatever form, is refused with the lines; a comment, and what
// is not about keys, is not.
func TestAFileSetsKeysOnce(t *testing.T) {
	t.Parallel()
	for _, second := range []string{
		"CHANDLER_SOURCE_KEY=b", "export CHANDLER_SOURCE_KEY=b", " CHANDLER_SOURCE_KEY = b", "CHANDLER_SOURCE_KEY=",
	} {
		_, err := keys.ParseFile([]byte("CHANDLER_SOURCE_KEY=a\n\n" + second + "\n"))
		if err == nil || !strings.Contains(err.Error(), "CHANDLER_SOURCE_KEY is set on lines 1, 3") {
			t.Errorf("%q: %v", second, err)
		}
	}
	public := "CHANDLER_CREDENTIALS_RECIPIENT="
	if _, err := keys.ParseFile([]byte(public + "a\n" + public + "a")); err == nil {
		t.Error("a public half is set twice")
	}
	for _, other := range []string{
		"#CHANDLER_SOURCE_KEY=a", "# CHANDLER_SOURCE_KEY=a", "CHANDLER_SOURCE_KEY_OLD=a", "A=1\nA=2",
	} {
		if _, err := keys.ParseFile([]byte("CHANDLER_SOURCE_KEY=a\n" + other)); err != nil {
			t.Errorf("%q: %v", other, err)
		}
	}
}

// TestRotateAnExportedSetting: a file that a shell reads keeps its form, and gets no second line of a setting.
func TestRotateAnExportedSetting(t *testing.T) {
	t.Parallel()
	f, err := keys.ParseFile([]byte("export CHANDLER_HOOK_KEY='" + strings.Repeat("a", 40) + "'\n"))
	if err != nil {
		t.Fatal(err)
	}
	old := only(t, f, keys.Hook)[0]
	next, err := f.Add(keys.Hook)
	if err != nil {
		t.Fatal(err)
	}
	if got := of(t, f, keys.Hook); !slices.Equal(got, []string{old, next}) {
		t.Errorf("keys %v", got)
	}
	out := string(f.Bytes())
	if !strings.HasPrefix(out, "export CHANDLER_HOOK_KEY=a") || strings.Count(out, "\n") != 1 {
		t.Errorf("the file: %q", out)
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

// TestKeysElsewhere: keys of an agent and of a plugin have ids, and are rotated in a file as others are, though no
// agent and no plugin is there; the gateway gets the public half that a plugin decrypts for.
func TestKeysElsewhere(t *testing.T) {
	t.Parallel()
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	device, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	recipient, err := seal.ParseRecipient(device.Recipient().String())
	if err != nil {
		t.Fatal(err)
	}
	k, err := keys.Make()
	if err != nil {
		t.Fatal(err)
	}
	f, err := keys.ParseFile([]byte("CHANDLER_GRANT_KEY=" + k.GrantKey + "," + sshagent.Entry(public) +
		"\nCHANDLER_CREDENTIALS_IDENTITY=" + k.Identity + "," + plugin.EncodeIdentity("device", []byte("slot 9")) +
		":" + device.Recipient().String() + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	for purpose, id := range map[keys.Purpose]string{
		keys.Grant: libkeys.IDOf(libkeys.KindSign, public).String(), keys.Credentials: recipient.ID.String(),
	} {
		old := of(t, f, purpose)
		if len(old) != 2 || old[1] != id {
			t.Fatalf("%s: keys %v, want %s as the second", purpose, old, id)
		}
		if err := f.Activate(purpose, id); err != nil {
			t.Fatal(err)
		}
		if got := of(t, f, purpose); got[0] != id {
			t.Errorf("%s: after activate %v", purpose, got)
		}
	}
	want := "CHANDLER_CREDENTIALS_RECIPIENT=" + device.Recipient().String()
	if !strings.Contains(string(f.Bytes()), want) {
		t.Error("the gateway would encrypt to another key")
	}
}
