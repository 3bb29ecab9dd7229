package app

import (
	"context"
	"time"
)

// renderingsAgain is the wait before another try where the database is away.
const renderingsAgain = 2 * time.Second

// renderings has the plans looked at, once after the start, that another release rendered: nothing else tells that this
// one renders otherwise. A plan that another release proposes later is one that it knows how to carry out, or its
// executor tells.
type renderings struct{ *worker }

func (r *renderings) run(ctx context.Context) error {
	for ctx.Err() == nil {
		n, err := r.store.Renderings.Mark(ctx, r.rendering.Newest())
		if err == nil {
			if n > 0 {
				r.log.InfoContext(ctx, "plans of another rendering are looked at again", "namespaces", n, "rendering",
					r.rendering.Newest())
			}
			<-ctx.Done()
			return nil
		}
		r.log.DebugContext(ctx, "cannot find plans of another rendering; trying again", "error", err)
		t := time.NewTimer(renderingsAgain)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
	return nil
}
