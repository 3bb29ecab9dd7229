package record_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

// TestSanitizeJSON: what Postgres would refuse is replaced wherever it stands, and nothing else is touched.
func TestSanitizeJSON(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"a":"b\u0001\n\\","c":[1]}`:      `{"a":"b\u0001\n\\","c":[1]}`,
		`{"a\u0000b":"\u0000"}`:            `{"a\ufffdb":"\ufffd"}`,
		`["\\u0000","\\\u0000"]`:           `["\\u0000","\\\ufffd"]`,
		`["\ud83d\ude00","é"]`:             `["\ud83d\ude00","é"]`,
		`["\ud83d","\ude00","\ud83d\n"]`:   `["\ufffd","\ufffd","\ufffd\n"]`,
		`["\ud83d\u0000","\ud83d\ud83d"]`:  `["\ufffd\ufffd","\ufffd\ufffd"]`,
		"[\"a\xffb\"]":                     "[\"a\uFFFDb\"]",
		`["[[[{{{"]`:                       `["[[[{{{"]`,
		`["\u00`:                           `["\u00`, // no JSON, which whoever reads it says
		`["\`:                              `["\`,
		strings.Repeat(`[`, 600):           "deep",
		`{"a":` + strings.Repeat("[", 600): "deep",
	} {
		got, err := record.SanitizeJSON([]byte(in))
		if want == "deep" {
			if !errs.Is(err, errs.Invalid) {
				t.Errorf("%.20s: %v", in, err)
			}
			continue
		}
		if err != nil || string(got) != want {
			t.Errorf("%s became %s (%v), want %s", in, got, err, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) { // any text comes through as it is but for NUL
		text := rapid.String().Draw(t, "text")
		raw, err := json.Marshal([]string{text})
		if err != nil {
			t.Fatal(err)
		}
		got, err := record.SanitizeJSON(raw)
		var read []string
		if err != nil || json.Unmarshal(got, &read) != nil || read[0] != strings.ReplaceAll(text, "\x00", "\uFFFD") {
			t.Fatalf("%q became %s (%v)", text, got, err)
		}
	})
}

// TestClampToNowKeepsTheOrder: the clock of a cluster runs too fast and is ahead more and more; each report is later
// than the one before.
func TestClampToNowKeepsTheOrder(t *testing.T) {
	t.Parallel()
	var last time.Time
	for i := range 100 {
		now := start.Add(time.Duration(1+i) * 100 * time.Millisecond)
		got := record.ClampToNow(start.Add(time.Duration(i)*2*time.Second), now)
		if !got.After(last) || got.After(now) {
			t.Fatalf("report %d: %s, after %s, at %s", i, got, last, now)
		}
		last = got
	}
}

// TestSanitizeReport: what cannot be a name, or would not fit into an event, does not hold up the rest.
func TestSanitizeReport(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	history := make([]protocol.Transition, 150)
	many := make([]string, 5001)
	for i := range many {
		many[i] = fmt.Sprint("ns", i)
	}
	in := protocol.ScopeReport{
		Reported: start.Add(time.Hour),
		CSVs: []protocol.CSVReport{
			{Name: "a/b"},
			{Name: "a\uFFFDb"},
			{Name: ""},
			{Name: long},
			{Name: "a", UID: long},
			{
				Name: "tide.v1", Version: long, Dropped: -1, History: history,
				Condition: &protocol.OperatorCondition{Reason: long},
			},
		},
		Plans: []protocol.PlanReport{{ID: "p", Reason: long, Done: -5}},
		Group: &protocol.GroupReport{Name: "coast", Targets: many},
	}
	got, err := record.Sanitize(in, start)
	if !errs.Is(err, errs.Invalid) || len(err.Error()) > 600 || len(got.CSVs) != 1 || got.Group != nil ||
		!got.Reported.Equal(start) {
		t.Errorf("%d operators, group %v, reported %s: %v", len(got.CSVs), got.Group, got.Reported, err)
	}
	c := got.CSVs[0]
	if len(c.Version) > 1024 || len(c.Condition.Reason) > 1024 || c.Dropped != 50 || len(c.History) != 100 ||
		len(got.Plans[0].Reason) > 1024 || got.Plans[0].Done != 0 {
		t.Errorf("version %d, reason %d, dropped %d, history %d, plan %d and %d", len(c.Version),
			len(c.Condition.Reason), c.Dropped, len(c.History), len(got.Plans[0].Reason), got.Plans[0].Done)
	}
	if len(in.CSVs[5].Version) != 1<<20 || len(in.CSVs) != 6 || in.Plans[0].Done != -5 {
		t.Error("what was given is changed")
	}
	ours := protocol.ScopeReport{
		Reported: start, CSVs: []protocol.CSVReport{{Name: "tide.v1.0.0", UID: "u"}},
		Group: &protocol.GroupReport{Name: "coast", Targets: many[:5000]},
	}
	if got, err := record.Sanitize(ours, start.Add(time.Second)); err != nil || len(got.CSVs) != 1 ||
		got.Group == nil || !got.Reported.Equal(start) {
		t.Errorf("a report of ours became %d operators, group %v, reported %s (%v)", len(got.CSVs), got.Group != nil,
			got.Reported, err)
	}
}
