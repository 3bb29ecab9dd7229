package configseal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/configseal"
	"github.com/chandler-fleet/chandler/libs/errs"
)

func key(t *testing.T, cluster string, secrets ...string) configseal.Key {
	t.Helper()
	var all [][]byte
	for _, s := range secrets {
		all = append(all, []byte(strings.Repeat(s, 32)))
	}
	r, err := configseal.NewRoot(all...)
	if err != nil {
		t.Fatal(err)
	}
	k, err := r.For("default", cluster)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A value is opened by the key of its cluster alone, by whichever replica, and is sealed to the same bytes again.
func TestAValueIsItsClusters(t *testing.T) {
	t.Parallel()
	value := json.RawMessage(`{"env":[{"name":"PASSWORD","value":"s3cr3t"}]}`)
	east := key(t, "east", "a")
	s, err := east.Seal("c1:one", value)
	if err != nil || !json.Valid(s) || bytes.Contains(s, []byte("s3cr3t")) {
		t.Fatalf("%s: %v", s, err)
	}
	if again, err := key(t, "east", "a").Seal("c1:one", value); err != nil || !bytes.Equal(s, again) {
		t.Errorf("sealed again: %s: %v", again, err)
	}
	if other, err := east.Seal("c1:two", value); err != nil || bytes.Equal(s, other) {
		t.Errorf("the same value under another commitment shows that it is the same: %v", err)
	}
	for name, k := range map[string]configseal.Key{
		"itself": east, "a replica": key(t, "east", "a"), "after a rotation": key(t, "east", "b", "a"),
	} {
		if got, err := k.Open(s); err != nil || !bytes.Equal(got, value) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for name, k := range map[string]configseal.Key{
		"another cluster": key(t, "west", "a"), "another installer": key(t, "east", "b"), "no key": {},
	} {
		if got, err := k.Open(s); !errs.Is(err, errs.Forbidden) || got != nil ||
			strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for i := range s[1 : len(s)-1] {
		bad := bytes.Clone(s)
		bad[i+1] ^= 1
		if got, err := east.Open(bad); err == nil && !bytes.Equal(got, value) {
			t.Errorf("changed at %d it opens to %s", i, got)
		}
	}
	if got, err := east.Open(value); !errs.Is(err, errs.Forbidden) {
		t.Errorf("a value that nobody sealed is taken: %s, %v", got, err)
	}
	if _, err := (configseal.Key{}).Seal("c", value); err == nil {
		t.Error("without a key it is passed on in the clear")
	}
	if text := fmt.Sprintf("%v %+v %#v", east, east, east); strings.Contains(text, "aaaa") {
		t.Errorf("printed: %s", text)
	}
	for _, nothing := range []json.RawMessage{nil, json.RawMessage("null")} {
		if got, err := east.Seal("c", nothing); err != nil || !bytes.Equal(got, nothing) {
			t.Errorf("%s became %s: %v", nothing, got, err)
		}
		if got, err := east.Open(nothing); err != nil || !bytes.Equal(got, nothing) {
			t.Errorf("%s became %s: %v", nothing, got, err)
		}
	}
	if _, err := configseal.NewRoot([]byte("short")); err == nil {
		t.Error("a short secret is taken")
	}
}

// An executor elsewhere is given the key of its cluster as text: it opens and seals as the hub does, its own alone.
func TestAKeyIsExported(t *testing.T) {
	t.Parallel()
	root, err := configseal.NewRoot([]byte(strings.Repeat("b", 32)), []byte(strings.Repeat("a", 32)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := root.Export("default", "east")
	if err != nil {
		t.Fatal(err)
	}
	got, err := configseal.ParseKey("default", "east", text)
	if err != nil {
		t.Fatal(err)
	}
	value := json.RawMessage(`{"env":[]}`)
	for name, by := range map[string]configseal.Key{"now": key(t, "east", "b"), "before": key(t, "east", "a")} {
		sealed, err := by.Seal("c1:one", value)
		if err != nil {
			t.Fatal(err)
		}
		if opened, err := got.Open(sealed); err != nil || !bytes.Equal(opened, value) {
			t.Errorf("sealed with the secret of %s: %s, %v", name, opened, err)
		}
	}
	mine, err := got.Seal("c1:one", value)
	if want, _ := key(t, "east", "b").Seal("c1:one", value); err != nil || !bytes.Equal(mine, want) {
		t.Errorf("sealed elsewhere: %s, want %s: %v", mine, want, err)
	}
	other, err := configseal.ParseKey("default", "west", text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Open(mine); !errs.Is(err, errs.Forbidden) {
		t.Errorf("as the key of another cluster: %v", err)
	}
	for _, bad := range []string{"", "x", text + ",", text[1:]} {
		if _, err := configseal.ParseKey("default", "east", bad); !errs.Is(err, errs.Invalid) ||
			bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("ParseKey(%q): %v", bad, err)
		}
	}
}
