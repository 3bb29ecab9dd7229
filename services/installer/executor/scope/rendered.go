package scope

import (
	"sync"
)

// RenderedState is what the objects of an operator at rest look like under the overlays of now.
type RenderedState struct {
	Inputs string // digest of all that the overlays depend on
	// Digests are those of the objects that overlays are about, by ObjectKey.
	Digests map[string]string
}

// ObjectKey names an object in a RenderedState.
func ObjectKey(kind, name string) string { return kind + "/" + name }

// RenderedStates remembers the rendered states of all operators, so that these are rendered once for each input. Its
// methods may be called side by side.
type RenderedStates struct {
	mu    sync.Mutex
	known map[string]map[string]RenderedState // by namespace and uid of the InstalledOperator
}

// NewRenderedStates returns what a new session knows: nothing.
func NewRenderedStates() *RenderedStates {
	return &RenderedStates{known: map[string]map[string]RenderedState{}}
}

func (r *RenderedStates) get(namespace, uid string) (RenderedState, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.known[namespace][uid]
	return s, ok
}

// set keeps a state, and forgets those of operators that are gone.
func (r *RenderedStates) set(namespace, uid string, there []*Operator, s RenderedState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := map[string]RenderedState{}
	for _, o := range there {
		uid := string(o.Object.GetUID())
		if have, ok := r.known[namespace][uid]; ok {
			kept[uid] = have
		}
	}
	kept[uid] = s
	r.known[namespace] = kept
}

// RenderedState is what the objects of an operator were rendered to last.
func (sc *Scope) RenderedState(m *Operator) (RenderedState, bool) {
	return sc.Env.Rendered.get(sc.Namespace, string(m.Object.GetUID()))
}

// SetRenderedState remembers what the objects of an operator are rendered to.
func (sc *Scope) SetRenderedState(m *Operator, s RenderedState) {
	sc.Env.Rendered.set(sc.Namespace, string(m.Object.GetUID()), sc.Snapshot.Installed.Operators, s)
}
