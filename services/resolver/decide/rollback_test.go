package decide_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// TestRollbackWaitsForAPerson: a rollback is planned also from an operator that failed, and whatever modes say, a
// person has to approve it (P12).
func TestRollbackWaitsForAPerson(t *testing.T) {
	t.Parallel()
	for _, phase := range []string{"Succeeded", "Failed"} {
		s := newScene().installed("a.v2", "2.0.0", phase)
		s.Subscriptions[0].Rollback = resolution.Rollback{From: "a.v2", To: "a.v1"}
		s.Policies = []decide.Policy{policy("p", rules("Any", "Automatic"))}
		d := s.decide(t)
		if len(d.Proposals) != 1 {
			t.Fatalf("%s: %d proposals", phase, len(d.Proposals))
		}
		e := d.Proposals[0].Event
		type got struct {
			CSV, Replaces, Reason, Approval string
			Reasons                         []string
		}
		want := got{"a.v1", "a.v2", "Rollback", "Manual", []string{"Rollback"}}
		b := e.Bundles[0]
		if diff := cmp.Diff(want, got{b.CSV, b.Replaces, b.Reason, e.Approval, e.ManualReasons}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", phase, diff)
		}
	}
	s := newScene().installed("a.v2", "2.0.0", "Installing")
	s.Subscriptions[0].Rollback = resolution.Rollback{From: "a.v2", To: "a.v1"}
	if d := s.decide(t); len(d.Proposals) != 0 {
		t.Error("a rollback was planned while the upgrade is under way")
	}
}
