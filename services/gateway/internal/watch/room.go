package watch

import (
	"fmt"
	"sync"

	"github.com/chandler-fleet/chandler/libs/errs"
)

const (
	// maxObjects bounds the objects that all streams of a process remember. At 133 bytes each
	// (BenchmarkRemembered) they hold 53 MB, a tenth of the memory that a gateway has by default.
	maxObjects = 400_000
	// ownObjects bounds those of one identity, so that one does not take the room of all. A fleet of 1,000 clusters
	// with 20 operators each has 20,000.
	ownObjects = maxObjects / 2
)

// Room is what the streams of a process may remember together.
type Room struct {
	all, each int
	mu        sync.Mutex
	taken     int
	of        map[string]int // by identity
}

// NewRoom has room for maxObjects, ownObjects of them for one identity.
func NewRoom() *Room { return newRoom(maxObjects, ownObjects) }

func newRoom(all, each int) *Room { return &Room{all: all, each: each, of: map[string]int{}} }

// FullError says that there is no room for what a stream would have to remember.
type FullError struct{ err *errs.Error }

func (e *FullError) Error() string { return e.err.Error() }
func (e *FullError) Unwrap() error { return e.err }

func full(format string, args ...any) error {
	return &FullError{errs.New(errs.Invalid, "%s", fmt.Sprintf(format, args...))}
}

// take takes room for n objects; a *FullError where there is none, and then it takes nothing.
func (r *Room) take(identity string, n int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.of[identity]+n > r.each:
		return full("the lists that this identity watches have more than %d objects, which is the limit: watch a part of "+
			"them, or end a stream", r.each)
	case r.taken+n > r.all:
		return full("the lists that are watched have more than %d objects, which is the limit: watch a part, or try again "+
			"later", r.all)
	}
	r.taken += n
	r.of[identity] += n
	return nil
}

// give gives room back.
func (r *Room) give(identity string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken -= n
	if r.of[identity] -= n; r.of[identity] <= 0 {
		delete(r.of, identity)
	}
}
