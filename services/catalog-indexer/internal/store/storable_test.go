package store

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestStorable proves what becomes of texts that Postgres does not take.
func TestStorable(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", maxKeyText)
	for name, c := range map[string]struct{ got, want string }{
		"as it is":       {Storable("buoy.v1 – é"), "buoy.v1 – é"},
		"NUL":            {Storable("a\x00b"), "a\ufffdb"},
		"no UTF-8":       {Storable("a\xff\xfeb"), "a\ufffdb"},
		"a key as it is": {storableKey(strings.Repeat("x", maxKeyText)), strings.Repeat("x", maxKeyText)},
		"JSON": {string(storableJSON([]byte(`{"a\u0000":"\u0000\n\u00e9"}`))), `{"a` + "\ufffd" + `":"` +
			"\ufffd" + `\n\u00e9"}`},
		"a backslash and u0": {string(storableJSON([]byte(`"\\u0000 \\\u0000"`))), `"\\u0000 \\` + "\ufffd" + `"`},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", name, c.got, c.want)
		}
	}
	cut := storableKey(long)
	if len(cut) > maxKeyText || !utf8.ValidString(cut) || cut == storableKey(long+"x") ||
		!strings.HasPrefix(long, cut[:100]) {
		t.Errorf("a long key: %d bytes, %q", len(cut), cut)
	}
	if raw := storableJSON([]byte(`"\\\\u0000"`)); !json.Valid(raw) || string(raw) != `"\\\\u0000"` {
		t.Errorf("escaped backslashes: %s", raw)
	}
}
