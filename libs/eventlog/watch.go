package eventlog

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

const (
	// sequencedChannel is what the sequencer notifies after it has given positions.
	sequencedChannel = "eventlog_sequenced"
	// awaitedChannel is what Wait notifies, so that a sequencer at rest gives positions at once.
	awaitedChannel = "eventlog_awaited"
	// relisten is the pause before a listener that lost its connection tries again.
	relisten = 500 * time.Millisecond
	// waitPoll is how often Wait asks for the position without a notice, for callers in whose process Listen does not
	// run.
	waitPoll = 8 * time.Millisecond
)

// Changed returns a channel that is closed when there may be new positions. Take it before you read,
// wait on it after: then no notice falls between. Notices come while Listen runs; they are hints, so
// that a reader also polls.
func (l *Log) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// wake closes the channel that Changed handed out.
func (l *Log) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
}

// Listen receives notices on a connection of its own until ctx ends: those of the sequencer wake who holds Changed,
// those of Wait a sequencer in this process. It reconnects for ever. It returns nil.
func (l *Log) Listen(ctx context.Context) error {
	for ctx.Err() == nil {
		_ = l.listen(ctx) // every failure has the same answer: connect again
		timer := time.NewTimer(relisten)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
	return nil
}

func (l *Log) listen(ctx context.Context) error {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return pg.Err(err)
	}
	defer discard(conn)
	if _, err := conn.Exec(ctx, "listen "+sequencedChannel+"; listen "+awaitedChannel); err != nil {
		return pg.Err(err)
	}
	l.wake()       // what happened while nobody listened
	defer l.wake() // without the connection, who reads finds out at once whether the database is away
	for {
		n, err := conn.Conn().WaitForNotification(ctx)
		switch {
		case err != nil:
			return pg.Err(err)
		case n.Channel == awaitedChannel:
			l.await()
		default:
			l.wake()
		}
	}
}

// await tells a sequencer in this process that somebody waits for a position.
func (l *Log) await() {
	select {
	case l.awaited <- struct{}{}:
	default: // it has been told, and has not yet acted on it
	}
}

// discard closes a connection that listens, instead of giving it back to the pool with its subscription.
func discard(conn *pgxpool.Conn) {
	raw := conn.Hijack()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = raw.Close(ctx) // nothing of ours is on it
}

// Wait returns the position of the last event of a, which must have been committed, as soon as the
// sequencer has given it one, and false when bound passes first: a caller then names the event as
// stream@version.
func (l *Log) Wait(ctx context.Context, a Appended, bound time.Duration) (events.Position, bool, error) {
	limit := time.NewTimer(bound)
	defer limit.Stop()
	poll := time.NewTicker(waitPoll)
	defer poll.Stop()
	for asked := false; ; asked = true {
		changed := l.Changed()
		p, ok, err := l.PositionOf(ctx, l.pool, a.Tenant, a.Stream, a.Version)
		if ok || err != nil {
			return p, ok, err
		}
		if !asked {
			if _, err := l.pool.Exec(ctx, "select pg_notify($1, '')", awaitedChannel); err != nil {
				return events.Position{}, false, fmt.Errorf("ask for the position of %s@%d: %w", a.Stream, a.Version,
					pg.Err(err))
			}
		}
		select {
		case <-changed:
		case <-poll.C:
		case <-limit.C:
			return events.Position{}, false, nil
		case <-ctx.Done():
			return events.Position{}, false, context.Cause(ctx)
		}
	}
}
