package bus

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/telemetry"
)

const (
	// parkedFirst and parkedMax bound the pause before a parked stream is tried again by itself; it doubles.
	parkedFirst = 5 * time.Second
	parkedMax   = 10 * time.Minute
	// behindReason is the reason of events that wait behind a parked one.
	behindReason = "behind an earlier event of this stream"
)

// Parked is an event that a consumer could not take, or one that waits behind such an event.
type Parked struct {
	Consumer  string          `json:"consumer"`
	Tenant    string          `json:"tenant"`
	Stream    string          `json:"stream"` // events.StreamID.String
	Version   int64           `json:"version"`
	Position  events.Position `json:"position"`
	Type      events.Type     `json:"type"`
	Reason    string          `json:"reason"`   // text of the handler's error
	Attempts  int             `json:"attempts"` // 0 for an event that waits behind another
	Since     time.Time       `json:"since"`
	NextRetry time.Time       `json:"nextRetry"`
}

// ListParked returns what is parked, by consumer, stream and version; consumer "" is all of them.
func ListParked(ctx context.Context, q pg.Querier, consumer string) ([]Parked, error) {
	rows, err := q.Query(ctx, `select consumer, tenant, stream, version, epoch, position, type, reason, attempts, since,
		next_retry
		from eventlog.parked where $1 = '' or consumer = $1 order by consumer, stream, version`, consumer)
	if err != nil {
		return nil, fmt.Errorf("list parked events: %w", pg.Err(err))
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (p Parked, err error) {
		return p, r.Scan(&p.Consumer, &p.Tenant, &p.Stream, &p.Version, &p.Position.Epoch, &p.Position.N,
			&p.Type, &p.Reason, &p.Attempts, &p.Since, &p.NextRetry)
	})
	return list, pg.Err(err)
}

// RetryParked makes the consumer try a parked stream again at its next poll; stream "" is all of the
// consumer's. It returns errs.NotFound where nothing is parked there.
func RetryParked(ctx context.Context, q pg.Querier, consumer, stream string) error {
	tag, err := q.Exec(ctx, `update eventlog.parked set next_retry = now()
		where consumer = $1 and ($2 = '' or stream = $2)`, consumer, stream)
	if err != nil {
		return fmt.Errorf("retry parked events: %w", pg.Err(err))
	}
	if tag.RowsAffected() == 0 {
		of := ""
		if stream != "" {
			of = fmt.Sprintf(" of stream %q", stream)
		}
		return errs.New(errs.NotFound, "consumer %q has nothing parked%s", consumer, of)
	}
	return nil
}

// take handles one event, or parks it. An error is transient: the batch ends before this event.
func (c *Consumer) take(ctx context.Context, tx pgx.Tx, e *eventlog.Recorded, parked map[string]bool,
	careful bool,
) error {
	stream := e.StreamID.String()
	if parked[stream] {
		return c.park(ctx, tx, e, behindReason, 0)
	}
	if !careful {
		return c.handle(ctx, tx, e)
	}
	err := c.guarded(ctx, tx, e)
	if err == nil {
		return nil
	}
	if c.transient(err, e.Position) {
		return fmt.Errorf("event %s (%s): %w", e.Position, e.Type, err)
	}
	parked[stream] = true
	c.logger().ErrorContext(ctx, "parking a stream: its event cannot be taken", "consumer", c.Name,
		"stream", stream, "version", e.Version, "type", e.Type, "position", e.Position.String(), "error", err)
	return c.park(ctx, tx, e, err.Error(), 1)
}

// guarded handles an event inside a savepoint.
func (c *Consumer) guarded(ctx context.Context, tx pgx.Tx, e *eventlog.Recorded) error {
	return pg.Err(pgx.BeginFunc(ctx, tx, func(sp pgx.Tx) error { return c.handle(ctx, sp, e) }))
}

