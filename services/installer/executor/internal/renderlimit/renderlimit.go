// Package renderlimit bounds how many reconciles hold rendered objects at a time: these objects are the largest that an
// executor holds, and after a restart every operator has to be reconciled.
package renderlimit

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/render"
)

// Limiter has a number of slots.
type Limiter struct{ taken chan struct{} }

// New returns a limiter of which every slot is free.
func New(slots int) *Limiter { return &Limiter{taken: make(chan struct{}, slots)} }

// Slot belongs to one reconcile, and keeps what that has rendered until Release. It is for one goroutine.
type Slot struct {
	limiter *Limiter
	held    bool
	objects map[string][]render.Object
}

// Slot returns one that is not held yet: it counts from Acquire on.
func (l *Limiter) Slot() *Slot { return &Slot{limiter: l, objects: map[string][]render.Object{}} }

// Acquire waits until the limiter has a free slot. It returns at once where the slot is held already.
func (s *Slot) Acquire(ctx context.Context) error {
	if s.held {
		return nil
	}
	select {
	case s.limiter.taken <- struct{}{}:
		s.held = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Release forgets the objects and gives the slot back. It may be acquired again.
func (s *Slot) Release() {
	clear(s.objects)
	if s.held {
		s.held = false
		<-s.limiter.taken
	}
}

// Keep keeps the objects of an operator until Release.
func (s *Slot) Keep(operator string, objects []render.Object) { s.objects[operator] = objects }

// Find returns what Keep kept; nobody may change it.
func (s *Slot) Find(operator string) ([]render.Object, bool) {
	objects, ok := s.objects[operator]
	return objects, ok
}
