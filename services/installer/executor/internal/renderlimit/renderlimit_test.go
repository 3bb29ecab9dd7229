package renderlimit_test

import (
	"context"
	"errors"
	"testing"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/renderlimit"
)

// TestSlot: there are no more reconciles hold rendered objects than there are slots; Release lets the next one in and
// forgets the objects.
func TestSlot(t *testing.T) {
	t.Parallel()
	limiter := renderlimit.New(1)
	first, second := limiter.Slot(), limiter.Slot()
	for range 2 { // one reconcile takes one slot
		if err := first.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first.Keep("tide", []render.Object{{Name: "tide"}})
	if objects, ok := first.Find("tide"); !ok || len(objects) != 1 {
		t.Errorf("kept: %v, %v", objects, ok)
	}
	late := errors.New("the reconcile is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(late)
	if err := second.Acquire(ctx); !errors.Is(err, late) {
		t.Errorf("a second reconcile was let in: %v", err)
	}
	second.Release() // what is not held is not given back
	if err := second.Acquire(ctx); !errors.Is(err, late) {
		t.Errorf("a second reconcile was let in: %v", err)
	}
	first.Release()
	if _, ok := first.Find("tide"); ok {
		t.Error("an object was kept after Release")
	}
	if err := second.Acquire(t.Context()); err != nil {
		t.Errorf("the slot is free, and yet: %v", err)
	}
}
