package bus

import (
	"context"
	"time"
)

// FailedSince has the consumer have failed since then.
func (c *Consumer) FailedSince(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.FailingSince = t
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
