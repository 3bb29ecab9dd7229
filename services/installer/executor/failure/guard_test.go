package failure

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// TestGuard: a panic becomes an error that blocks a plan as transient, with its stack in the log.
func TestGuard(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	err := Guard(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), "plan p",
		func() error { panic("nobody expected it") })
	if !IsPanic(fmt.Errorf("step: %w", err)) || !strings.Contains(log.String(), "guard_test.go") {
		t.Errorf("error %v, log %s", err, log.String())
	}
	for _, f := range []Failure{Classify(err), OwnObject(err), OfContent(err)} {
		if f.Class != Transient || f.Reason != ReasonInternal || !strings.Contains(f.Message, "nobody expected it") {
			t.Errorf("got %+v, want a transient %s", f, ReasonInternal)
		}
	}
	plain := errors.New("x")
	if err := Guard(t.Context(), slog.New(slog.DiscardHandler), "plan p", func() error { return plain }); !errors.Is(
		err, plain) || IsPanic(err) {
		t.Errorf("an error became %v", err)
	}
}
