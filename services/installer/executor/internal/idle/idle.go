// Package idle calls a function when nothing was done for a while, so that what was kept for the next piece of work can
// go.
package idle

import (
	"sync"
	"time"
)

// Timer calls a function once, when nothing was touched for a while; each Touch starts the while anew. It keeps no
// goroutine.
type Timer struct {
	after time.Duration
	do    func()

	mu    sync.Mutex
	timer *time.Timer
}

// New returns a timer that runs from the first Touch on.
func New(after time.Duration, do func()) *Timer { return &Timer{after: after, do: do} }

// Touch says that something is done now.
func (t *Timer) Touch() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer == nil {
		t.timer = time.AfterFunc(t.after, t.do)
		return
	}
	t.timer.Reset(t.after)
}

// Stop prevents further calls; one that has begun goes on.
func (t *Timer) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
}
