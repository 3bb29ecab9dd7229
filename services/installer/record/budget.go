package record

import "time"

// RateLimit is a token bucket for the events that reports may append: Burst at once, and one more each Every. The
// limits of each operator (FlapLimit, HealthLimit) do not bound a cluster that invents operators, or a thousand that
// flap together.
type RateLimit struct {
	Burst int
	Every time.Duration
}

// ScopeRateLimit holds for one namespace of a cluster, ClusterRateLimit for all of a cluster. An install or an upgrade
// appends about ten events, so that two hundred operators may be installed at once in a namespace and a thousand in a
// cluster. In the long run a namespace may append one event every three seconds, a cluster one a second.
var (
	ScopeRateLimit   = RateLimit{Burst: 2000, Every: 3 * time.Second}
	ClusterRateLimit = RateLimit{Burst: 10_000, Every: time.Second}
)

// Budget is how much of a rate limit is used up. Its zero value is unused.
type Budget struct {
	Spent int       `json:"spent,omitempty"`
	Since time.Time `json:"since,omitzero"` // until when elapsed time was credited
	// Next is the operator to begin with: those before it were recorded when the budget was used up.
	Next string `json:"next,omitempty"`
}

// Refill credits the time that has passed until now. Where a clock was set back nothing is credited, and nothing waits
// until the clock is where it was.
func (b Budget) Refill(a RateLimit, now time.Time) Budget {
	if b.Since.Sub(now) > ClockTolerance {
		b.Since = now
	}
	back := int(now.Sub(b.Since) / a.Every)
	switch {
	case b.Spent <= back || b.Spent == 0:
		b.Spent, b.Since = 0, now
	case back > 0:
		b.Spent -= back
		b.Since = b.Since.Add(time.Duration(back) * a.Every)
	}
	return b
}

// Remaining is how many events may still be appended. Events that belong together may exceed it together: it is never
// negative, and the excess is credited first.
func (b Budget) Remaining(a RateLimit) int { return max(0, a.Burst-b.Spent) }
