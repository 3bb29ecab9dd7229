package idle_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chandler-fleet/chandler/services/installer/executor/internal/idle"
)

// TestTimer: what is kept for the next piece of work goes when there was none for a while, once for each time of work.
func TestTimer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		r := idle.New(time.Minute, func() { calls.Add(1) })
		after := func(what string, d time.Duration, want int64) {
			t.Helper()
			<-time.After(d) // on the clock of the bubble
			synctest.Wait()
			if got := calls.Load(); got != want {
				t.Errorf("%s: called %d times, want %d", what, got, want)
			}
		}
		after("never touched", time.Hour, 0)
		r.Touch()
		after("just touched", 50*time.Second, 0)
		r.Touch()
		after("touched again", 50*time.Second, 0)
		after("idle", 20*time.Second, 1)
		after("still idle", time.Hour, 1)
		r.Touch()
		after("idle after more work", 2*time.Minute, 2)
		r.Touch()
		r.Stop()
		after("stopped", time.Hour, 2)
	})
}
