package app

import (
	"context"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view"
	"github.com/chandler-fleet/chandler/services/gateway/webhook"
)

// SetModels changes which versions of read models a gateway has.
func (c *Config) SetModels(change func([]projection.Projection) []projection.Projection) {
	c.tests.models = change
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
		if err := r.WaitForWrite(ctx, events.DefaultTenant, p.Name(), position); err != nil {
			return err
		}
	}
	return nil
}

// SetClock changes the clock of intents and of what webhooks send, and how long the webhooks of a process that was
// killed wait.
func (c *Config) SetClock(now func() time.Time, lease time.Duration) {
	c.tests.clock, c.tests.lease = now, lease
}

// SetWebhooks changes how many webhooks a gateway sends for at a time.
func (c *Config) SetWebhooks(n int) { c.tests.webhooks = n }

// GiveUp gives a webhook of the default tenant up, as it was at a revision of a stream.
func (a *App) GiveUp(ctx context.Context, name, stream string, revision int64) error {
	return a.intents.Webhooks.Disable(ctx, store.Lease{
		Tenant: events.DefaultTenant, Name: name, Stream: stream, Revision: revision,
	}, webhook.ReasonNoRights)
}
