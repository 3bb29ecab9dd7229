// Package rest notices that work has ceased, which is when what was kept for the next piece of work can go.
package rest

import (
	"sync"
	"time"
)

// Rest calls a function once nothing was stirred for a while, each time after something was. It keeps no goroutine.
type Rest struct {
	after time.Duration
	do    func()

	mu    sync.Mutex
	timer *time.Timer
}

// New returns one at which nothing was stirred yet.
func New(after time.Duration, do func()) *Rest { return &Rest{after: after, do: do} }

// Stir tells that something is done.
func (r *Rest) Stir() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer == nil {
		r.timer = time.AfterFunc(r.after, r.do)
		return
	}
	r.timer.Reset(r.after)
}

// Stop has the function called no more; what was begun goes on.
func (r *Rest) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
}
