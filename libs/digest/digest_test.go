package digest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/libs/digest"
)

// The values below are stored in logs; they must never change (DESIGN, settled details: Digests).
func TestKnownDigests(t *testing.T) {
	t.Parallel()
	if got, want := digest.Bytes(nil), digest.Digest(
		"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"); got != want {
		t.Errorf("Bytes(nil) = %s, want %s", got, want)
	}
	got, err := digest.JSON("chandler.test.v1", map[string]any{"b": []int{2, 1}, "a": "<ü>"})
	if err != nil {
		t.Fatal(err)
	}
	want := digest.Bytes([]byte("chandler.test.v1\n" + `{"a":"<ü>","b":[2,1]}`))
	if got != want {
		t.Errorf("JSON = %s, want the digest of prefix and canonical form %s", got, want)
	}
}

func TestJSONIgnoresOrderAndSpaceOfInput(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.MapOf(rapid.StringMatching(`[a-z<>&ü]{0,6}`), rapid.IntRange(-1<<40, 1<<40)).Draw(t, "m")
		indented, err := json.MarshalIndent(m, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		a, err := digest.JSON("chandler.test.v1", m)
		if err != nil {
			t.Fatal(err)
		}
		b, err := digest.JSON("chandler.test.v1", json.RawMessage(indented))
		if err != nil {
			t.Fatal(err)
		}
		if a != b {
			t.Fatalf("digests differ for one value: %s and %s", a, b)
		}
	})
}

func TestTypeSeparatesDigests(t *testing.T) {
	t.Parallel()
	a, errA := digest.JSON("chandler.plan.v1", 1)
	b, errB := digest.JSON("chandler.input.v1", 1)
	if errA != nil || errB != nil || a == b {
		t.Errorf("two types share %s (%v, %v)", a, errA, errB)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	valid := digest.Bytes([]byte("x"))
	if got, err := digest.Parse(string(valid)); err != nil || got != valid {
		t.Errorf("Parse(%s) = %s, %v", valid, got, err)
	}
	for name, s := range map[string]string{
		"empty":        "",
		"no prefix":    valid.Hex(),
		"other hash":   "sha512:" + valid.Hex(),
		"short":        "sha256:abcd",
		"upper case":   "sha256:" + strings.ToUpper(valid.Hex()),
		"not hex":      "sha256:" + strings.Repeat("z", 64),
		"with newline": string(valid) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d, err := digest.Parse(s); err == nil {
				t.Errorf("Parse(%q) = %s, want an error", s, d)
			}
		})
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	d := digest.Bytes(nil)
	if got, want := d.Short(), "e3b0c44298fc"; got != want {
		t.Errorf("Short() = %q, want %q", got, want)
	}
	if got := digest.Digest("sha256:ab").Short(); got != "ab" {
		t.Errorf("Short() of a cut digest = %q", got)
	}
}

func TestJSONRefusesWhatIsNotJSON(t *testing.T) {
	t.Parallel()
	if _, err := digest.JSON("chandler.test.v1", json.RawMessage(`{"a":`)); err == nil {
		t.Error("a cut document has a digest")
	}
	if _, err := digest.JSON("chandler.test.v1", func() {}); err == nil {
		t.Error("a function has a digest")
	}
}
