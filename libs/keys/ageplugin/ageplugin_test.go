package ageplugin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"filippo.io/age/plugin"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys/ageplugin"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
)

// name is that of the plugin that this test's program is where it is started as age-plugin-<name>. Its identities
// name a file with a key, as others name a slot of a device; the key is in that process alone.
const name = "keyfile"

// TestMain is the plugin, or runs the tests.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "age-plugin-"+name {
		os.Exit(m.Run())
	}
	p, err := plugin.New(name)
	if err != nil {
		panic(err)
	}
	p.HandleIdentity(func(file []byte) (age.Identity, error) {
		raw, err := os.ReadFile(string(file))
		if err != nil {
			return nil, err
		}
		return age.ParseX25519Identity(string(raw))
	})
	os.Exit(p.Main())
}

// TestPluginDecrypts: what is encrypted to the public key of a plugin's identity is decrypted by the plugin, which
// alone reads the private half; a key of another is told from a plugin that is missing or fails, which passes.
func TestPluginDecrypts(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	private, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "key")
	entry := plugin.EncodeIdentity(name, []byte(file)) + ":" + private.Recipient().String()
	parse := func() (seal.Identities, *ageplugin.Identity) {
		t.Helper()
		set, err := seal.ParseIdentities(entry, ageplugin.Open)
		if err != nil {
			t.Fatal(err)
		}
		one, ok := set[0].Identity.(*ageplugin.Identity)
		if !ok {
			t.Fatalf("the identity is a %T", set[0].Identity)
		}
		return set, one
	}
	set, _ := parse()
	sealed, err := set.Active().Seal([]byte("kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	fails := func(set seal.Identities, one *ageplugin.Identity, says string) {
		t.Helper()
		_, err := set.Open(sealed, 100)
		if !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want what is unavailable and says %q", err, says)
		}
		if err := one.Check(t.Context()); err == nil {
			t.Error("the check passes")
		}
	}
	set, one := parse()
	fails(set, one, "not found")
	if err := os.Symlink(own, filepath.Join(dir, "age-plugin-"+name)); err != nil {
		t.Fatal(err)
	}
	fails(set, one, "not found") // it rests for some seconds
	ageplugin.SetNow(one, func() time.Time { return time.Now().Add(time.Hour) })
	fails(set, one, "age-plugin-"+name) // there is no key
	if err := os.WriteFile(file, []byte(private.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	set, one = parse()
	if got, err := set.Open(sealed, 100); err != nil || string(got) != "kubeconfig" {
		t.Errorf("decrypted %q, %v", got, err)
	}
	if err := one.Check(t.Context()); err != nil {
		t.Error(err)
	}
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := seal.Of(other)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := stranger.Recipient.Seal([]byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Open(foreign, 100); !errs.Is(err, errs.Unauthenticated) {
		t.Errorf("what was encrypted to another key: %v", err)
	}
	if got, err := append(set, stranger).Open(foreign, 100); err != nil || string(got) != "x" {
		t.Errorf("with another key beside the plugin: %q, %v", got, err)
	}
	for _, bad := range []string{
		"AGE-PLUGIN-KEYFILE-1QQ", "AGE-PLUGIN-X:" + private.Recipient().String(),
		strings.Split(entry, ":")[0] + ":age1x",
	} {
		if _, err := seal.ParseIdentities(bad, ageplugin.Open); !errs.Is(err, errs.Invalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
