package app

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view"
)

// SetModels changes which versions of read models a gateway has.
func (c *Config) SetModels(change func([]projection.Projection) []projection.Projection) {
	c.models = change
}

// Opened waits until every read model is served.
func (a *App) Opened(ctx context.Context) {
	for _, p := range a.projections {
		select {
		case <-p.Opened():
		case <-ctx.Done():
		}
	}
}

// Show waits until every read model holds the event that a position names, in either form of minPosition.
func (a *App) Show(ctx context.Context, position string) error {
	r := view.Positions{Pool: a.Pool, Log: a.Log, Waiters: map[string]view.Waiter{}}
	for _, p := range a.projections {
		r.Waiters[p.Name()] = p
		if err := r.WaitFor(ctx, events.DefaultTenant, p.Name(), position); err != nil {
			return err
		}
	}
	return nil
}
