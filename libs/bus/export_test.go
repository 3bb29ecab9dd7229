package bus

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/events"
)

// FailedSince has the consumer have failed since then.
func (c *Consumer) FailedSince(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.FailingSince = t
}

// RestAfter is how long a consumer rests after so much work.
func RestAfter(worked time.Duration) time.Duration { return restAfter(worked) }

// Rest has the consumer rest until a time, or until somebody looks.
func (c *Consumer) Rest(ctx context.Context, until time.Time) {
	c.pace.rested = until
	c.rest(ctx)
}

// Claimable counts the clusters with work that may be claimed now.
func (l *Lanes) Claimable(ctx context.Context) (int, error) {
	n := 0
	for _, lane := range []Lane{Interactive, FanOut} {
		r := &ring{}
		if err := l.turn(ctx, lane, r); err != nil {
			return 0, err
		}
		n += len(r.pairs)
	}
	return n, nil
}

// Renew takes what may be claimed and renews the claims once; ready is called in between.
func (l *Lanes) Renew(ctx context.Context, n int, ready func([]Scope)) error {
	scopes, err := l.claim(ctx, n)
	if err != nil {
		return err
	}
	l.taken(scopes)
	ready(scopes)
	l.renewOnce(ctx)
	return nil
}

// Sync is what a keeper of streams does every now and then.
func (p *Publisher) Sync(ctx context.Context) error {
	_, err := p.sync(ctx)
	return err
}

// LacksHints says whether hints behind start were deleted from a stream.
func LacksHints(s jetstream.StreamState, lastSeq uint64, lastPosition, start int64) bool {
	return lacksHints(s, lastHint{seq: lastSeq, pos: events.Position{Epoch: 1, N: lastPosition}}, start)
}

// Move takes the checkpoint and moves it, as a batch does.
func (c *Consumer) Move(ctx context.Context, to int64) error {
	return c.Pool.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := c.lock(ctx, tx); err != nil {
			return err
		}
		return c.save(ctx, tx, events.Position{Epoch: 1, N: to})
	})
}

// AtRest is the poll of a consumer that has nothing to do.
func (c *Consumer) AtRest(ctx context.Context) error {
	_, _, err := c.ends(ctx)
	return err
}
