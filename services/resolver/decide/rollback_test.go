package decide_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
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
	// The one that it replaces is there still, and waits for a success that does not come.
	s := newScene().installed("a.v1", "1.0.0", "Replacing").installed("a.v2", "2.0.0", "Failed")
	s.Installed[1].Replaces = "a.v1"
	s.Subscriptions[0].Rollback = resolution.Rollback{From: "a.v2", To: "a.v1"}
	if d := s.decide(t); len(d.Proposals) != 1 {
		t.Errorf("%d proposals after an upgrade that failed", len(d.Proposals))
	}
	s = newScene().installed("a.v2", "2.0.0", "Installing")
	s.Subscriptions[0].Rollback = resolution.Rollback{From: "a.v2", To: "a.v1"}
	if d := s.decide(t); len(d.Proposals) != 0 {
		t.Error("a rollback was planned while the upgrade is under way")
	}
}

// TestRolloutsGoBackUnapproved: a rollback that a rollout asks for was decided by whoever asked for that: it waits for
// a person where the subscription or a policy says so, and leads from whatever is beyond the target (issue 14,
// section 2).
func TestRolloutsGoBackUnapproved(t *testing.T) {
	t.Parallel()
	placed := func(s *scene) *decide.Subscription {
		asked := events.SubscriptionPlaced{
			Name: "a", Spec: s.Subscriptions[0].Spec, Owner: "a", Rollout: 3, Avoids: []string{"a.v3"},
			Target:   events.RolloutTarget{Package: "a", CSV: "a.v1", Version: "1.0.0"},
			Rollback: events.SubscriptionRollback{From: "a.v3", To: "a.v1"},
		}
		return decide.EvolveSubscription(nil, decide.Event{
			Subject: "harbour/ops/a", Incarnation: 1, Version: 1, Correlation: "d1", Payload: asked,
		})
	}
	type want struct {
		CSV, Replaces, Approval string
		Reasons                 []string
	}
	for name, c := range map[string]struct {
		change func(*scene)
		want   want
	}{
		"automatic": {func(*scene) {}, want{"a.v1", "a.v2", "Automatic", nil}},
		"an operator fails": {
			func(s *scene) { s.Installed[0].Phase = "Failed" }, want{"a.v1", "a.v2", "Automatic", nil},
		},
		"manual": {
			func(s *scene) { s.Subscriptions[0].Spec.Approval = "Manual" }, want{"a.v1", "a.v2", "Manual", nil},
		},
		"a policy": {
			func(s *scene) { s.Policies = []decide.Policy{policy("p", rules("Major", "Manual"))} },
			want{"a.v1", "a.v2", "Manual", []string{"MajorUpgrade"}},
		},
		"a person, on this cluster": {func(s *scene) {
			s.Subscriptions[0] = *decide.EvolveSubscription(&s.Subscriptions[0], decide.Event{
				Subject: "harbour/ops/a", Incarnation: 1, Version: 2,
				Payload: events.SubscriptionRollbackRequested{From: "a.v2", To: "a.v1"},
			})
		}, want{"a.v1", "a.v2", "Manual", []string{"Rollback"}}},
	} {
		s := newScene().installed("a.v2", "2.0.0", "Succeeded")
		s.Subscriptions[0] = *placed(s)
		c.change(s)
		d := s.decide(t)
		if len(d.Proposals) != 1 {
			t.Errorf("%s: %d proposals", name, len(d.Proposals))
			continue
		}
		e := d.Proposals[0].Event
		b := e.Bundles[0]
		if diff := cmp.Diff(c.want, want{b.CSV, b.Replaces, e.Approval, e.ManualReasons}); diff != "" ||
			b.Reason != events.ReasonRollback {
			t.Errorf("%s: %s (-want +got):\n%s", name, b.Reason, diff)
		}
	}
	s := newScene().installed("a.v1", "1.0.0", "Succeeded") // the change never got there
	s.Subscriptions[0] = *placed(s)
	if d := s.decide(t); len(d.Proposals) != 0 || len(d.SubscriptionEvents) != 1 {
		t.Errorf("a cluster that has it answers with %+v", d)
	}
}
