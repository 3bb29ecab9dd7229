package window_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan/window"
)

func at(t testing.TB, s string) time.Time {
	t.Helper()
	out, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func schedule(t testing.TB, groups ...[]events.Window) window.Schedule {
	t.Helper()
	var in []events.WindowGroup
	for _, g := range groups {
		in = append(in, events.WindowGroup{Policy: "nights", Windows: g})
	}
	s, err := window.Parse(in)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWindows: when a window is open, when it opens next and when it closes (issue: maintenance windows with
// time zones). Times are UTC.
func TestWindows(t *testing.T) {
	t.Parallel()
	sat := events.Window{Days: []string{"Sat"}, Start: "22:00", Minutes: 240, TimeZone: "Europe/Berlin"}
	gap := events.Window{Days: []string{"Sun"}, Start: "02:30", Minutes: 60, TimeZone: "Europe/Berlin"}
	across := events.Window{Days: []string{"Sun"}, Start: "01:30", Minutes: 120, TimeZone: "Europe/Berlin"}
	cases := []struct {
		name   string
		window events.Window
		at     string
		open   bool
		next   string
		closes string
	}{
		{"before, winter", sat, "2026-01-17T20:59:59Z", false, "2026-01-17T21:00:00Z", ""},
		{"begins, winter", sat, "2026-01-17T21:00:00Z", true, "2026-01-17T21:00:00Z", "2026-01-18T01:00:00Z"},
		{
			"beyond midnight it is still Saturday's", sat, "2026-01-18T00:59:59Z", true, "2026-01-18T00:59:59Z",
			"2026-01-18T01:00:00Z",
		},
		{"its end is outside", sat, "2026-01-18T01:00:00Z", false, "2026-01-24T21:00:00Z", ""},
		{"begins, summer", sat, "2026-07-18T20:00:00Z", true, "2026-07-18T20:00:00Z", "2026-07-19T00:00:00Z"},

		// On 29 March 2026 Berlin's clocks go from 02:00 to 03:00 at 01:00 UTC.
		{"start that is skipped: at the change", gap, "2026-03-29T00:59:59Z", false, "2026-03-29T01:00:00Z", ""},
		{
			"start that is skipped: its whole length", gap, "2026-03-29T01:59:59Z", true, "2026-03-29T01:59:59Z",
			"2026-03-29T02:00:00Z",
		},
		{
			"over the change to summer time: minutes that pass", across, "2026-03-29T02:29:59Z", true,
			"2026-03-29T02:29:59Z", "2026-03-29T02:30:00Z",
		},
		{"the week after", gap, "2026-03-29T02:00:00Z", false, "2026-04-05T00:30:00Z", ""},

		// On 25 October 2026 they go from 03:00 to 02:00 at 01:00 UTC: 02:30 is at 00:30 and at 01:30 UTC.
		{"start that comes twice: the first time", gap, "2026-10-25T00:29:59Z", false, "2026-10-25T00:30:00Z", ""},
		{
			"start that comes twice: open from there", gap, "2026-10-25T00:30:00Z", true, "2026-10-25T00:30:00Z",
			"2026-10-25T01:30:00Z",
		},
		{"start that comes twice: not again", gap, "2026-10-25T01:30:00Z", false, "2026-11-01T01:30:00Z", ""},
		{
			"over the change to winter time: minutes that pass", across, "2026-10-25T01:29:59Z", true,
			"2026-10-25T01:29:59Z", "2026-10-25T01:30:00Z",
		},

		// Samoa had no 30 December 2011, and Lord Howe Island changes its clocks by half an hour.
		{
			"a day that is skipped",
			events.Window{Days: []string{"Fri"}, Start: "09:00", Minutes: 60, TimeZone: "Pacific/Apia"},
			"2011-12-29T20:00:00Z", false, "2011-12-30T10:00:00Z", "",
		},
		{
			"half an hour that is skipped",
			events.Window{Start: "02:15", Minutes: 30, TimeZone: "Australia/Lord_Howe"},
			"2026-10-03T15:00:00Z", false, "2026-10-03T15:30:00Z", "",
		},
		{
			"every day",
			events.Window{Start: "06:00", Minutes: 30, TimeZone: "Asia/Kathmandu"},
			"2026-05-05T00:46:00Z", false, "2026-05-06T00:15:00Z", "",
		},
		{
			"windows that follow one another",
			events.Window{Start: "00:00", Minutes: 24 * 60, TimeZone: "UTC"},
			"2026-05-05T12:00:00Z", true, "2026-05-05T12:00:00Z", "",
		},
		{
			"a week long",
			events.Window{Days: []string{"Wed"}, Start: "10:00", Minutes: window.MaxMinutes, TimeZone: "UTC"},
			"2026-05-06T09:00:00Z", true, "2026-05-06T09:00:00Z", "",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := schedule(t, []events.Window{c.window})
			now := at(t, c.at)
			if got := s.Open(now); got != c.open {
				t.Errorf("open is %v", got)
			}
			if got, ok := s.Next(now); !ok || !got.Equal(at(t, c.next)) {
				t.Errorf("next is %s, %v, want %s", got.UTC().Format(time.RFC3339), ok, c.next)
			}
			switch got := s.Closes(now); {
			case !c.open && !got.Equal(now):
				t.Errorf("what is not open closes at %s", got)
			case c.closes == "": // open for longer than that
				if c.open && got.Before(now.Add(7*24*time.Hour-time.Minute)) {
					t.Errorf("closes at %s, want a week later", got)
				}
			case !got.Equal(at(t, c.closes)):
				t.Errorf("closes at %s, want %s", got.UTC().Format(time.RFC3339), c.closes)
			}
		})
	}
}

// TestGroupsAreOpenTogether: where several policies have windows, one of each must be open.
func TestGroupsAreOpenTogether(t *testing.T) {
	t.Parallel()
	nights := []events.Window{{Start: "22:00", Minutes: 480, TimeZone: "UTC"}}
	weekend := []events.Window{
		{Days: []string{"Sat"}, Start: "00:00", Minutes: 1440, TimeZone: "UTC"},
		{Days: []string{"Sun"}, Start: "00:00", Minutes: 1440, TimeZone: "UTC"},
	}
	both := schedule(t, nights, weekend)
	thursday := at(t, "2026-05-07T23:00:00Z")
	if both.Open(thursday) {
		t.Error("open on a Thursday night")
	}
	if next, ok := both.Next(thursday); !ok || !next.Equal(at(t, "2026-05-09T00:00:00Z")) {
		t.Errorf("next is %s, %v", next, ok)
	}
	if closes := both.Closes(at(t, "2026-05-09T01:00:00Z")); !closes.Equal(at(t, "2026-05-09T06:00:00Z")) {
		t.Errorf("closes at %s", closes)
	}
	never := schedule(t, []events.Window{{Days: []string{"Mon"}, Start: "10:00", Minutes: 60, TimeZone: "UTC"}},
		[]events.Window{{Days: []string{"Tue"}, Start: "10:00", Minutes: 60, TimeZone: "UTC"}})
	if next, ok := never.Next(thursday); ok {
		t.Errorf("Monday's and Tuesday's windows are open together at %s", next)
	}
	if s := schedule(t); !s.Always() || !s.Open(thursday) {
		t.Error("no windows are a restriction")
	}
}

// TestCheck: what is wrong is named by field, with what is wanted instead.
func TestCheck(t *testing.T) {
	t.Parallel()
	good := events.Window{Days: []string{"Mon"}, Start: "09:30", Minutes: 60, TimeZone: "Europe/Oslo"}
	if p := window.Check(good); len(p) > 0 {
		t.Errorf("good window: %v", p)
	}
	for field, c := range map[string]struct {
		change func(*events.Window)
		says   string
	}{
		"days":      {func(w *events.Window) { w.Days = []string{"Monday"} }, `"Monday" is not known`},
		"days ":     {func(w *events.Window) { w.Days = []string{"Mon", "Mon"} }, "named twice"},
		"start":     {func(w *events.Window) { w.Start = "9:30" }, "HH:MM"},
		"start ":    {func(w *events.Window) { w.Start = "24:00" }, "23:59"},
		"minutes":   {func(w *events.Window) { w.Minutes = window.MinMinutes - 1 }, "want 5"},
		"minutes ":  {func(w *events.Window) { w.Minutes = window.MaxMinutes + 1 }, "a week"},
		"timeZone":  {func(w *events.Window) { w.TimeZone = "Berlin" }, "Europe/Oslo"},
		"timeZone ": {func(w *events.Window) { w.TimeZone = "Local" }, "IANA"},
		"timeZone.": {func(w *events.Window) { w.TimeZone = "" }, "IANA"},
	} {
		w := good
		c.change(&w)
		p := window.Check(w)
		if len(p) != 1 || p[0].Field != strings.Trim(field, " .") || !strings.Contains(p[0].Text, c.says) {
			t.Errorf("%s: %v", field, p)
		}
		if _, err := window.Parse([]events.WindowGroup{{Policy: "nights", Windows: []events.Window{w}}}); !errs.Is(
			err, errs.Invalid) || !strings.Contains(err.Error(), "nights") {
			t.Errorf("%s: parse gives %v", field, err)
		}
	}
}

// TestNextAndClosesAgreeWithOpen compares with looking at every quarter of an hour.
func TestNextAndClosesAgreeWithOpen(t *testing.T) {
	t.Parallel()
	const step = 15 * time.Minute
	zones := []string{"UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Chatham"}
	rapid.Check(t, func(t *rapid.T) {
		anyWindow := func() events.Window {
			return events.Window{
				Days:     rapid.SliceOfNDistinct(rapid.SampledFrom(window.Days()), 0, 3, rapid.ID).Draw(t, "days"),
				Start:    rapid.SampledFrom([]string{"00:00", "02:15", "02:30", "13:45", "23:45"}).Draw(t, "start"),
				Minutes:  15 * rapid.IntRange(1, 200).Draw(t, "quarters"),
				TimeZone: rapid.SampledFrom(zones).Draw(t, "zone"),
			}
		}
		groups := []events.WindowGroup{
			{Windows: []events.Window{anyWindow(), anyWindow()}},
			{Windows: []events.Window{anyWindow()}},
		}
		s, err := window.Parse(groups)
		if err != nil {
			t.Fatal(err)
		}
		// Near changes of the clocks, and anywhere.
		now := time.Date(2026, time.Month(rapid.SampledFrom([]int{3, 4, 7, 10}).Draw(t, "month")),
			rapid.IntRange(1, 31).Draw(t, "day"), 0, 0, 0, 0, time.UTC)
		looked := now
		for !s.Open(looked) && looked.Sub(now) < 15*24*time.Hour {
			looked = looked.Add(step)
		}
		if next, ok := s.Next(now); s.Open(looked) && (!ok || !next.Equal(looked)) {
			t.Fatalf("next is %s, %v, looking gives %s", next, ok, looked)
		}
		closed := looked
		for s.Open(closed) && closed.Sub(looked) < 6*24*time.Hour {
			closed = closed.Add(step)
		}
		if got := s.Closes(looked); !s.Open(closed) && !got.Equal(closed) {
			t.Fatalf("closes at %s, looking gives %s", got, closed)
		}
	})
}

// BenchmarkNext is the case that has to look at a whole year: two policies that are never open together.
func BenchmarkNext(b *testing.B) {
	s := schedule(b, []events.Window{{Days: []string{"Mon"}, Start: "10:00", Minutes: 60, TimeZone: "Europe/Berlin"}},
		[]events.Window{{Days: []string{"Tue"}, Start: "10:00", Minutes: 60, TimeZone: "America/New_York"}})
	now := at(b, "2026-05-07T23:00:00Z")
	for b.Loop() {
		s.Next(now)
	}
}
