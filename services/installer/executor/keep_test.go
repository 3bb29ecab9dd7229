package executor

import (
	"context"
	"log/slog"
	"testing"
	"time"
)

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