// handle calls Handle inside the trace of the event; a panic is an error like another.
func (c *Consumer) handle(ctx context.Context, tx pgx.Tx, e *eventlog.Recorded) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errs.New(errs.Internal, "panic: %v", r)
		}
	}()
	return pg.Err(c.Handle(telemetry.WithTraceParent(ctx, e.TraceParent), tx, *e))
}

func (c *Consumer) park(ctx context.Context, tx pgx.Tx, e *eventlog.Recorded, reason string, attempts int) error {
	_, err := tx.Exec(ctx, `insert into eventlog.parked
		(tenant, consumer, stream, version, epoch, position, type, reason, attempts, next_retry)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, now() + $10::interval)
		on conflict do nothing`,
		e.Tenant, c.Name, e.StreamID.String(), e.Version, e.Position.Epoch, e.Position.N, string(e.Type),
		Storable(reason, maxReason), attempts, parkedFirst)
	if err != nil {
		return fmt.Errorf("park event %s: %w", e.Position, pg.Err(err))
	}
	return nil
}

// waiting is one parked stream.
type waiting struct {
	tenant, stream string
	versions       []int64
	attempts       int
	due            bool
}

// retryDue tries the parked streams whose time has come, and returns those that stay parked.
func (c *Consumer) retryDue(ctx context.Context, tx pgx.Tx) (map[string]bool, error) {
	rows, err := tx.Query(ctx, `select tenant, stream, array_agg(version order by version), max(attempts),
		min(next_retry) <= now()
		from eventlog.parked where consumer = $1 group by tenant, stream order by min(position)`, c.Name)
	if err != nil {
		return nil, pg.Err(err)
	}
	streams, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (w waiting, err error) {
		return w, r.Scan(&w.tenant, &w.stream, &w.versions, &w.attempts, &w.due)
	})
	if err != nil {
		return nil, pg.Err(err)
	}
	left := map[string]bool{}
	for _, w := range streams {
		done := false
		if w.due {
			if done, err = c.retry(ctx, tx, w); err != nil {
				return nil, err
			}
		}
		if !done {
			left[w.stream] = true
		}
	}
	return left, nil
}

// retry takes the parked events of a stream in order until one fails again. done: none is left.
func (c *Consumer) retry(ctx context.Context, tx pgx.Tx, w waiting) (done bool, err error) {
	id, err := events.ParseStreamID(w.stream)
	if err != nil {
		return false, err
	}
	recs, err := c.Log.ReadStream(ctx, tx, w.tenant, id, w.versions[0]-1)
	if err != nil {
		return false, err
	}
	for i := range recs {
		e := &recs[i]
		if !slices.Contains(w.versions, e.Version) {
			continue
		}
		if failure := c.guarded(ctx, tx, e); failure != nil {
			return false, c.parkAgain(ctx, tx, w, e, failure)
		}
		if _, err := tx.Exec(ctx, `delete from eventlog.parked where consumer = $1 and stream = $2 and version = $3`,
			c.Name, w.stream, e.Version); err != nil {
			return false, pg.Err(err)
		}
	}
	c.logger().InfoContext(ctx, "a parked stream goes on", "consumer", c.Name, "stream", w.stream)
	return true, nil
}

func (c *Consumer) parkAgain(ctx context.Context, tx pgx.Tx, w waiting, e *eventlog.Recorded, failure error) error {
	c.logger().WarnContext(ctx, "a parked event failed again", "consumer", c.Name, "stream", w.stream,
		"version", e.Version, "attempts", w.attempts+1, "error", failure)
	_, err := tx.Exec(ctx, `update eventlog.parked
		set attempts = case when version = $3 then $4 else attempts end,
		    reason = case when version = $3 then $5 else reason end,
		    next_retry = now() + $6::interval
		where consumer = $1 and stream = $2`,
		c.Name, w.stream, e.Version, w.attempts+1, Storable(failure.Error(), maxReason),
		backoff(w.attempts, parkedFirst, parkedMax))
	return pg.Err(err)
}
