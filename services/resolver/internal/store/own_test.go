package store

import (
	"fmt"
	"testing"
)

// TestOwnEventsAreRememberedWithinABound: what was written is known until it is taken back or too much was written.
func TestOwnEventsAreRememberedWithinABound(t *testing.T) {
	t.Parallel()
	var o ownEvents
	if o.knows("a") {
		t.Error("knows what nobody wrote")
	}
	o.expect([]string{"a", "b"})
	o.forget([]string{"b"})
	for range 2 { // a batch of the log may be taken again
		if !o.knows("a") || o.knows("b") {
			t.Errorf("knows %v", o.ids)
		}
	}
	for i := range 3 * maxOwn {
		o.expect([]string{fmt.Sprint(i)})
	}
	if len(o.ids) > maxOwn || !o.knows(fmt.Sprint(3*maxOwn-1)) || o.knows("a") {
		t.Errorf("%d ids are remembered, at most %d may be", len(o.ids), maxOwn)
	}
}
