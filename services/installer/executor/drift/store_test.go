package drift

import (
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestStore: R-CSV-24: a drift is reported of its operator until it is put right, and a while longer; what is undone
// again is reported as it is.
func TestStore(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 9, 20, 0, 0, 0, time.UTC)
	s := NewStore()
	a := protocol.ObjectRef{Kind: "ConfigMap", Namespace: "ports", Name: "a"}
	b := protocol.ObjectRef{Kind: "ConfigMap", Namespace: "ports", Name: "b"}
	s.note("ports", "tide.v1", protocol.Drift{ObjectRef: b, Since: now})
	s.note("ports", "tide.v1", protocol.Drift{ObjectRef: a, Since: now, Corrected: true})
	s.note("ports", "wind.v1", protocol.Drift{ObjectRef: protocol.ObjectRef{Kind: "Role", Name: "c"}, Since: now})
	if got := s.Of("ports", "tide.v1", now); len(got) != 2 || got[0].Name != "a" || got[1].Name != "b" {
		t.Errorf("got %v", got)
	}
	if got := s.uncorrected("ports"); len(got) != 2 {
		t.Errorf("only reported: %v", got)
	}
	s.undone("ports", a)
	if got := s.uncorrected("ports"); len(got) != 3 {
		t.Errorf("only reported after one was undone: %v", got)
	}
	s.note("ports", "tide.v1", protocol.Drift{ObjectRef: a, Since: now, Corrected: true})
	if got := s.Of("ports", "tide.v1", now.Add(correctedFor+time.Second)); len(got) != 1 || got[0].Name != "b" ||
		s.has("ports", a) {
		t.Errorf("long after: %v", got)
	}
	s.remove("ports", b)
	if s.has("ports", b) || s.has("quays", b) {
		t.Error("what is as it should be still counts as drift")
	}
	s.forget("ports", func(operator string) bool { return operator != "wind.v1" })
	if got := s.uncorrected("ports"); len(got) != 0 {
		t.Errorf("of operators that are gone: %v", got)
	}
}
