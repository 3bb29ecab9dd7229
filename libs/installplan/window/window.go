// Package window says when maintenance windows are open: stretches of time that come again every week on the
// clock of an IANA time zone. It is pure; the time zones are in the program, so that every service that asks
// has the same ones, on whatever machine it runs.
//
// A window begins when the clock of its zone shows its start, and is open for minutes that pass:
//
//	the start is skipped by a change to summer time  → it begins at the change
//	the start comes twice at a change to winter time → it begins the first time, and only then
//	the clock is changed while it is open            → it is neither longer nor shorter
//	it reaches beyond midnight                       → it belongs to the day on which it began
package window

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // so that a zone which the gateway took is known wherever plans begin

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
)

const (
	// MinMinutes is the shortest window: the executor has to learn of an opening in time.
	MinMinutes = 5
	// MaxMinutes is a whole week: what is longer is always open.
	MaxMinutes = 7 * 24 * 60
)

// horizon bounds the search for an opening: windows of several policies may be open together only in one half of
// the year, if their zones change their clocks on other days.
const horizon = 54 * 7 * 24 * time.Hour

// maxLooks bounds the work of that search: twice what two daily windows need that never meet. Many policies whose
// windows never meet count as never open together sooner than after a year.
const maxLooks = 2048

// ahead is how far Closes searches: a window that is open for longer than a week counts as always open.
const ahead = MaxMinutes * time.Minute

// Days are the words for the days of a week, in the order of time.Weekday.
func Days() []string { return []string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"} }

// Schedule is when something may begin: while a window of each group is open. The zero value is always.
type Schedule struct{ groups [][]span }

// span is one window, read.
type span struct {
	days   [7]bool // by time.Weekday of the start
	hour   int
	minute int
	length time.Duration
	zone   *time.Location
}

// Problem is what is wrong with a field of a window.
type Problem struct {
	Field string // days, start, minutes or timeZone
	Text  string // a sentence
}

// Check says what is wrong with a window; nothing where it can be used.
func Check(w events.Window) []Problem {
	_, problems := read(w)
	return problems
}

// Parse reads windows. Its error is errs.Invalid and names policy, window and field.
func Parse(groups []events.WindowGroup) (Schedule, error) {
	var s Schedule
	for _, g := range groups {
		spans := make([]span, 0, len(g.Windows))
		for i, w := range g.Windows {
			sp, problems := read(w)
			if len(problems) > 0 {
				return Schedule{}, errs.New(errs.Invalid, "window %d of approval policy %s: %s", i+1, g.Policy,
					problems[0].Text).
					At(fmt.Sprintf("windows.%d.%s", i, problems[0].Field), "window")
			}
			spans = append(spans, sp)
		}
		s.groups = append(s.groups, spans)
	}
	return s, nil
}

func read(w events.Window) (sp span, problems []Problem) {
	add := func(field, format string, args ...any) {
		problems = append(problems, Problem{field, fmt.Sprintf(format, args...)})
	}
	for _, d := range w.Days {
		i := slices.Index(Days(), d)
		if i < 0 {
			add("days", "day %q is not known: want one of %s", d, strings.Join(Days(), ", "))
			continue
		}
		if sp.days[i] {
			add("days", "day %s is named twice", d)
		}
		sp.days[i] = true
	}
	if len(w.Days) == 0 {
		sp.days = [7]bool{true, true, true, true, true, true, true}
	}
	start, err := time.Parse("15:04", w.Start)
	if err != nil || len(w.Start) != len("15:04") {
		add("start", "start %q is no time of day: want HH:MM from 00:00 to 23:59", w.Start)
	}
	sp.hour, sp.minute = start.Hour(), start.Minute()
	if w.Minutes < MinMinutes || w.Minutes > MaxMinutes {
		add("minutes", "a window of %d minutes: want %d to %d, which is a week", w.Minutes, MinMinutes, MaxMinutes)
	}
	sp.length = time.Duration(w.Minutes) * time.Minute
	if sp.zone, err = zone(w.TimeZone); err != nil {
		add("timeZone", "time zone %q is not known: want the name of an IANA time zone, such as Europe/Oslo or UTC",
			w.TimeZone)
	}
	return sp, problems
}

// zones keeps the zones that were read, some 600 at most: reading one takes longer than all the arithmetic.
var zones sync.Map

// zone reads a time zone. Local is a zone of the machine, which no policy can mean.
func zone(name string) (*time.Location, error) {
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location), nil //nolint:forcetypeassert // nothing else is stored
	}
	if name == "" || strings.EqualFold(name, "local") {
		return nil, errs.New(errs.Invalid, "%q names no time zone", name)
	}
	z, err := time.LoadLocation(name)
	if err != nil {
		return nil, err
	}
	zones.Store(name, z)
	return z, nil
}

