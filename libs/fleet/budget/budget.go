// Package budget bounds how many clusters may be changed, or may leave, within an hour, by whatever cause: a slip in a
// selector, a directory that was applied with --prune, a hub that was restored, a catalog gone wrong. Above the bound
// everything waits for time to pass, or for a person. It is pure.
package budget

import (
	"slices"
	"time"
)

// Window is the stretch of time in which changes count together: long enough for somebody to notice, short enough
// that a fleet is not held up for a day.
const Window = time.Hour

// Bounds of a tenant that has set none. Who has fewer clusters than that sees every one of them; who has more is woken
// before the mistake is everywhere.
const (
	// DefaultChanged does not slow down fleets of a usual size: waves, soaks and failures hold those back.
	DefaultChanged = 100
	// DefaultLeaving is smaller: nothing else holds back who leaves, and a fleet that shrinks by so many within an hour
	// is a slip more often than not.
	DefaultLeaving = 20
)

// Max bounds what is set or allowed: no hub has more clusters.
const Max = 100_000

// Budget is how many clusters may be changed within the window, and which were. Its zero value bounds nothing.
type Budget struct {
	// Limit is how many clusters, what persons allowed more included; below 1 it is no limit.
	Limit int
	// Changes are the times at which clusters were changed last, by their names.
	Changes map[string]time.Time
}

// counts says whether a change at a time counts still. One from the future, by another clock, does.
func counts(at, now time.Time) bool { return now.Sub(at) < Window }

// Used is how many clusters were changed within the window.
func (b Budget) Used(now time.Time) int {
	n := 0
	for _, at := range b.Changes {
		if counts(at, now) {
			n++
		}
	}
	return n
}

// Left says which of the wanted clusters may be changed now, in their order, and which have to wait for a person or for
// time to pass. A cluster that was changed within the window counts once, and may be changed again.
func (b Budget) Left(wanted []string, now time.Time) (may, wait []string) {
	if b.Limit < 1 {
		return wanted, nil
	}
	used := b.Used(now)
	for _, name := range wanted {
		at, changed := b.Changes[name]
		switch {
		case changed && counts(at, now):
		case used >= b.Limit:
			wait = append(wait, name)
			continue
		default:
			used++
		}
		may = append(may, name)
	}
	return may, wait
}

// Until is when a cluster that has to wait now may be changed without a person: when so many changes have left the
// window that one more fits. It is now where one fits already. What was allowed more ends earlier or later than that.
func (b Budget) Until(now time.Time) time.Time {
	var counted []time.Time
	for _, at := range b.Changes {
		if counts(at, now) {
			counted = append(counted, at)
		}
	}
	over := len(counted) - b.Limit
	if b.Limit < 1 || over < 0 {
		return now
	}
	slices.SortFunc(counted, time.Time.Compare)
	return counted[over].Add(Window)
}

// Raised is a limit with what persons allowed more within the window. No limit stays none.
func Raised(limit int, allowed []Allowance, now time.Time) int {
	if limit < 1 {
		return 0
	}
	for _, a := range allowed {
		if counts(a.At, now) {
			limit += a.More
		}
	}
	return limit
}

// Allowance is so many clusters more, for the window that follows: a change that was made by it counts for as long.
type Allowance struct {
	More int
	At   time.Time
}
