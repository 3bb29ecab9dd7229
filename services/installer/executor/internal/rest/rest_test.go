package rest_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chandler-fleet/chandler/services/installer/executor/internal/rest"
)

// TestRest: what is kept for the next piece of work goes when there was none for a while, once for each time of work.
func TestRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var rests atomic.Int64
		r := rest.New(time.Minute, func() { rests.Add(1) })
		after := func(what string, d time.Duration, want int64) {
			t.Helper()
			<-time.After(d) // on the clock of the bubble
			synctest.Wait()
			if got := rests.Load(); got != want {
				t.Errorf("%s: rested %d times, want %d", what, got, want)
			}
		}
		after("never stirred", time.Hour, 0)
		r.Stir()
		after("just stirred", 50*time.Second, 0)
		r.Stir()
		after("stirred again", 50*time.Second, 0)
		after("at rest", 20*time.Second, 1)
		after("still at rest", time.Hour, 1)
		r.Stir()
		after("at rest after more work", 2*time.Minute, 2)
		r.Stir()
		r.Stop()
		after("stopped", time.Hour, 2)
	})
}
