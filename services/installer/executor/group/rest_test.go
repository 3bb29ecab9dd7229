package group_test

import (
	"slices"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/services/installer/executor/group"
)

// TestRest: roles for users (R-OG-40, R-OG-42) wait while operators are on their way anywhere, are waited for by nobody
// longer than is allowed, and are written at once when the last has come to rest.
func TestRest(t *testing.T) {
	t.Parallel()
	const most = 10 * time.Second
	start := time.Date(2031, 2, 3, 12, 0, 0, 0, time.UTC)
	r := group.NewRest()
	ask := func(ns string, busy bool, at, wait time.Duration, wake ...string) {
		t.Helper()
		got, woken := r.Wait(ns, busy, start.Add(at), most)
		if got != wait || !slices.Equal(woken, wake) {
			t.Errorf("%s after %s: waits %s, wakes %v; want %s, %v", ns, at, got, woken, wait, wake)
		}
	}
	ask("calm", false, 0, 0)
	r.Busy("north", start)
	r.Busy("south", start)
	ask("calm", false, time.Second, most)
	ask("calm", false, 3*time.Second, most-2*time.Second)
	ask("north", true, 4*time.Second, most)
	ask("north", false, 5*time.Second, most-time.Second)
	ask("south", false, 6*time.Second, 0, "calm", "north")
	ask("calm", false, 7*time.Second, 0)
	ask("north", false, 7*time.Second, 0)

	r.Busy("stuck", start.Add(20*time.Second))
	ask("calm", false, 21*time.Second, most)
	ask("stuck", true, 29*time.Second, most)
	ask("calm", false, 31*time.Second, 0)
	ask("calm", false, 32*time.Second, most)
	ask("calm", false, 39*time.Second, 0) // nothing was heard of it for as long
}
