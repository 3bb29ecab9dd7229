package hubclient

import (
	"sync"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// Inbox holds the newest message about each scope. It outlives sessions: an executor goes on without
// the hub with what it knows.
type Inbox struct {
	mu     sync.Mutex
	scopes map[string]protocol.ScopePlans
	// behind holds scopes whose last value in the stream is older than what is here, twice in a row.
	behind map[string]int
	wake   func(namespace string)
	// missed is set while there are scopes whose last value cannot be read: what is not here may be all the same.
	missed bool
	read   chan struct{} // closed when PLANS were read once
	once   sync.Once
}

// NewInbox returns one that knows nothing yet.
func NewInbox() *Inbox {
	return &Inbox{
		scopes: map[string]protocol.ScopePlans{}, behind: map[string]int{}, wake: func(string) {},
		read: make(chan struct{}),
	}
}

// Offer takes news. What is older than what is known is left: news may overtake each other.
func (i *Inbox) Offer(p protocol.ScopePlans) {
	if wake, ok := i.put(p); ok {
		wake(p.Scope.Namespace)
	}
}

// Settle takes the stream's last value. One that stays older than what is known is not a matter of
// order any more: the record has gone back.
func (i *Inbox) Settle(p protocol.ScopePlans) {
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

func (i *Inbox) put(p protocol.ScopePlans) (func(string), bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	have, known := i.scopes[p.Scope.Namespace]
	if known && p.Position.Less(have.Position) {
		return i.wake, false
	}
	i.scopes[p.Scope.Namespace] = p
	return i.wake, true
}

// Ready says that the last values were read, but for those that could not be.
func (i *Inbox) Ready(missed int) {
	i.mu.Lock()
	i.missed = missed > 0
	i.mu.Unlock()
	i.once.Do(func() { close(i.read) })
}

// Keep forgets namespaces of which nothing is wanted and whose message the hub has taken back, there being those whose
// last value is there. It returns the forgotten ones.
func (i *Inbox) Keep(there []protocol.ScopePlans) (gone []string) {
	named := make(map[string]bool, len(there))
	for _, p := range there {
		named[p.Scope.Namespace] = true
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for ns, p := range i.scopes {
		if p.Nothing() && !named[ns] {
			delete(i.scopes, ns)
			delete(i.behind, ns)
			gone = append(gone, ns)
		}
	}
	return gone
}

// MayHaveGroup reports whether an operator group with this id may be in any namespace. Of a namespace with several
// groups, and of one whose message cannot be read, nobody here can say.
func (i *Inbox) MayHaveGroup(id string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.missed {
		return true
	}
	for _, p := range i.scopes {
		if p.OperatorGroup.ID == id || p.OperatorGroups > 1 {
			return true
		}
	}
	return false
}

// First is closed when the last values were read once.
func (i *Inbox) First() <-chan struct{} { return i.read }

// ListenWith sets who is woken by news, and returns the scopes that are known.
func (i *Inbox) ListenWith(wake func(namespace string)) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wake = wake
	names := make([]string, 0, len(i.scopes))
	for n := range i.scopes {
		names = append(names, n)
	}
	return names
}

// Get returns the newest message about a namespace; behind reports that the record has gone back.
func (i *Inbox) Get(namespace string) (p protocol.ScopePlans, behind, known bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	p, known = i.scopes[namespace]
	return p, i.behind[namespace] >= 2, known
}

// All returns the newest message about each namespace.
func (i *Inbox) All() []protocol.ScopePlans {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := make([]protocol.ScopePlans, 0, len(i.scopes))
	for _, p := range i.scopes {
		out = append(out, p)
	}
	return out
}

// Highest is the highest position of any message, with the hub's proof of it.
func (i *Inbox) Highest() (top events.Position, proof []byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, p := range i.scopes {
		if top.Less(p.Position) {
			top, proof = p.Position, p.Proof
		}
	}
	return top, proof
}
