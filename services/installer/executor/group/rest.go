package group

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Rest says when the roles are written that users get from groups. With each of them the cluster gathers its own roles
// for users anew, which is dear, and cheap where many come together. So they wait while operators are on their way
// anywhere in the cluster, but not for long.
type Rest struct {
	mu    sync.Mutex
	busy  map[string]time.Time // since when it was not heard otherwise, by namespace
	waits map[string]time.Time // until when those wait at most that do
}

// NewRest returns one that knows of nothing under way.
func NewRest() *Rest { return &Rest{busy: map[string]time.Time{}, waits: map[string]time.Time{}} }

// Busy notes that operators of a namespace are on their way.
func (r *Rest) Busy(namespace string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy[namespace] = now
}

// Wait says how long the roles of a namespace are still to wait, which is at most so long in all; what was heard of
// others that long ago counts no more. busy tells of the namespace itself. wake are those that need wait no longer,
// since it was the last that was busy.
func (r *Rest) Wait(namespace string, busy bool, now time.Time, most time.Duration) (
	wait time.Duration, wake []string,
) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, was := r.busy[namespace]
	delete(r.busy, namespace)
	if busy {
		r.busy[namespace] = now
	}
	maps.DeleteFunc(r.busy, func(_ string, heard time.Time) bool { return now.Sub(heard) >= most })
	if len(r.busy) > 0 {
		until, waits := r.waits[namespace]
		if !waits {
			until = now.Add(most)
			r.waits[namespace] = until
		}
		if wait = until.Sub(now); wait > 0 {
			return wait, nil
		}
		delete(r.waits, namespace)
		return 0, nil
	}
	delete(r.waits, namespace)
	if was {
		wake = slices.Sorted(maps.Keys(r.waits))
	}
	return 0, wake
}
