package limit

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Errors of who waited for a turn.
var (
	ErrOwn = errors.New("too many such requests of one person or program at a time")
	ErrAll = errors.New("too many such requests at a time")
)

// Turns let a few requests be carried out at a time, of all and of each key. Others wait in a line, which is bounded
// for each key, and not for long.
type Turns struct {
	own, line int
	wait      time.Duration
	all       chan struct{}
	mu        sync.Mutex
	lanes     map[string]*lane
}

// lane is the line of one key.
type lane struct {
	in     int // those that are carried out included
	places chan struct{}
}

// NewTurns carries out so many at a time, own of them of one key, of which line are there at a time, carried out or
// waiting.
func NewTurns(all, own, line int, wait time.Duration) *Turns {
	return &Turns{own: own, line: line, wait: wait, all: make(chan struct{}, all), lanes: map[string]*lane{}}
}

// Queued is a request in a line. It is used by one goroutine.
type Queued struct {
	turns *Turns
	key   string
	lane  *lane
	held  []chan struct{}
}

// Queue puts a request into the line of its key; false where that is full. Leave ends it.
func (t *Turns) Queue(key string) (q *Queued, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lanes[key]
	if l == nil {
		l = &lane{places: make(chan struct{}, t.own)}
		t.lanes[key] = l
	}
	if l.in >= t.line {
		return nil, false
	}
	l.in++
	return &Queued{turns: t, key: key, lane: l}, true
}

// Wait ends when it is the request's turn, which lasts until it leaves.
func (q *Queued) Wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, q.turns.wait)
	defer cancel()
	if !q.take(ctx, q.lane.places) {
		return ErrOwn
	}
	if !q.take(ctx, q.turns.all) {
		return ErrAll
	}
	return nil
}

func (q *Queued) take(ctx context.Context, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		q.held = append(q.held, places)
		return true
	case <-ctx.Done():
		return false
	}
}

// Leave gives back what the request had.
func (q *Queued) Leave() {
	for _, places := range q.held {
		<-places
	}
	q.turns.mu.Lock()
	defer q.turns.mu.Unlock()
	q.lane.in--
	if q.lane.in == 0 {
		delete(q.turns.lanes, q.key)
	}
}
