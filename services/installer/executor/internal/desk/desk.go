// Package desk bounds how many looks at operators have rendered objects lying about at a time: these are the largest that an
// executor holds, and after a restart all operators are to be looked at.
package desk

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/render"
)

// Room has a number of desks.
type Room struct{ taken chan struct{} }

// NewRoom returns one in which nobody sits.
func NewRoom(desks int) *Room { return &Room{taken: make(chan struct{}, desks)} }

// Desk is that of one look, which keeps there what it has rendered until it leaves. It is for one goroutine.
type Desk struct {
	room    *Room
	sits    bool
	objects map[string][]render.Object
}

// Desk returns one that nobody sits at: it counts from Take on.
func (r *Room) Desk() *Desk { return &Desk{room: r, objects: map[string][]render.Object{}} }

// Take waits for a place, unless there is one already.
func (d *Desk) Take(ctx context.Context) error {
	if d.sits {
		return nil
	}
	select {
	case d.room.taken <- struct{}{}:
		d.sits = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Leave clears the desk for the next one. Who leaves may take one again.
func (d *Desk) Leave() {
	clear(d.objects)
	if d.sits {
		d.sits = false
		<-d.room.taken
	}
}

// Keep puts the objects of an operator on the desk.
func (d *Desk) Keep(operator string, objects []render.Object) { d.objects[operator] = objects }

// Find returns what Keep put there; nobody may change it.
func (d *Desk) Find(operator string) ([]render.Object, bool) {
	objects, ok := d.objects[operator]
	return objects, ok
}
