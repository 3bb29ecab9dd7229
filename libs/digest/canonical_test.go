package digest

import (
	"bytes"
	"testing"

	"github.com/gowebpki/jcs"
)

// TestIsCanonical holds texts that the short way must leave alone, and texts that it must take.
func TestIsCanonical(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		want bool
	}{
		{`{}`, true},
		{`[]`, true},
		{`[1,-2,0,true,false,null,"a\n\"\\"]`, true},
		{`{"a":1,"b":{"A":2,"a":3}}`, true},
		{`{"a":"<>&é😀"}`, true},
		{`"x"`, true},
		{`7`, true},
		{`{"":1,"a":2}`, true},
		{`{"b":1,"a":2}`, false},
		{`{"a":1,"a":2}`, false},
		{`{ "a":1}`, false},
		{`[1, 2]`, false},
		{`1.0`, false},
		{`1e3`, false},
		{`-0`, false},
		{`01`, false},
		{`1234567890123456`, false},
		{`"\/"`, false},
		{`"\u0041"`, false},
		{`{"😀":1}`, false},
		{`{"a":1}x`, false},
		{`{"a":1,}`, false},
		{`[1,]`, false},
		{``, false},
		{`"` + "\xff" + `"`, false},
		{"\"\x01\"", false},
		{`nul`, false},
		{`"abc`, false},
		{`"\`, false},
	} {
		if got := isCanonical([]byte(c.in)); got != c.want {
			t.Errorf("isCanonical(%s) = %v", c.in, got)
		}
	}
}

// FuzzIsCanonical proves that what is taken as canonical is what the transformation would return.
func FuzzIsCanonical(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2,{"b":"é\n"}],"c":null}`, `{"b":1,"a":2}`, `"\u2028"`, `-0`, `"\u007f"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !isCanonical(b) {
			return
		}
		want, err := jcs.Transform(b)
		if len(b) > 0 && b[0] != '{' && b[0] != '[' && err != nil {
			return // a bare value is no JSON text to the transformation
		}
		if err != nil || !bytes.Equal(want, b) {
			t.Errorf("%q is taken as canonical, the transformation says %q (%v)", b, want, err)
		}
	})
}
