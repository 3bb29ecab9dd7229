package webhook

import "time"

const (
	// GiveUpAfter is how long a message is tried again: over a weekend on which nobody looks after the receiver.
	GiveUpAfter = 72 * time.Hour
	// MinAttempts is how often it is tried however old it is: it may have waited all that time for the one before it of
	// its subject, and a receiver that starts may refuse the first.
	MinAttempts = 3
	// Refusals is how often a message is refused before its place is given to others, where places are short: what a
	// receiver that takes others refuses twice, it will refuse again.
	Refusals = 2
	// MaxRetryAfter bounds the wish of a receiver to be left alone: one that asks for more would look like one that is
	// gone.
	MaxRetryAfter = time.Hour
	// Timeout bounds one attempt: a receiver takes a message first, and works on it then.
	Timeout = 10 * time.Second
	// jitter is by what part of itself a pause is longer at most, so that what failed together is not tried together.
	jitter = 0.2
)

// pauses are those after the first attempt, the second, and so on; the last is repeated.
var pauses = []time.Duration{ //nolint:gochecknoglobals // a table
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour,
	4 * time.Hour, 8 * time.Hour,
}

// Pause is how long to wait after so many attempts that failed. random is from 0 to 1; after is what the receiver asked
// for, 0 without a wish.
func Pause(attempts int, random float64, after time.Duration) time.Duration {
	p := pauses[min(max(attempts, 1), len(pauses))-1]
	p += time.Duration(float64(p) * jitter * random)
	return max(p, min(after, MaxRetryAfter))
}

// Over says whether a message that may be sent since a time is given up rather than tried at the next one.
func Over(since, next time.Time, attempts int) bool {
	return attempts >= MinAttempts && next.Sub(since) > GiveUpAfter
}
