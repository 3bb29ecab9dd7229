// Package budget bounds how many clusters may be changed, or lose an operator, within an hour, by whatever cause: a
// slip in a selector, a directory that was applied with --prune, a hub that was restored, a catalog gone wrong.
// Above the bound everything waits for a person. It is pure.
package budget

import "time"

// Window is the stretch of time in which changes count together: long enough for somebody to notice, short enough
// that a fleet is not held up for a day.
const Window = time.Hour

// Change is one change of a cluster.
type Change struct {
	Cluster string
	At      time.Time
}

// Left says which of the wanted clusters may be changed now, in their order, and which have to wait for a person or for
// time to pass. A cluster that was changed within the window counts once, and may be changed again. Limit is how many
// clusters may be changed; below 1 it is no limit.
func Left(limit int, changes []Change, wanted []string, now time.Time) (may, wait []string) {
	if limit < 1 {
		return wanted, nil
	}
	counted := map[string]bool{}
	for _, c := range changes {
		if now.Sub(c.At) < Window {
			counted[c.Cluster] = true
		}
	}
	for _, name := range wanted {
		if !counted[name] && len(counted) >= limit {
			wait = append(wait, name)
			continue
		}
		counted[name] = true
		may = append(may, name)
	}
	return may, wait
}
