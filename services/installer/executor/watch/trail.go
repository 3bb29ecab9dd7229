package watch

import (
	"maps"
	"sync"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// Trail tells Chandler's own writes from other people's. It knows the mark of each object as Chandler left it, and
// gathers the objects that have another one, by the namespace of their operator.
type Trail struct {
	mu    sync.Mutex
	clean map[protocol.ObjectRef]uint64
	moved map[string]map[protocol.ObjectRef]uint64
}

// NewTrail returns one that knows nothing: every object is looked at once.
func NewTrail() *Trail {
	return &Trail{clean: map[protocol.ObjectRef]uint64{}, moved: map[string]map[protocol.ObjectRef]uint64{}}
}

// Ref names the object of a change.
func (c Change) Ref() protocol.ObjectRef {
	return protocol.ObjectRef{
		Group: c.GVK.Group, Version: c.GVK.Version, Kind: c.GVK.Kind, Namespace: c.Namespace,
		Name: c.Name,
	}
}

// Seen takes a change of an object of a namespace's operators and reports whether it is somebody else's.
func (t *Trail) Seen(namespace string, c Change) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	ref := c.Ref()
	if mark, known := t.clean[ref]; known && mark == c.Mark {
		return false
	}
	t.put(namespace, ref, c.Mark)
	return true
}

// Clean notes an object as it is to be, with its mark.
func (t *Trail) Clean(ref protocol.ObjectRef, mark uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clean[ref] = mark
}

// Take returns what moved in a namespace since the last Take, with its mark (0 for what is gone), without what Chandler
// turned out to have written.
func (t *Trail) Take(namespace string) map[protocol.ObjectRef]uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.moved[namespace]
	if out == nil {
		out = map[protocol.ObjectRef]uint64{}
	}
	delete(t.moved, namespace)
	maps.DeleteFunc(out, func(ref protocol.ObjectRef, mark uint64) bool {
		clean, known := t.clean[ref]
		if known && mark == 0 {
			delete(t.clean, ref)
		}
		return known && clean == mark
	})
	return out
}

// Again puts an object back that could not be looked at.
func (t *Trail) Again(namespace string, ref protocol.ObjectRef, mark uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, newer := t.moved[namespace][ref]; !newer {
		t.put(namespace, ref, mark)
	}
}

func (t *Trail) put(namespace string, ref protocol.ObjectRef, mark uint64) {
	if t.moved[namespace] == nil {
		t.moved[namespace] = map[protocol.ObjectRef]uint64{}
	}
	t.moved[namespace][ref] = mark
}
