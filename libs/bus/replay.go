package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// Replay takes the log from its beginning for a consumer, beside the live one: what it makes goes to tables that nobody
// reads yet. Like the live one it parks what cannot be taken, and goes on without what a person has skipped; both show
// when Finish puts it in the place of the live one.
type Replay struct {
	c       *Consumer
	handle  Handler
	at      events.Position
	parked  parkedStreams
	waiting []waitingEvent
}

// waitingEvent is an event that a replay has parked.
type waitingEvent struct {
	event    eventlog.Recorded
	reason   string
	attempts int
}

// Replay begins at the beginning of the log; handle is what makes the effects beside.
func (c *Consumer) Replay(handle Handler) *Replay {
	return &Replay{
		c: c, handle: handle, at: events.Position{Epoch: 1}, parked: parkedStreams{streams: map[string]bool{}},
	}
}

// At is the position that the replay has reached.
func (r *Replay) At() events.Position { return r.at }

// Fold takes a batch inside tx and returns by how many positions that moved; at the head it is 0. Where tx does not
// commit, the replay is of no use any more. Its error says what cannot be passed: an event type that is unknown to this
// program, a database that is away.
func (r *Replay) Fold(ctx context.Context, tx pgx.Tx, limit int) (moved int64, err error) {
	if r.parked.skipped == nil {
		if r.parked.skipped, err = r.c.skipped(ctx, tx, r.at); err != nil {
			return 0, err
		}
	}
	f := r.c.Filter()
	f.Raw = true
	recs, upTo, err := r.c.Log.ReadAfter(ctx, tx, r.at, f, limit)
	if err != nil {
		return 0, err
	}
	for i := range recs {
		err := decode(&recs[i])
		if _, unknown := errors.AsType[*events.UnknownTypeError](err); unknown {
			return 0, err
		}
	}
	// First without savepoints for each event, which is fast; where one fails, the batch is taken again.
	if err := pgx.BeginFunc(ctx, tx, func(sp pgx.Tx) error { return r.fast(ctx, sp, recs) }); err != nil {
		if err := r.careful(ctx, tx, recs); err != nil {
			return 0, err
		}
	}
	if !r.at.Less(upTo) {
		return 0, nil
	}
	moved = upTo.N - r.at.N
	r.at = upTo
	return moved, nil
}

// fast takes a batch in which nothing is parked, and nothing fails.
func (r *Replay) fast(ctx context.Context, tx pgx.Tx, recs []eventlog.Recorded) error {
	for i := range recs {
		e := &recs[i]
		if r.passes(e) {
			continue
		}
		if e.Payload == nil || r.parked.streams[e.StreamID.String()] {
			return errCareful
		}
		if err := r.c.call(ctx, tx, e, r.handle); err != nil {
			return err
		}
	}
	return nil
}

func (r *Replay) careful(ctx context.Context, tx pgx.Tx, recs []eventlog.Recorded) error {
	for i := range recs {
		e := &recs[i]
		stream := e.StreamID.String()
		switch {
		case r.passes(e):
		case r.parked.streams[stream]:
			r.waiting = append(r.waiting, waitingEvent{*e, behindReason, 0})
		default:
			err := decode(e)
			if err == nil {
				err = pgx.BeginFunc(ctx, tx, func(sp pgx.Tx) error { return r.c.call(ctx, sp, e, r.handle) })
			}
			if err == nil {
				continue
			}
			if passing(err) {
				return fmt.Errorf("event %s (%s): %w", e.Position, e.Type, err)
			}
			r.c.logger().ErrorContext(ctx, "parking a stream in a rebuild: its event cannot be taken", "consumer", r.c.Name,
				"stream", stream, "version", e.Version, "type", e.Type, "position", e.Position.String(), "error", err)
			r.parked.streams[stream] = true
			r.waiting = append(r.waiting, waitingEvent{*e, err.Error(), 1})
		}
	}
	return nil
}

// passing reports whether the whole batch had better be tried again: something is away.
func passing(err error) bool {
	err = pg.Err(err)
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errs.Is(err, errs.Unavailable) || errs.Is(err, errs.Conflict)
}

func (r *Replay) passes(e *eventlog.Recorded) bool {
	return len(r.parked.skipped) > 0 && r.parked.skipped[skippedKey(e.StreamID.String(), e.Version)]
}

// Finish puts the replay in the place of the live one, in the transaction that puts its tables there, behind
// a lock on the consumer's checkpoint.
func (r *Replay) Finish(ctx context.Context, tx pgx.Tx) error {
	// The checkpoint may go back here, and what was parked before is forgotten: only for a consumer of this role.
	if _, err := tx.Exec(ctx, `select eventlog.rebuilt($1, $2, $3)`, r.c.Name, r.at.Epoch, r.at.N); err != nil {
		return fmt.Errorf("put the rebuilt %s in place: %w", r.c.Name, pg.Err(err))
	}
	for i := range r.waiting {
		w := &r.waiting[i]
		if err := r.c.park(ctx, tx, &w.event, w.reason, w.attempts); err != nil {
			return err
		}
	}
	return nil
}
