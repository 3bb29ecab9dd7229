package installplan

import (
	"time"

	"github.com/chandler-fleet/chandler/libs/installplan/window"
)

// Windows are the plan's maintenance windows. Those that cannot be read, since this program is older than the one
// that took them, are an error: the plan does not begin.
func (s State) Windows() (window.Schedule, error) { return window.Parse(s.Proposed.Windows) }

func (s State) inWindow(now time.Time) bool {
	schedule, err := s.Windows()
	return err == nil && schedule.Open(now)
}

// NextOpening is the first moment from now on at which the plan's windows let it begin: now where they do, or
// where it has none. It is false where they never open together.
func (s State) NextOpening(now time.Time) (time.Time, bool) {
	schedule, err := s.Windows()
	if err != nil {
		return time.Time{}, false
	}
	return schedule.Next(now)
}

// Until is when the plan ceases to be executable if it is not begun: its approval expires or its window closes,
// whichever is first; now where it is not executable, and limit at the latest.
func (s State) Until(now, limit time.Time) time.Time {
	if !s.Executable(now) {
		return now
	}
	if s.Begun {
		return limit
	}
	if s.Proposed.Approval == Manual && s.Approval.Expires.Before(limit) {
		limit = s.Approval.Expires
	}
	if schedule, err := s.Windows(); err == nil && !schedule.Always() {
		if closes := schedule.Closes(now); closes.Before(limit) {
			limit = closes
		}
	}
	return limit
}
