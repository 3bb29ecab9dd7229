package desk_test

import (
	"context"
	"errors"
	"testing"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/desk"
)

// TestDesk: there are no more looks with rendered objects than desks; one that leaves lets the next one in, and leaves nothing.
func TestDesk(t *testing.T) {
	t.Parallel()
	room := desk.NewRoom(1)
	first, second := room.Desk(), room.Desk()
	for range 2 { // one look takes one desk
		if err := first.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first.Keep("tide", []render.Object{{Name: "tide"}})
	if objects, ok := first.Find("tide"); !ok || len(objects) != 1 {
		t.Errorf("on the desk: %v, %v", objects, ok)
	}
	late := errors.New("the look is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(late)
	if err := second.Take(ctx); !errors.Is(err, late) {
		t.Errorf("a second look was let in: %v", err)
	}
	second.Leave() // who has none gives none back
	if err := second.Take(ctx); !errors.Is(err, late) {
		t.Errorf("a second look was let in: %v", err)
	}
	first.Leave()
	if _, ok := first.Find("tide"); ok {
		t.Error("something was left on the desk")
	}
	if err := second.Take(t.Context()); err != nil {
		t.Errorf("the desk is free, and yet: %v", err)
	}
}
