package view

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/eventlist"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Waiter lets a read wait for its projection.
type Waiter interface {
	Wait(ctx context.Context, atLeast events.Position, timeout time.Duration) error
	// Serves is nil once the read model can be read.
	Serves() error
}

// Positions lets reads wait until a projection holds a position of the log.
type Positions struct {
	Pool    *pg.Pool
	Log     *eventlog.Log
	Waiters map[string]Waiter // by name of the projection
	Events  *eventlist.Reader

	holding   sync.Mutex
	late      events.Position // that read models did not come to in time
	lateSince time.Time
}

// minPositionWait bounds how long a read waits for its projection: longer than the record is without
// a sequencer after a crash, so that a person who reads what they wrote does not meet it. A projection
// that lags more has a fault that waiting does not end, and a client that wants to wait longer asks
// again.
const minPositionWait = eventlog.Handover + 3*time.Second

// TimeoutError says that a read model did not reach a position in time.
type TimeoutError struct{ cause error }

func (e *TimeoutError) Error() string { return e.cause.Error() }
func (e *TimeoutError) Unwrap() error { return e.cause }

// Timeout says that asking again later may help, as net.Error does.
func (e *TimeoutError) Timeout() bool { return true }

// WaitFor returns when the projection holds everything up to the place that a caller names by minPosition; an
// empty one is no wait. A place beyond the record is errs.Conflict, one not reached in time a
// *TimeoutError. While a read model is being made it is errs.Unavailable: queries join them.
func (r *Positions) WaitFor(ctx context.Context, who model.Caller, name, minPosition string) error {
	return r.waitFor(ctx, name, minPosition, func(ctx context.Context) (events.Position, error) {
		return r.Find(ctx, who, minPosition, "query.minPosition")
	})
}

// WaitForWrite is WaitFor for a place that the caller has just written, or of which they are told nothing before it is
// known that they may see it.
func (r *Positions) WaitForWrite(ctx context.Context, tenant, name, place string) error {
	return r.waitFor(ctx, name, place, func(ctx context.Context) (events.Position, error) {
		return r.find(ctx, tenant, place, "query.minPosition", nil)
	})
}

func (r *Positions) waitFor(
	ctx context.Context, name, place string, find func(context.Context) (events.Position, error),
) error {
	for _, w := range r.Waiters {
		if err := w.Serves(); err != nil {
			return err
		}
	}
	if place == "" {
		return nil
	}
	pos, err := find(ctx)
	if err != nil {
		return err
	}
	w, ok := r.Waiters[name]
	if !ok {
		return errs.New(errs.Internal, "view %s has no projection", name)
	}
	if err := w.Wait(ctx, pos, minPositionWait); err != nil {
		return &TimeoutError{cause: err}
	}
	return nil
}

// holdWait bounds one wait of HoldAll, so that streams which wait go on with their heartbeats; they wait again.
const holdWait = time.Second

// HoldAll returns when all read models hold a position: queries join them. It is errs.Unavailable where that takes
// longer than holdWait. One waits at a time: where another replica keeps a read model its position is polled for.
func (r *Positions) HoldAll(ctx context.Context, at events.Position) error {
	r.holding.Lock()
	defer r.holding.Unlock()
	if !r.late.IsZero() && !at.Less(r.late) && time.Since(r.lateSince) < holdWait {
		return errs.New(errs.Unavailable, "the read models do not hold position %s yet", at)
	}
	until := time.Now().Add(holdWait)
	for _, w := range r.Waiters {
		err := w.Serves()
		if err == nil {
			err = w.Wait(ctx, at, time.Until(until))
		}
		if err == nil {
			continue
		}
		if ctx.Err() == nil { // who went away says nothing of the read models
			r.late, r.lateSince = at, time.Now()
		}
		return err
	}
	return nil
}

// Hold returns when some of the read models hold a position; errs.Unavailable where that takes longer.
func (r *Positions) Hold(names ...string) func(ctx context.Context, at events.Position, within time.Duration) error {
	return func(ctx context.Context, at events.Position, within time.Duration) error {
		until := time.Now().Add(within)
		for _, name := range names {
			w, ok := r.Waiters[name]
			if !ok {
				return errs.New(errs.Internal, "view %s has no projection", name)
			}
			if err := w.Serves(); err != nil {
				return err
			}
			if err := w.Wait(ctx, at, time.Until(until)); err != nil {
				return err
			}
		}
		return nil
	}
}

// Find is the position that a caller names, in either form in which answers to writes name one, waiting for the
// sequencer where it has to; at is where it was given. A position beyond the record is errs.Conflict, an event that has
// none in time a *TimeoutError. So is one of which the caller may not know: ids of streams can be computed of names.
func (r *Positions) Find(ctx context.Context, who model.Caller, text, at string) (events.Position, error) {
	return r.find(ctx, who.Tenant, text, at, func(ctx context.Context, pos events.Position) (bool, error) {
		return r.Events.Knows(ctx, who, pos)
	})
}

// find is Find for those who may know of an event; nil is everybody.
func (r *Positions) find(
	ctx context.Context, tenant, text, at string, knows func(context.Context, events.Position) (bool, error),
) (events.Position, error) {
	ctx = pg.Confine(ctx, tenant) // as the read behind it, which then finds its tenant set
	p, err := model.ParsePlace(text)
	if err != nil {
		return events.Position{}, errs.New(errs.Invalid, "%s", err).At(at, "position")
	}
	if p.Version == 0 {
		head, err := r.Log.Head(ctx, r.Pool)
		if err == nil && head.Less(p.Position) {
			err = errs.New(errs.Conflict, "position %s is beyond the event log, which ends at %s", p.Position,
				head).At(at, "position-in-record")
		}
		return p.Position, err
	}
	until := time.Now().Add(minPositionWait)
	pos, ok, err := r.Log.PositionOf(ctx, r.Pool, tenant, p.Stream, p.Version)
	if err == nil && !ok {
		pos, ok, err = r.Log.Wait(ctx, eventlog.Appended{Tenant: tenant, Stream: p.Stream, Version: p.Version},
			minPositionWait)
	}
	if err == nil && ok && knows != nil {
		if ok, err = knows(ctx, pos); err == nil && !ok {
			// As long as for a stream that there is not: this one has a key that nobody has chosen.
			none := events.StreamID{Kind: p.Stream.Kind, Key: uuid.New(), Incarnation: p.Stream.Incarnation}
			_, _, err = r.Log.Wait(ctx, eventlog.Appended{Tenant: tenant, Stream: none, Version: p.Version},
				time.Until(until))
		}
	}
	if err == nil && !ok {
		err = &TimeoutError{
			errs.New(errs.Unavailable, "version %d of stream %s has no position in the event log yet", p.Version,
				p.Stream),
		}
	}
	return pos, err
}
