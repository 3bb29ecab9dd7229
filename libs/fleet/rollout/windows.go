package rollout

import (
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan/window"
)

// windows are when clusters of a rollout may be directed. Those that cannot be read, since this program is older than
// the one that took them, are an error: nothing goes on.
func windows(s events.RolloutStarted) (window.Schedule, error) {
	if len(s.Windows) == 0 {
		return window.Schedule{}, nil
	}
	return window.Parse([]events.WindowGroup{{Policy: s.FleetSubscription, Windows: s.Windows}})
}

// NextWindow is the first moment from now on at which clusters may be directed: now where that is so, or where there
// are no windows. It is false where there is none within a year.
func NextWindow(list []events.Window, now time.Time) (time.Time, bool) {
	schedule, err := windows(events.RolloutStarted{Windows: list})
	if err != nil {
		return time.Time{}, false
	}
	return schedule.Next(now)
}

// late says whether a cluster that is being changed has taken longer than it may. Time outside of the windows does not
// count: what its plan waits for may not be allowed then, either.
func (d *decision) late(c Cluster) bool {
	limit := time.Duration(d.state.Started.DeadlineSeconds) * time.Second
	if d.world.Now.Sub(c.Since) < limit {
		return false
	}
	return d.schedule.Always() || openFor(d.schedule, c.Since, d.world.Now, limit)
}

// openFor says whether windows were open for a time between two moments.
func openFor(s window.Schedule, from, to time.Time, want time.Duration) bool {
	for want > 0 {
		opens, ok := s.Next(from)
		if !ok || !opens.Before(to) {
			return false
		}
		closes := s.Closes(opens)
		if closes.After(to) {
			closes = to
		}
		if !closes.After(opens) {
			return false
		}
		want -= closes.Sub(opens)
		from = closes
	}
	return true
}

// mayDirect says whether clusters may be directed now: in a window, and after the gates before the open wave.
func (d *decision) mayDirect() bool {
	return d.schedule.Open(d.world.Now) && d.gates(events.GateBefore) && d.err == nil
}
