package view

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
)

// lagging is a projection that holds no position before the wait for it ends.
type lagging struct{ waits int }

func (l *lagging) Serves() error { return nil }

func (l *lagging) Wait(ctx context.Context, _ events.Position, _ time.Duration) error {
	l.waits++
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.New("not yet")
}

// TestWhoHangsUpMakesNobodyLate: only a read model that lags has others refused without a wait.
func TestWhoHangsUpMakesNobodyLate(t *testing.T) {
	t.Parallel()
	projection, at := &lagging{}, events.Position{Epoch: 1, N: 1}
	r := &Positions{Waiters: map[string]Waiter{"one": projection}}
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	for i, c := range []struct {
		ctx   context.Context
		waits int
	}{
		{gone, 1},
		{t.Context(), 2}, // somebody else hung up: the read model is asked
		{t.Context(), 2}, // it was late a moment ago
	} {
		if err := r.HoldAll(c.ctx, at); err == nil || projection.waits != c.waits {
			t.Errorf("call %d: %v after %d waits, want %d", i, err, projection.waits, c.waits)
		}
	}
}
