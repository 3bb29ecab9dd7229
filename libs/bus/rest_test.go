package bus_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/chandler-fleet/chandler/libs/bus"
)

// TestRestAfter: a consumer rests for longer the more it worked, within bounds.
func TestRestAfter(t *testing.T) {
	t.Parallel()
	for worked, want := range map[time.Duration]time.Duration{
		0:                     20 * time.Millisecond,
		time.Millisecond:      20 * time.Millisecond,
		10 * time.Millisecond: 30 * time.Millisecond,
		time.Minute:           250 * time.Millisecond,
	} {
		if got := bus.RestAfter(worked); got != want {
			t.Errorf("after %s of work it rests %s, want %s", worked, got, want)
		}
	}
}

// TestNobodyWaitsForAConsumerThatRests: it rests until its time has come, unless somebody waits for it.
func TestNobodyWaitsForAConsumerThatRests(t *testing.T) {
	t.Parallel()
	for name, looks := range map[string]bool{"nobody waits": false, "somebody waits": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var c bus.Consumer
				want := time.Hour
				if looks {
					want = time.Minute
					time.AfterFunc(want, c.Look)
				}
				began := time.Now()
				c.Rest(t.Context(), began.Add(time.Hour))
				if got := time.Since(began); got != want {
					t.Errorf("it rested %s, want %s", got, want)
				}
			})
		})
	}
}
