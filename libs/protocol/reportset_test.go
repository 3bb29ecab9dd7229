package protocol_test

import (
	"encoding/json"
	"testing"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestReportSet: sets are equal where they have the same reports, whatever came between and in whatever order; another
// subject, or another byte, is another report.
func TestReportSet(t *testing.T) {
	t.Parallel()
	a, b := protocol.EntryOf("a", []byte("1")), protocol.EntryOf("b", []byte("1"))
	c := protocol.EntryOf("a", []byte("2"))
	if a == b || a == c || protocol.EntryOf("a\n1", nil) == protocol.EntryOf("a", []byte("1\n")) {
		t.Fatal("different reports have one entry")
	}
	var one, other protocol.ReportSet
	one.Add(a)
	one.Add(b)
	one.Remove(a)
	one.Add(c)
	other.Add(c)
	if one == other {
		t.Error("sets of which one lacks a report are equal")
	}
	other.Add(b)
	if one != other || one.Count != 2 {
		t.Errorf("%+v and %+v have the same reports", one, other)
	}
	raw, err := json.Marshal(one)
	if err != nil {
		t.Fatal(err)
	}
	var read protocol.ReportSet
	if err := json.Unmarshal(raw, &read); err != nil || read != one {
		t.Errorf("%s is read as %+v: %v", raw, read, err)
	}
	for _, wrong := range []string{`{"sum":"00"}`, `{"sum":"zz"}`, `{"sum":""}`} {
		if json.Unmarshal([]byte(wrong), &read) == nil {
			t.Errorf("%s is read", wrong)
		}
	}
}
