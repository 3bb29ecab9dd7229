package watch

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/operatorgroup"
)

// maxObjects bounds what is remembered of a kind, some 300 bytes of each object: the largest clusters have some ten
// thousand of what is watched here. What comes beyond it is taken for objects that nobody watches, and is found by the
// resync alone.
const maxObjects = 200_000

// entry is what is kept of an object.
type entry struct {
	uid    string
	mark   uint64
	owner  string            // value of the kind's Owner label
	labels map[string]string // of kinds that ask for them
	// annotations are the short ones of objects that have the kind's Annotations label.
	annotations map[string]string
	// leaving is set once somebody has asked for its removal.
	leaving bool
}

// key is namespace and name.
type key struct{ namespace, name string }

// store is what follow fills. It compares what comes with what it has, and tells only what differs.
type store struct {
	kind    Kind
	changed func(Change)
	listed  func(schema.GroupVersionKind) // nil where nobody wants to know
	most    int                           // objects that are remembered

	mu      sync.Mutex
	entries map[key]entry
	paged   int // objects of the list that is being read
	synced  chan struct{}
	once    sync.Once
}

func newStore(kind Kind, changed func(Change)) *store {
	return &store{
		kind: kind, changed: changed, most: maxObjects, entries: map[key]entry{}, synced: make(chan struct{}),
	}
}

func keyOf(m metav1.Object) key { return key{m.GetNamespace(), m.GetName()} }

// remove takes the news that an object is gone.
func (s *store) remove(m metav1.Object) {
	k := keyOf(m)
	s.mu.Lock()
	delete(s.entries, k)
	s.mu.Unlock()
	s.gone(k, entry{uid: string(m.GetUID()), owner: m.GetLabels()[s.kind.Owner]}, m.GetResourceVersion())
}

// whole takes the news that these are all there are, at a resourceVersion.
func (s *store) whole(there map[key]bool, version string) {
	for k, e := range s.missing(there) {
		s.gone(k, entry{uid: e.uid, owner: e.owner}, version)
	}
	s.once.Do(func() { close(s.synced) })
	if s.listed != nil {
		s.listed(s.kind.GVK)
	}
}

func (s *store) put(m metav1.Object) {
	mark := Mark(m)
	next := entry{
		uid: string(m.GetUID()), mark: mark, owner: m.GetLabels()[s.kind.Owner],
		leaving: m.GetDeletionTimestamp() != nil,
	}
	if s.kind.Labels {
		next.labels = m.GetLabels()
	}
	if label := s.kind.Annotations; label != "" && m.GetLabels()[label] != "" {
		next.annotations = short(m.GetAnnotations())
	}
	k := keyOf(m)
	s.mu.Lock()
	have, known := s.entries[k]
	s.entries[k] = next
	s.mu.Unlock()
	if moved := !known || have.mark != mark; moved || s.kind.Status {
		s.notify(k, next, moved, m.GetResourceVersion())
	}
}

// short are the annotations that an operator group may have set: what programs note for themselves can be large.
func short(annotations map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range annotations {
		if len(value) <= operatorgroup.MaxNamespaceAnnotation {
			out[key] = value
		}
	}
	return out
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

func (s *store) notify(k key, e entry, moved bool, version string) {
	s.changed(Change{
		GVK: s.kind.GVK, Namespace: k.namespace, Name: k.name, UID: e.uid, Owner: e.owner, Mark: e.mark, Moved: moved,
		Version: version, At: version,
	})
}

func (s *store) gone(k key, e entry, at string) {
	s.changed(Change{
		GVK: s.kind.GVK, Namespace: k.namespace, Name: k.name, UID: e.uid, Owner: e.owner, Moved: true, Gone: true,
		At: at,
	})
}

// wasListed reports whether the first list is over.
func (s *store) wasListed() bool {
	select {
	case <-s.synced:
		return true
	default:
		return false
	}
}

// labels returns the labels of every object by name, false before the first list.
func (s *store) labels() (map[string]map[string]string, bool) {
	if !s.wasListed() {
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

func (s *store) annotations(name string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries[key{name: name}].annotations
}

func (s *store) has(name string) bool { return s.holds(key{name: name}) }

func (s *store) holds(k key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.entries[k]
	return ok
}
