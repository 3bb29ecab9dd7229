package value

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzPlainReference proves that what is quickly found to be a pull specification is one (R-CAT-28).
func FuzzPlainReference(f *testing.F) {
	hex := strings.Repeat("0123456789abcdef", 4)
	for _, s := range []string{
		"a.test/b", "a.test:80/b/c-d:1.0", "a.test/b@sha256:" + hex, "a.test/b:x@sha256:" + hex,
		"a", "a/b:", "/b", "a.test/b@sha256:0", "A/b", "a..b/c", "a:x/b", "a/b:c:d",
		"a/b:" + strings.Repeat("x", 200),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !plainReference(s) {
			return
		}
		if m := reference.FindStringSubmatch(s); len(m) < 2 || len(m[1]) > maxReference {
			t.Errorf("%q is taken for a pull specification", s)
		}
	})
}

// TestPlain proves that the quick looks take what is usual.
func TestPlain(t *testing.T) {
	t.Parallel()
	hex := strings.Repeat("0123456789abcdef", 4)
	for _, s := range []string{"registry.example.com/team/name:v1.2.3", "registry.example.com:5000/a/b-c@sha256:" +
		hex} {
		if !plainReference(s) {
			t.Errorf("%s is not plain", s)
		}
	}
	for in, want := range map[string]bool{
		`{"annotations":{"a":"b"},"description":"x","installModes":[{"type":"x","supported":true}],"keywords":["a"],"provider":{"name":"n"},"unknown":1}`: true,
		`{}`:                           true,
		`{"annotations":{"a":1}}`:      false,
		`{"Annotations":{}}`:           false,
		`{"keywords":[1]}`:             false,
		`{"links":["x"]}`:              false,
		`{"description":null}`:         false,
		`[]`:                           false,
		"\n{}":                         false,
		`{"links":[],"maintainers":7}`: false,
	} {
		if got := plainMetadata(json.RawMessage(in)); got != want {
			t.Errorf("%s: %v", in, got)
		}
		if want && form(json.RawMessage(in), &map[string]any{}) != nil {
			t.Errorf("%s has no form", in)
		}
	}
}
