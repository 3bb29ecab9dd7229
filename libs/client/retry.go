package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Retry says when a request is sent again: what 429 refused before anything was done, and what may be done twice
// without harm, which are reads and POSTs with their key. A PUT, PATCH or DELETE whose answer was lost may have been
// carried out: the caller reads again.
type Retry struct {
	// Attempts is how often a request is sent at most, the first time included.
	Attempts int
	// MaxWait is the longest wait before it is sent again; an answer that asks for a longer one is returned.
	MaxWait time.Duration
	// RefusedStands has a connection that nobody accepts reported at once: for people, who mistyped an address.
	RefusedStands bool
}

// DefaultRetry outlasts a gateway that is started again.
func DefaultRetry() Retry {
	const attempts, maxWait = 5, 30 * time.Second
	return Retry{Attempts: attempts, MaxWait: maxWait}
}

// firstWait is the wait before the second attempt where the answer names none; it doubles with each further one.
const firstWait = 200 * time.Millisecond

// outcome is what became of one attempt: an answer, or an error.
type outcome struct {
	answer *http.Response
	err    error
}

// wait says how long to wait before a request is sent again; false where its outcome stands. chance is from 0 to 1.
func (r Retry) wait(attempt int, method string, sent http.Header, o outcome, now time.Time, chance float64) (
	time.Duration, bool,
) {
	if attempt >= r.Attempts || !r.worthRepeating(method, sent, o) {
		return 0, false
	}
	if o.answer != nil {
		if asked, ok := retryAfter(o.answer.Header, now); ok {
			return asked, asked <= r.MaxWait
		}
	}
	return backoff(attempt, r.MaxWait, chance), true
}

func (r Retry) worthRepeating(method string, sent http.Header, o outcome) bool {
	keyed := method == http.MethodPost && sent.Get(headerKey) != ""
	repeatable := method == http.MethodGet || keyed
	if o.err != nil {
		return repeatable && (!r.RefusedStands || !errors.Is(o.err, syscall.ECONNREFUSED))
	}
	switch o.answer.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusConflict: // the first request with this key is under way: its answer comes
		return keyed && o.answer.Header.Get(headerRetryAfter) != ""
	default: // of a gateway, or a proxy before it, that is away or late
		return repeatable && slices.Contains([]int{
			http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		}, o.answer.StatusCode)
	}
}

// backoff doubles with each attempt; up to a half is left to chance, so that many do not come at once.
func backoff(attempt int, most time.Duration, chance float64) time.Duration {
	const maxDoublings = 20 // beyond it every bound is passed
	full := min(firstWait<<min(attempt-1, maxDoublings), most)
	return full - time.Duration(float64(full)*chance/2)
}

// retryAfter reads seconds, or a date of HTTP.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	value := strings.TrimSpace(h.Get(headerRetryAfter))
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(value)
	return max(0, at.Sub(now)), err == nil
}

// jitter is no secret.
func jitter() float64 { return rand.Float64() } //nolint:gosec // it spreads waits

// pause reports whether the wait passed before ctx ended.
func pause(ctx context.Context, wait time.Duration) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
