package model_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// A replacement holds for the object that it was decided on: of the same life of the name, with no change of what
// people ask for since then. What was observed meanwhile does not count.
func TestMatch(t *testing.T) {
	t.Parallel()
	const incarnation, version, intent = 2, 9, 7
	for _, c := range []struct {
		match, none string
		there, gone bool
	}{
		{"", "", true, true},
		{"*", "", true, false},
		{"", "*", false, true},
		{`"2.9"`, "", true, false},
		{`"2.7"`, "", true, false},
		{`"2.6"`, "", false, false},
		{`"2.10"`, "", false, false},
		{`"1.9"`, "", false, false},
		{`"2.9-0a1b"`, "", true, false},
		{`"2.9-0a1b~-gzip"`, "", true, false},
		{`W/"2.9"`, "", false, false},
		{`"1.9", "2.8"`, "", true, false},
		{`"nonsense"`, "", false, false},
		{`""`, "", false, false},
		{`"2.9`, "", true, false},
		{`"-1.9"`, "", false, false},
	} {
		m := model.ParseMatch(c.match, c.none)
		if got := m.Holds(incarnation, version, intent); got != c.there {
			t.Errorf("If-Match: %s, If-None-Match: %s holds for what is there: %v", c.match, c.none, got)
		}
		if got := m.Holds(0, 0, 0); got != c.gone {
			t.Errorf("If-Match: %s, If-None-Match: %s holds for what is not there: %v", c.match, c.none, got)
		}
		if m.Given() != (c.match != "" || c.none != "") {
			t.Errorf("If-Match: %s, If-None-Match: %s is a precondition: %v", c.match, c.none, m.Given())
		}
	}
	for stream, want := range map[string]string{
		"subscription:0b0e7b0c-0000-5000-8000-000000000000:3": `"3.4"`, "": "", "nonsense": "",
	} {
		if got := model.TagOf(stream, 4); got != want {
			t.Errorf("version 4 of stream %q has the tag %s", stream, got)
		}
	}
}
