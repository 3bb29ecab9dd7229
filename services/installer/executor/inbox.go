package executor

import (
	"sync"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// inbox holds the newest message about each scope. It outlives sessions: an executor goes on without
// the hub with what it knows.
type inbox struct {
	mu     sync.Mutex
	scopes map[string]protocol.ScopePlans
	// behind holds scopes whose last value in the stream is older than what is here, twice in a row.
	behind map[string]int
	wake   func(namespace string)
	first  chan struct{} // closed when PLANS were read once
	once   sync.Once
}

func newInbox() *inbox {
	return &inbox{scopes: map[string]protocol.ScopePlans{}, behind: map[string]int{}, wake: func(string) {}, first: make(chan struct{})}
}

// offer takes news. What is older than what is known is left: news may overtake each other.
func (i *inbox) offer(p protocol.ScopePlans) {
	if wake, ok := i.put(p); ok {
		wake(p.Scope.Namespace)
	}
}

// settle takes the stream's last value. One that stays older than what is known is not a matter of
// order any more: the record has gone back.
func (i *inbox) settle(p protocol.ScopePlans) {
	wake, ok := i.put(p)
	i.mu.Lock()
	if ok {
		delete(i.behind, p.Scope.Namespace)
	} else {
		i.behind[p.Scope.Namespace]++
		ok = i.behind[p.Scope.Namespace] == 2
	}
	i.mu.Unlock()
	if ok {
		wake(p.Scope.Namespace)
	}
}

func (i *inbox) put(p protocol.ScopePlans) (func(string), bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	have, known := i.scopes[p.Scope.Namespace]
	if known && p.Position.Less(have.Position) {
		return i.wake, false
	}
	i.scopes[p.Scope.Namespace] = p
	return i.wake, true
}

// ready says that the last values were read.
func (i *inbox) ready() { i.once.Do(func() { close(i.first) }) }

// listenWith sets who is woken by news, and returns the scopes that are known.
func (i *inbox) listenWith(wake func(namespace string)) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wake = wake
	names := make([]string, 0, len(i.scopes))
	for n := range i.scopes {
		names = append(names, n)
	}
	return names
}

// get returns the newest message about a namespace; behind reports that the record has gone back.
func (i *inbox) get(namespace string) (p protocol.ScopePlans, behind, known bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	p, known = i.scopes[namespace]
	return p, i.behind[namespace] >= 2, known
}

// all returns the newest message about each namespace.
func (i *inbox) all() []protocol.ScopePlans {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := make([]protocol.ScopePlans, 0, len(i.scopes))
	for _, p := range i.scopes {
		out = append(out, p)
	}
	return out
}

// highest is the highest position of any message.
func (i *inbox) highest() events.Position {
	i.mu.Lock()
	defer i.mu.Unlock()
	var top events.Position
	for _, p := range i.scopes {
		if top.Less(p.Position) {
			top = p.Position
		}
	}
	return top
}
