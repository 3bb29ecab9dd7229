package executor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestGuard: a panic becomes an error that blocks a plan as transient, with its stack in the log.
func TestGuard(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	err := guard(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), "plan p", func() error { panic("nobody expected it") })
	if !isPanic(fmt.Errorf("step: %w", err)) || !strings.Contains(log.String(), "guard_test.go") {
		t.Errorf("error %v, log %s", err, log.String())
	}
	for _, f := range []failure{classify(err), transient(err), classifyContent(err)} {
		if f.class != classTransient || f.reason != reasonInternal || !strings.Contains(f.message, "nobody expected it") {
			t.Errorf("got %+v, want a transient %s", f, reasonInternal)
		}
	}
	plain := errors.New("x")
	if err := guard(t.Context(), slog.New(slog.DiscardHandler), "plan p", func() error { return plain }); !errors.Is(err, plain) || isPanic(err) {
		t.Errorf("an error became %v", err)
	}
}

// TestKeep: what listens and reports goes on after a panic, until it ends by itself.
func TestKeep(t *testing.T) {
	t.Parallel()
	e := &Executor{cfg: Config{Log: slog.New(slog.DiscardHandler), Timing: Timing{Backoff: time.Millisecond}}}
	runs := 0
	e.keep(t.Context(), "listener", func(context.Context) {
		runs++
		if runs < 3 {
			panic("again")
		}
	})
	if runs != 3 {
		t.Errorf("it ran %d times, want 3", runs)
	}
}
