package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
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
	if failing == "" {
		c.status.FailingSince = time.Time{}
	} else if c.status.FailingSince.IsZero() {
		c.status.FailingSince = time.Now()
	}
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

// Measured is where a consumer stands by what is stored, whichever replica works.
type Measured struct {
	Position int64
	Lag      int64 // positions that the log's head is ahead
	Parked   int64 // streams
	// ReplayTo is the position up to which the consumer reads the log again; 0 where it does not.
	ReplayTo int64
}

// Measure reads where the consumer stands. What this process remembers says nothing where another replica works, or
// where none does.
func (c *Consumer) Measure(ctx context.Context) (m Measured, err error) {
	err = c.Pool.QueryRow(ctx, `select coalesce(c.position, 0), greatest(0, s.position - coalesce(c.position, 0)),
		  (select count(distinct stream) from eventlog.parked where consumer = $1), coalesce(c.replay_to, 0)
		from (select position from eventlog.sequencer order by revision desc limit 1) s
		left join eventlog.checkpoint($1) c on true`, c.Name).Scan(&m.Position, &m.Lag, &m.Parked, &m.ReplayTo)
	if err != nil {
		return m, fmt.Errorf("measure consumer %s: %w", c.Name, pg.Err(err))
	}
	return m, nil
}

// tried is how often, and since when, one event was tried in vain.
type tried struct {
	times int
	since time.Time
}

// transient reports whether trying the same event again can help. What passes by itself gets a bounded time, so that
// one event never holds up the others for ever: a part that is away, and a deadlock, until the consumer's patience
// ends; a decision on a state that had moved on, and a cancelled statement, a number of times. Where it is this
// database that is away, parking fails as well, and is tried again with the event.
func (c *Consumer) transient(err error, at events.Position) bool {
	cancelled := pg.Cancelled(err)
	away := !cancelled && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errs.Is(err, errs.Unavailable) || pg.Deadlocked(err))
	if !away && !cancelled && !errs.Is(err, errs.Conflict) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t, known := c.tries[at]
	if !known {
		t.since = time.Now()
		c.tries = map[events.Position]tried{} // the consumer has come past all others
	}
	t.times++
	c.tries[at] = t
	if away && time.Since(t.since) < c.patience() || !away && t.times < conflictTries {
		return true
	}
	delete(c.tries, at)
	return false
}

func (c *Consumer) patience() time.Duration {
	if c.Patience > 0 {
		return c.Patience
	}
	return unavailableFor
}
