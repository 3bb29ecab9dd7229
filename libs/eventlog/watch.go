package eventlog

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

const (
	// channel is what the sequencer notifies.
	channel = "eventlog_sequenced"
	// relisten is the pause before a listener that lost its connection tries again.
	relisten = 500 * time.Millisecond
	// waitTick is how often Wait looks without a notice: about a third of what a batch of the sequencer
	// takes when it is idle, so that a caller without a listener loses little.
	waitTick = 8 * time.Millisecond
)

// Changed returns a channel that is closed when there may be new positions. Take it before you read,
// wait on it after: then no notice falls between. Notices come while Listen runs; they are hints, so
// that a reader also looks by itself now and then.
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

// Listen receives the sequencer's notices on a connection of its own and wakes those who hold
// Changed, until ctx ends; it reconnects for ever. It returns nil.
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
	if _, err := conn.Exec(ctx, "listen "+channel); err != nil {
		return pg.Err(err)
	}
	l.wake() // what happened while nobody listened
	for {
		if _, err := conn.Conn().WaitForNotification(ctx); err != nil {
			return pg.Err(err)
		}
		l.wake()
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
	tick := time.NewTicker(waitTick)
	defer tick.Stop()
	for {
		changed := l.Changed()
		p, ok, err := l.PositionOf(ctx, l.pool, a.Tenant, a.Stream, a.Version)
		if ok || err != nil {
			return p, ok, err
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-limit.C:
			return events.Position{}, false, nil
		case <-ctx.Done():
			return events.Position{}, false, context.Cause(ctx)
		}
	}
}
