package bodies_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
)

const tenant = "acme"

// of makes keys of one kind.
func of(t *testing.T, kind bodies.Kind, value string) bodies.Keys {
	t.Helper()
	k, err := bodies.Settings{kind: &value}.Keys()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func row(kind bodies.Kind, body string) bodies.Row {
	salt := []byte("0123456789abcdef")
	return bodies.Row{Commitment: digest.Commitment(salt, []byte(body)), Kind: kind, Salt: salt, Body: []byte(body)}
}

// TestABodyIsItsRows: a body opens in its own row alone: under another tenant, kind, commitment or key it does not, and
// damaged it does not. Nothing of it is in what is stored or in an error.
func TestABodyIsItsRows(t *testing.T) {
	t.Parallel()
	const secret = `{"env":[{"name":"P","value":"hunter2"}]}`
	k := bodiestest.Keys(t)
	in := row(bodies.Configuration, secret)
	sealed, err := k.Seal(tenant, in)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed.Body, []byte("hunter2")) || bytes.Contains(sealed.Body, in.Salt) || len(sealed.Salt) != 0 {
		t.Errorf("what is stored shows the body or its salt: %q", sealed.Body)
	}
	if got, err := k.Open(tenant, sealed); err != nil || string(got) != secret {
		t.Errorf("opened %q, %v", got, err)
	}
	if again, err := k.Seal(tenant, in); err != nil || bytes.Equal(again.Body, sealed.Body) {
		t.Errorf("the same body twice is the same bytes, %v", err)
	}
	other, err := k.Seal(tenant, row(bodies.Configuration, `{"env":[{"name":"P","value":"mallory"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	change := func(f func(*bodies.Row)) bodies.Row {
		r := sealed
		r.Body = bytes.Clone(r.Body)
		f(&r)
		return r
	}
	for name, c := range map[string]struct {
		tenant string
		row    bodies.Row
	}{
		"of another tenant":        {"eve", sealed},
		"as another kind":          {tenant, change(func(r *bodies.Row) { r.Kind = bodies.Annotations })},
		"in another row":           {tenant, change(func(r *bodies.Row) { r.Body = other.Body })},
		"under another commitment": {tenant, change(func(r *bodies.Row) { r.Commitment = other.Commitment })},
		"in the form of a later":   {tenant, change(func(r *bodies.Row) { r.Body[0]++ })},
		"with another byte":        {tenant, change(func(r *bodies.Row) { r.Body[len(r.Body)-1]++ })},
		"with a byte less":         {tenant, change(func(r *bodies.Row) { r.Body = r.Body[:len(r.Body)-1] })},
		"without bytes":            {tenant, change(func(r *bodies.Row) { r.Body = nil })},
		"said to be in the clear":  {tenant, change(func(r *bodies.Row) { r.KeyID = "" })},
		"in the clear, but another": {
			tenant, bodies.Row{Commitment: sealed.Commitment, Kind: sealed.Kind, Body: []byte(`{}`)},
		},
	} {
		got, err := k.Open(c.tenant, c.row)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := k.Open(tenant, in); err != nil || string(got) != secret {
		t.Errorf("a row of a release before: %q, %v", got, err)
	}
}

// TestSaltsOfEachLength: the shortest and the longest salt that Seal takes come back, a longer one is refused.
func TestSaltsOfEachLength(t *testing.T) {
	t.Parallel()
	k := bodiestest.Keys(t)
	for _, n := range []int{0, 1, 254, 255} {
		for _, body := range []string{"", "text"} {
			salt := bytes.Repeat([]byte{'s'}, n)
			in := bodies.Row{
				Commitment: digest.Commitment(salt, []byte(body)), Kind: bodies.Source, Salt: salt, Body: []byte(body),
			}
			sealed, err := k.Seal(tenant, in)
			if err != nil {
				t.Fatal(err)
			}
			got, err := k.Clear(tenant, sealed)
			if err != nil || !bytes.Equal(got.Salt, salt) || string(got.Body) != body {
				t.Errorf("a salt of %d bytes, a body of %d: %+v, %v", n, len(body), got, err)
			}
		}
	}
	if _, err := k.Seal(tenant, bodies.Row{Kind: bodies.Source, Salt: make([]byte, 256)}); err == nil {
		t.Error("a salt of 256 bytes is sealed")
	}
}

// TestKeysOfAKindOpenThatKindAlone: a service that has keys of one kind says of another which setting it lacks.
func TestKeysOfAKindOpenThatKindAlone(t *testing.T) {
	t.Parallel()
	all := bodiestest.Keys(t)
	for _, kind := range bodies.Kinds() {
		sealed, err := all.Seal(tenant, row(kind, "text"))
		if err != nil {
			t.Fatal(err)
		}
		for _, mine := range bodies.Kinds() {
			_, err := bodiestest.Keys(t, mine).Open(tenant, sealed)
			if (err == nil) != (mine == kind) {
				t.Errorf("keys of %s, a body of %s: %v", mine, kind, err)
			}
			if err != nil && (!errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), kind.Variable())) {
				t.Errorf("the error names no setting, or is no %s: %v", errs.Unavailable, err)
			}
		}
	}
}

// TestRotation: at each step of a rotation what was sealed a step before, or is sealed a step after, is opened.
func TestRotation(t *testing.T) {
	t.Parallel()
	a, b := strings.Repeat("a", bodies.MinKey), strings.Repeat("b", bodies.MinKey)
	steps := []string{a, a + "," + b, b + "\n" + a, b}
	for i, s := range steps {
		sealed, err := of(t, bodies.Reason, s).Seal(tenant, row(bodies.Reason, "because"))
		if err != nil {
			t.Fatal(err)
		}
		for j := max(0, i-1); j <= min(i+1, len(steps)-1); j++ {
			if got, err := of(t, bodies.Reason, steps[j]).Open(tenant, sealed); err != nil || string(got) != "because" {
				t.Errorf("sealed at step %d, at step %d: %q, %v", i, j, got, err)
			}
		}
	}
	old, err := of(t, bodies.Reason, a).Seal(tenant, row(bodies.Reason, "because"))
	if err != nil {
		t.Fatal(err)
	}
	next := of(t, bodies.Reason, b)
	if _, err := next.Open(tenant, old); !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), old.KeyID) ||
		!strings.Contains(err.Error(), next.Active(bodies.Reason)) {
		t.Errorf("a key that was taken out: %v", err)
	}
}

// TestKeysNameThePlace: a setting that is missing or wrong is named, and no key is quoted.
func TestKeysNameThePlace(t *testing.T) {
	t.Parallel()
	good := strings.Repeat("k", bodies.MinKey)
	for value, want := range map[string]string{
		"":                    "CHANDLER_SOURCE_KEY is not set",
		good + ",hunter2":     "CHANDLER_SOURCE_KEY, key 2 of 2 has 7 characters",
		good + ", " + good:    "key 2 of 2 stands there twice",
		"hunter2hunter2 ,\n ": "key 1 of 1", //nolint:gocritic // as a file has it
	} {
		_, err := bodies.Settings{bodies.Source: &value}.Keys()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", value, err)
		}
	}
	k := of(t, bodies.Source, good)
	if s := fmt.Sprintf("%v %+v %#v", k, k, k); strings.Contains(s, good) {
		t.Error("a key is printed")
	}
}

// BenchmarkOpen is what a configuration costs whoever reads it.
func BenchmarkOpen(b *testing.B) {
	k := bodiestest.Keys(b)
	for _, size := range []int{200, 20_000} {
		b.Run(fmt.Sprintf("%d bytes", size), func(b *testing.B) {
			sealed, err := k.Seal(tenant, row(bodies.Configuration, strings.Repeat("x", size)))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := k.Open(tenant, sealed); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
