package operators

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestHistoryIsReadAsWritten: what PostgreSQL writes is read as encoding/json reads it, in its own order and in any
// other, and so is what is none (issue 13, section 5: the list of a fleet).
func TestHistoryIsReadAsWritten(t *testing.T) {
	t.Parallel()
	const (
		one = `{"time": "2031-02-03T12:00:01.5Z", "event": "e1", "phase": "Pending", "reason": ""}`
		two = `{"time": "2031-02-03T14:00:02+02:00", "event": "e2", "phase": "Failed", "reason": "Röntgen"}`
	)
	for _, c := range []struct {
		text string
		own  bool // read without encoding/json
	}{
		{`[]`, true},
		{`[` + one + `]`, true},
		{`[` + one + `, ` + two + `]`, true},
		{`[` + one + `,` + two + `]`, false},
		{`[{"event": "e1", "phase": "Pending"}]`, false},
		{`[{"time": "2031-02-03T12:00:01Z", "event": "e1", "phase": "a\"b", "reason": "c"}]`, false},
		{`[{"time": "2031-02-03T12:00:01Z", "event": "e1", "phase": "a", "reason": "c", "more": 1}]`, false},
		{`null`, false},
		{`[` + one + `, ]`, false},
		{`[` + one, false},
		{`[` + one + two + `]`, false},
		{`[{"time": "yesterday", "event": "e1", "phase": "a", "reason": "c"}]`, false},
		{``, false},
	} {
		var want []model.Phase
		wrong := json.Unmarshal([]byte(c.text), &want)
		var got history
		err := got.Scan(c.text)
		if (err != nil) != (wrong != nil) {
			t.Errorf("%s: error %v, that of encoding/json is %v", c.text, err, wrong)
		}
		if diff := cmp.Diff(want, []model.Phase(got)); wrong == nil && diff != "" {
			t.Errorf("%s: %s", c.text, diff)
		}
		if _, own := written(c.text); own != c.own {
			t.Errorf("%s: read without encoding/json: %t, want %t", c.text, own, c.own)
		}
	}
	if err := new(history).Scan(nil); err == nil {
		t.Error("no history is read as one")
	}
}
