package watch

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// entry is what is kept of an object.
type entry struct {
	uid    string
	mark   uint64
	owner  string            // value of the kind's Owner label
	labels map[string]string // of kinds that ask for them
	// leaving is set once somebody has asked for its removal.
	leaving bool
}

// key is namespace and name.
type key struct{ namespace, name string }

// store is what a reflector fills. It compares what comes with what it has, and tells only what differs.
type store struct {
	kind    Kind
	changed func(Change)

	mu      sync.Mutex
	entries map[key]entry
	synced  chan struct{}
	once    sync.Once
}

var _ cache.ReflectorStore = (*store)(nil)

func newStore(kind Kind, changed func(Change)) *store {
	return &store{kind: kind, changed: changed, entries: map[key]entry{}, synced: make(chan struct{})}
}

// Add implements cache.ReflectorStore.
func (s *store) Add(o any) error {
	if m, ok := o.(metav1.Object); ok {
		s.put(m)
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (s *store) Update(o any) error { return s.Add(o) }

// Delete implements cache.ReflectorStore.
func (s *store) Delete(o any) error {
	m, ok := o.(metav1.Object)
	if !ok {
		return nil
	}
	k := key{m.GetNamespace(), m.GetName()}
	s.mu.Lock()
	delete(s.entries, k)
	s.mu.Unlock()
	s.tell(k, entry{uid: string(m.GetUID()), owner: m.GetLabels()[s.kind.Owner]}, true, true, "")
	return nil
}

// Replace implements cache.ReflectorStore: what a list says.
func (s *store) Replace(list []any, _ string) error {
	there := make(map[key]bool, len(list))
	for _, o := range list {
		if m, ok := o.(metav1.Object); ok {
			there[key{m.GetNamespace(), m.GetName()}] = true
			s.put(m)
		}
	}
	for k, e := range s.missing(there) {
		s.tell(k, entry{uid: e.uid, owner: e.owner}, true, true, "")
	}
	s.once.Do(func() { close(s.synced) })
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *store) Resync() error { return nil }

func (s *store) put(m metav1.Object) {
	mark := Mark(m)
	next := entry{uid: string(m.GetUID()), mark: mark, owner: m.GetLabels()[s.kind.Owner], leaving: m.GetDeletionTimestamp() != nil}
	if s.kind.Labels {
		next.labels = m.GetLabels()
	}
	k := key{m.GetNamespace(), m.GetName()}
	s.mu.Lock()
	have, known := s.entries[k]
	s.entries[k] = next
	s.mu.Unlock()
	if moved := !known || have.mark != mark; moved || s.kind.Status {
		s.tell(k, next, moved, false, m.GetResourceVersion())
	}
}

func (s *store) missing(there map[key]bool) map[key]entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := map[key]entry{}
	for k, e := range s.entries {
		if !there[k] {
			gone[k] = e
			delete(s.entries, k)
		}
	}
	return gone
}

func (s *store) tell(k key, e entry, moved, gone bool, version string) {
	s.changed(Change{
		GVK: s.kind.GVK, Namespace: k.namespace, Name: k.name, UID: e.uid, Owner: e.owner, Mark: e.mark, Moved: moved, Gone: gone, Version: version,
	})
}

// labels returns the labels of every object by name, false before the first list.
func (s *store) labels() (map[string]map[string]string, bool) {
	select {
	case <-s.synced:
	default:
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]map[string]string, len(s.entries))
	for k, e := range s.entries {
		out[k.name] = e.labels
	}
	return out, true
}

func (s *store) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.entries[key{name: name}]
	return ok
}
