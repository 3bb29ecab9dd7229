package store

import (
	"sync"
)

// maxOwn bounds the remembered ids: of a fan-out, those that the log has not brought back yet, at some 100 bytes each.
const maxOwn = 1 << 15

// ownEvents remembers events that this process wrote and folded in one transaction. When the log brings them back
// their rows need not be looked up: in a fan-out these are nearly all events, and what a person asked for waits
// behind them. It is no more than a memory: what is forgotten is looked up.
type ownEvents struct {
	mu  sync.Mutex
	ids map[string]struct{}
}

// expect remembers ids before their transaction: the log may bring them back before it is known to have committed.
func (o *ownEvents) expect(ids []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ids == nil || len(o.ids)+len(ids) > maxOwn {
		o.ids = map[string]struct{}{}
	}
	for _, id := range ids {
		o.ids[id] = struct{}{}
	}
}

// forget takes ids back whose transaction failed.
func (o *ownEvents) forget(ids []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range ids {
		delete(o.ids, id)
	}
}

// knows says whether an event is one of them, and how often it is asked does not matter: a batch may be taken again.
func (o *ownEvents) knows(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, known := o.ids[id]
	return known
}
