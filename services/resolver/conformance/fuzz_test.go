package conformance

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// maxFuzzed bounds the cases that are resolved: what is looked for are panics, not patience.
const maxFuzzed = 1 << 13

// FuzzCase reads and resolves whatever somebody hands in as a case: it may be refused, and must not panic. What
// comes of it is judged the same twice.
func FuzzCase(f *testing.F) {
	files, err := filepath.Glob("testdata/semantic/*.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := Decode(raw)
		if err != nil || len(raw) > maxFuzzed {
			return
		}
		r, err := Resolve(c, func(k Catalog) (*Content, error) {
			if k.File != "" {
				return nil, errors.New("there are no files here")
			}
			return NewContent(k.Inline)
		})
		if err != nil || c.Expect == nil {
			return
		}
		if first, second := Judge(r), Judge(r); first.Verdict != second.Verdict {
			t.Errorf("judged %s, then %s", first.Verdict, second.Verdict)
		}
	})
}
