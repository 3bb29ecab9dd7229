package scope

import (
	"context"
	"sync"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
)

// Parts remembers which objects belong to operators, so that they are rendered once for that. Its methods may be called
// side by side.
type Parts struct {
	mu    sync.Mutex
	known map[string][]protocol.ObjectRef // by uid of the InstalledOperator
}

// NewParts returns what a new session knows: nothing.
func NewParts() *Parts { return &Parts{known: map[string][]protocol.ObjectRef{}} }

// Of are the objects of an operator: its InstalledOperator, and what its bundle renders to.
func (p *Parts) Of(ctx context.Context, sc *Scope, m *Operator) ([]protocol.ObjectRef, error) {
	uid := string(m.Object.GetUID())
	p.mu.Lock()
	refs, known := p.known[uid]
	p.mu.Unlock()
	if known {
		return refs, nil
	}
	a := m.Object.GetAnnotations()
	t := RenderTarget{Plan: m.Plan, Rendering: a[AnnotationRendering], Bundle: events.PlannedBundle{
		CSV: m.Name(), Content: a[AnnotationContent],
	}}
	if sc.Env.Rendering.Presence(t.Rendering) != render.Present {
		t.Rendering = sc.Env.Rendering.Newest() // which objects they are is all that is asked
	}
	objects, f := sc.ObjectsOf(ctx, t)
	if f != nil {
		return nil, errs.New(errs.Unavailable, "the parts of %s are not known: %s", m.Name(), f.Message)
	}
	for _, o := range objects {
		refs = append(refs, RefIn(o))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known[uid] = refs
	return refs, nil
}
