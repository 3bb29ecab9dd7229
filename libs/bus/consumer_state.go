package bus

import (
	"context"
	"errors"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
)

// note keeps what a transaction came to.
func (c *Consumer) note(ctx context.Context, o outcome) {
	if o.held {
		return
	}
	var lag int64
	if o.more || o.stopped != nil || o.failed != nil {
		// Behind: how far is read from the log. At the head the batch itself has shown it.
		if head, err := c.Log.Head(ctx, c.Pool); err == nil {
			lag = max(0, head.N-o.at.N)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.Position, c.status.Lag, c.status.Parked = o.at, lag, o.parked
}

// report logs a failure when it begins, changes or ends, keeps it for Status and says it to Failed.
func (c *Consumer) report(ctx context.Context, err error) {
	if err != nil && c.Failed != nil {
		c.Failed()
	}
	var unknown *events.UnknownTypeError
	stopped, failing := "", ""
	switch {
	case errors.As(err, &unknown):
		stopped = unknown.Error()
	case err != nil:
		failing = err.Error()
	}
	c.mu.Lock()
	was := c.status
	c.status.Stopped, c.status.Failing = stopped, failing
	at := c.status.Position.String()
	c.mu.Unlock()
	log := c.logger().With("consumer", c.Name)
	switch {
	case stopped != "" && was.Stopped != stopped:
		log.ErrorContext(ctx, "consumer stopped: it cannot read on", "position", at, "error", stopped)
	case failing != "" && was.Failing != failing && ctx.Err() == nil:
		log.WarnContext(ctx, "consumer waits and tries again", "position", at, "error", failing)
	case err == nil && (was.Stopped != "" || was.Failing != ""):
		log.InfoContext(ctx, "consumer goes on", "position", at)
	}
}

// transient reports whether trying the same event again can help.
func (c *Consumer) transient(err error, at events.Position) bool {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errs.Is(err, errs.Unavailable):
		return true
	case !errs.Is(err, errs.Conflict):
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tries == nil {
		c.tries = map[events.Position]int{}
	}
	c.tries[at]++
	if c.tries[at] < conflictTries {
		return true
	}
	delete(c.tries, at)
	return false
}
