package archive_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/archive"
)

// below reads a layer of which the catalog lies two directories deep.
var below = archive.Options{Layer: true, Parts: []archive.Part{{From: "opt/configs", To: "."}}}

// refused fails unless an error has a kind and a rule.
func refused(t *testing.T, err error, kind errs.Kind, rule string) {
	t.Helper()
	if e, ok := errors.AsType[*errs.Error](err); !ok || e.Kind != kind || e.Rule != rule {
		t.Errorf("%v, want kind %s, rule %s", err, kind, rule)
	}
}

// TestOneLookThrough proves that a layer cannot have all that was unpacked looked through for every entry:
// what stands above the catalog hides it once (issue: Hostile and broken input).
func TestOneLookThrough(t *testing.T) {
	t.Parallel()
	const many = 300
	layer := make([]tar.Header, 0, 2*many)
	for i := range many {
		layer = append(layer, file(fmt.Sprintf("opt/configs/f%d", i), ""))
	}
	for range many {
		layer = append(layer, link("opt", "x"))
	}
	refused(t, archive.Extract(t.Context(), bytes.NewReader(pack(t, layer...)), target(t, archive.Standard()), below),
		errs.Invalid, archive.RuleDuplicate)

	// The same once in each layer is what images do.
	out := target(t, archive.Standard())
	for _, l := range [][]tar.Header{{file("opt/configs/a", "1")}, {link("opt", "x")}, {file("opt/configs/b", "2")}} {
		if err := archive.Extract(t.Context(), bytes.NewReader(pack(t, l...)), out, below); err != nil {
			t.Fatal(err)
		}
	}
	if out.Has("a") != 0 || out.Has("b") != archive.File {
		t.Error("a link in the place of a directory hides what later layers bring, or leaves what earlier ones brought")
	}
}

// TestNamesAreBounded proves that the names that an extraction remembers are small, each and together,
// whiteouts beside the catalog included.
func TestNamesAreBounded(t *testing.T) {
	t.Parallel()
	long := tar.Header{
		Name: strings.Repeat("d/", archive.MaxName/2) + ".wh.x", Typeflag: tar.TypeReg,
		Format: tar.FormatPAX,
	}
	refused(t, archive.Extract(t.Context(), bytes.NewReader(pack(t, long)), target(t, archive.Standard()), below),
		errs.TooLarge, archive.RuleName)

	few := archive.Standard()
	few.Names = 1000
	layer := make([]tar.Header, 0, 20)
	for i := range 20 {
		layer = append(layer, file(fmt.Sprintf("etc/%s/.wh.%d", strings.Repeat("n", 80), i), ""))
	}
	refused(t, archive.Extract(t.Context(), bytes.NewReader(pack(t, layer...)), target(t, few), below), errs.TooLarge,
		archive.RuleNames)
}

// TestEndedInTheBuffer proves that a look that ended takes no more entries, though all of them have been
// read before.
func TestEndedInTheBuffer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	out := target(t, archive.Standard())
	r := &ending{
		Reader: bytes.NewReader(pack(t, file("a", "1"), file("b", "2"))),
		end:    func() { cancel(errs.New(errs.Unavailable, "enough")) },
	}
	if err := archive.Extract(ctx, r, out, archive.Options{}); err == nil || err.Error() != "enough" {
		t.Errorf("a look that ended gives %v", err)
	}
	if !out.Empty() {
		t.Error("entries were taken after the end of the look")
	}
}

// ending ends a look with the first read.
type ending struct {
	*bytes.Reader

	end func()
}

func (e *ending) Read(p []byte) (int, error) {
	e.end()
	return e.Reader.Read(p)
}
