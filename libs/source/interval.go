package source

import "time"

// Times of looking at a source.
const (
	// FallbackPoll replaces an interval that cannot be used (R-CAT-96).
	FallbackPoll = 15 * time.Minute
	// MinPoll bounds how often a source is asked: what must be seen sooner is pushed, by a refresh or a webhook.
	MinPoll = 10 * time.Second
	// DefaultTimeout bounds one poll of a source: a catalog image of a gigabyte over 30 Mbit/s.
	DefaultTimeout = 5 * time.Minute
	// MaxTimeout bounds what settings may ask for: a poll occupies a worker of the indexer.
	MaxTimeout = time.Hour
)

// ReasonInvalidInterval is the reason under which a replaced interval is reported (R-CAT-96).
const ReasonInvalidInterval = "InvalidIntervalError"

// PollInterval returns how often a source is polled: standard if settings say nothing, 0 for
// never. An interval that cannot be parsed, is negative or shorter than MinPoll gives FallbackPoll, and
// replaced true: it is to be reported under ReasonInvalidInterval (R-CAT-96).
func PollInterval(poll string, standard time.Duration) (interval time.Duration, replaced bool) {
	if poll == "" {
		return standard, false
	}
	d, err := time.ParseDuration(poll)
	if err != nil || d < 0 || d > 0 && d < MinPoll {
		return FallbackPoll, true
	}
	return d, false
}

// TimeoutOf returns the bound of one poll; Check reports values that it replaces by the default.
func TimeoutOf(s Settings) time.Duration {
	d, err := time.ParseDuration(s.Timeout)
	if err != nil || d <= 0 || d > MaxTimeout {
		return DefaultTimeout
	}
	return d
}
