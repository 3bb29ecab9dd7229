package app

import (
	"context"
	"time"

	"github.com/chandler-fleet/chandler/libs/service"
)

// collectEvery is how often ended plans, and inputs that nothing needs, are collected (R-IP-4).
const collectEvery = 10 * time.Minute

// collector removes what is not needed any more.
type collector struct {
	*worker
	retention service.Retention
	now       func() time.Time
}

// run sweeps until ctx ends. Trouble is logged and tried again.
func (c *collector) run(ctx context.Context) error {
	if err := c.retention.Check(); err != nil {
		return err
	}
	t := time.NewTicker(collectEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		if err := c.sweep(ctx); err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "cannot collect old plans and inputs; trying again", "error", err)
		}
	}
}

// sweep removes all that is not needed.
func (c *collector) sweep(ctx context.Context) error {
	done, err := c.store.Collector.Sweep(ctx, c.now(), c.retention.Period())
	if done.Postponed != nil {
		c.log.InfoContext(ctx, "what decisions rested on stays until the event about it may be written", "why",
			done.Postponed)
	}
	if done.Any() {
		c.log.InfoContext(ctx, "collected old plans and inputs", "plans", done.Plans, "documents", done.Documents,
			"inputs", done.Inputs, "explanations", done.Explanations, "references", done.References)
	}
	return err
}