// Always says whether there is no restriction.
func (s Schedule) Always() bool { return len(s.groups) == 0 }

// Open says whether a window of each group is open at a moment. The end of a window is outside.
func (s Schedule) Open(at time.Time) bool {
	return !slices.ContainsFunc(s.groups, func(g []span) bool { return !open(g, at) })
}

// Next is the first moment, from the given one on, at which a window of each group is open: the moment itself
// where that is so now. It is false where they are not open together within a year, or within maxLooks.
func (s Schedule) Next(from time.Time) (time.Time, bool) {
	at, agree := from, 0 // agree is how many groups in a row are open at that moment
	for look := 0; agree < len(s.groups); look++ {
		next, ok := opening(s.groups[look%len(s.groups)], at)
		if !ok || next.Sub(from) >= horizon || look == maxLooks {
			return time.Time{}, false
		}
		agree++
		if next.After(at) {
			at, agree = next, 1
		}
	}
	return at, true
}

// Closes is when something that is open at a moment closes, a week later at the most: the moment itself where
// it is not open.
func (s Schedule) Closes(at time.Time) time.Time {
	end := at.Add(ahead)
	for _, g := range s.groups {
		if e := closing(g, at, end); e.Before(end) {
			end = e
		}
	}
	return end
}

func open(g []span, at time.Time) bool {
	return slices.ContainsFunc(g, func(sp span) bool { return sp.end(at).After(at) })
}

// opening is the first moment at or after at in which one of the windows is open.
func opening(g []span, at time.Time) (first time.Time, ok bool) {
	for _, sp := range g {
		next, found := sp.next(at)
		if found && (!ok || next.Before(first)) {
			first, ok = next, true
		}
	}
	return first, ok
}

// closing is when the windows, open at a moment, cease to follow one another without a gap; limit bounds the search.
func closing(g []span, at, limit time.Time) time.Time {
	end := at
	for end.Before(limit) {
		latest := end
		for _, sp := range g {
			if e := sp.end(end); e.After(latest) {
				latest = e
			}
		}
		if latest.Equal(end) {
			return end
		}
		end = latest
	}
	return end
}

// end is when the latest occurrence that is open at a moment ends; the zero time where none is.
func (sp span) end(at time.Time) time.Time {
	var latest time.Time
	sp.around(at, func(start time.Time) bool {
		if end := start.Add(sp.length); !start.After(at) && end.After(at) && end.After(latest) {
			latest = end
		}
		return true
	})
	return latest
}

// next is the moment itself where an occurrence is open then, else the start of the next one.
func (sp span) next(at time.Time) (first time.Time, ok bool) {
	sp.around(at, func(start time.Time) bool {
		switch {
		case !start.Add(sp.length).After(at):
			return true
		case start.After(at):
			first, ok = start, true
		default:
			first, ok = at, true
		}
		return false
	})
	return first, ok
}

// around calls do with the starts near a moment, in their order, until it returns false: from the first that may
// still be open to one that is later.
func (sp span) around(at time.Time, do func(start time.Time) bool) {
	back := int(sp.length/(24*time.Hour)) + 2
	year, month, day := at.In(sp.zone).Date()
	for d := -back; d <= 8; d++ {
		midday := time.Date(year, month, day+d, 12, 0, 0, 0, time.UTC)
		if sp.days[midday.Weekday()] && !do(sp.start(midday.Date())) {
			return
		}
	}
}

// start is when the zone's clock shows the start of a day: the earlier time where it does so twice, the change of
// the clock where it does not.
func (sp span) start(year int, month time.Month, day int) time.Time {
	wall := time.Date(year, month, day, sp.hour, sp.minute, 0, 0, time.UTC)
	// No zone is more than 15 hours from UTC, so that these lie on the two sides of any change near that time.
	const side = 26 * time.Hour
	earlier := sp.shown(wall, wall.Add(-side))
	later := sp.shown(wall, wall.Add(side))
	if later.Before(earlier) {
		earlier, later = later, earlier
	}
	for _, t := range []time.Time{earlier, later} {
		if l := t.In(sp.zone); l.Day() == wall.Day() && l.Hour() == wall.Hour() && l.Minute() == wall.Minute() {
			return t
		}
	}
	change, _ := later.In(sp.zone).ZoneBounds()
	return change.UTC()
}

// shown is when a clock shows a wall time if it is as far from UTC as it is at a moment.
func (sp span) shown(wall, as time.Time) time.Time {
	_, offset := as.In(sp.zone).Zone()
	return wall.Add(-time.Duration(offset) * time.Second)
}
