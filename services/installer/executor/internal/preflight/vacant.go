package preflight

import (
	"sync"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// Vacant are objects of a plan that were not there when it was looked at, so that the step that writes one need not ask
// once more. Whoever writes it must notice where somebody made it since. Beside these it knows which ones other
// operators had.
type Vacant struct {
	mu     sync.Mutex
	refs   map[protocol.ObjectRef]bool
	common map[protocol.ObjectRef]bool
}

// NoteCommon keeps that other operators have an object.
func (v *Vacant) NoteCommon(ref protocol.ObjectRef) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.common == nil {
		v.common = map[protocol.ObjectRef]bool{}
	}
	v.common[ref] = true
}

// Common reports whether that is known of an object.
func (v *Vacant) Common(ref protocol.ObjectRef) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.common[ref]
}

// Note keeps that an object is not there.
func (v *Vacant) Note(ref protocol.ObjectRef) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.refs == nil {
		v.refs = map[protocol.ObjectRef]bool{}
	}
	v.refs[ref] = true
}

// Has reports whether that is known of an object.
func (v *Vacant) Has(ref protocol.ObjectRef) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.refs[ref]
}

// Fill takes it back, and reports whether it was known.
func (v *Vacant) Fill(ref protocol.ObjectRef) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	was := v.refs[ref]
	delete(v.refs, ref)
	return was
}
