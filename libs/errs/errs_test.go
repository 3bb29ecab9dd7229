package errs_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
)

func TestKindOf(t *testing.T) {
	t.Parallel()
	missing := errs.New(errs.NotFound, "no catalog %q", "examples")
	for name, c := range map[string]struct {
		err  error
		want errs.Kind
	}{
		"nil has no kind":            {nil, ""},
		"a foreign error":            {io.EOF, errs.Internal},
		"an error of a kind":         {missing, errs.NotFound},
		"the kind below a wrap":      {fmt.Errorf("list: %w", missing), errs.NotFound},
		"the outermost kind decides": {errs.Wrap(errs.Unavailable, missing, "ask"), errs.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := errs.KindOf(c.err); got != c.want {
				t.Errorf("KindOf(%v) = %q, want %q", c.err, got, c.want)
			}
			if c.want != "" && !errs.Is(c.err, c.want) {
				t.Errorf("Is(%v, %q) = false", c.err, c.want)
			}
		})
	}
	if errs.Is(nil, errs.Internal) {
		t.Error("Is(nil, Internal) = true")
	}
}

func TestWrapKeepsTheCause(t *testing.T) {
	t.Parallel()
	err := errs.Wrap(errs.Invalid, io.ErrUnexpectedEOF, "read %s", "catalog.yaml")
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v does not hold its cause", err)
	}
	if got, want := err.Error(), "read catalog.yaml: unexpected EOF"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	if err := errs.Wrap(errs.Invalid, nil, "read"); err != nil {
		t.Errorf("Wrap of nil = %v, want nil", err)
	}
}

func TestAtReturnsACopy(t *testing.T) {
	t.Parallel()
	plain := errs.New(errs.Invalid, "want a name")
	located := plain.At("/spec/name", "R-SUB-1")
	if plain.Field != "" || located.Field != "/spec/name" || located.Rule != "R-SUB-1" {
		t.Errorf("At changed its receiver or lost its arguments: %+v, %+v", plain, located)
	}
}
