package watch

import (
	"sync"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// Signals let somebody wait for news of one object.
type Signals struct {
	mu      sync.Mutex
	waiting map[protocol.ObjectRef][]chan struct{}
}

// NewSignals returns signals that nobody waits for.
func NewSignals() *Signals { return &Signals{waiting: map[protocol.ObjectRef][]chan struct{}{}} }

// Listen returns a channel that has something whenever there was news since it was read last, until stop is called.
func (s *Signals) Listen(ref protocol.ObjectRef) (news <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[ref] = append(s.waiting[ref], c)
	return c, func() { s.forget(ref, c) }
}

func (s *Signals) forget(ref protocol.ObjectRef, c chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []chan struct{}
	for _, other := range s.waiting[ref] {
		if other != c {
			left = append(left, other)
		}
	}
	if len(left) == 0 {
		delete(s.waiting, ref)
		return
	}
	s.waiting[ref] = left
}

// Notify wakes those who wait for the object.
func (s *Signals) Notify(ref protocol.ObjectRef) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.waiting[ref] {
		select {
		case c <- struct{}{}:
		default: // there is news already
		}
	}
}
