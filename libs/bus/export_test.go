package bus

import "time"

// FailedSince has the consumer have failed since then.
func (c *Consumer) FailedSince(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.FailingSince = t
}
