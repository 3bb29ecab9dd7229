package decide_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// TestEvolveSubscription: what each event of a subscription's streams makes of it; an event that is folded already,
// or that belongs to an earlier incarnation, changes nothing.
func TestEvolveSubscription(t *testing.T) {
	t.Parallel()
	spec := func(channel string) events.SubscriptionSpec {
		return events.SubscriptionSpec{Package: "buoy", Channel: channel, StartingCSV: "buoy.v1"}
	}
	back := resolution.Rollback{From: "buoy.v2", To: "buoy.v1"}
	have := decide.Subscription{
		Name: "buoy", Incarnation: 2, Version: 5, Spec: spec("stable"), Created: 40, Correlation: "made",
		InstalledCSV: "buoy.v2", Rollback: back,
	}
	changed := func(change func(*decide.Subscription)) *decide.Subscription {
		s := have
		s.Version = 6
		change(&s)
		return &s
	}
	for name, c := range map[string]struct {
		from        *decide.Subscription
		incarnation int
		version     int64
		payload     events.Payload
		want        *decide.Subscription
	}{
		"created": {nil, 1, 1, events.SubscriptionCreated{Spec: spec("stable")}, &decide.Subscription{
			Name: "buoy", Incarnation: 1, Version: 1, Spec: spec("stable"), Created: 50, Correlation: "now",
		}},
		"created again": {&have, 3, 1, events.SubscriptionCreated{Spec: spec("fast")}, &decide.Subscription{
			Name: "buoy", Incarnation: 3, Version: 1, Spec: spec("fast"), Created: 50, Correlation: "now",
		}},
		"generated": {nil, 1, 1, events.SubscriptionGenerated{Spec: spec("stable")}, &decide.Subscription{
			Name: "buoy", Incarnation: 1, Version: 1, Spec: spec("stable"), Created: 50, Correlation: "now",
			InstalledCSV: "buoy.v1",
		}},
		"generated, and its row written with the decision": {
			&have, 2, 1,
			events.SubscriptionGenerated{Spec: spec("fast")},
			func() *decide.Subscription {
				s := have
				s.Created = 50
				return &s
			}(),
		},
		"changed": {&have, 2, 6, events.SubscriptionChanged{Spec: spec("fast")}, changed(func(s *decide.Subscription) {
			s.Spec, s.Rollback, s.Correlation = spec("fast"), resolution.Rollback{}, "now"
		})},
		"rollback": {
			&have, 2, 6,
			events.SubscriptionRollbackRequested{From: "a", To: "b"},
			changed(func(s *decide.Subscription) {
				s.Rollback, s.Correlation = resolution.Rollback{From: "a", To: "b"}, "now"
			}),
		},
		"labels": {&have, 2, 6, events.SubscriptionMetadataChanged{}, changed(func(*decide.Subscription) {})},
		"failed": {
			&have, 2, 6,
			events.ResolutionFailed{Reason: "r", Explanation: "e", Input: "i"},
			changed(func(s *decide.Subscription) {
				s.Outcome = decide.Outcome{Kind: decide.OutcomeFailed, Reason: "r", Explanation: "e", Input: "i"}
			}),
		},
		"resolved": {&have, 2, 6, events.ResolutionSucceeded{
			Outcome: decide.OutcomePlanned, CSV: "c", Plan: "p",
			Input: "i",
		}, changed(func(s *decide.Subscription) {
			s.Outcome = decide.Outcome{Kind: decide.OutcomePlanned, CSV: "c", Plan: "p", Input: "i"}
		})},
		"at its target, and it does not run": {
			changed(func(s *decide.Subscription) { s.Target.CSV = "c" }), 2, 7,
			events.ResolutionSucceeded{Outcome: decide.OutcomeAtLatestKnown, CSV: "c"},
			changed(func(s *decide.Subscription) {
				s.Target.CSV, s.Version = "c", 7
				s.Outcome = decide.Outcome{Kind: decide.OutcomeAtLatestKnown, CSV: "c"}
			}),
		},
		"at its target, and it runs": {
			changed(func(s *decide.Subscription) { s.Target.CSV = "c" }), 2, 7,
			events.ResolutionSucceeded{Outcome: decide.OutcomeAtLatestKnown, CSV: "c", Content: "sha256:c"},
			changed(func(s *decide.Subscription) {
				s.Target.CSV, s.Version = "c", 7
				s.Outcome = decide.Outcome{Kind: decide.OutcomeAtLatestKnown, CSV: "c", Directive: "now"}
			}),
		},
		"folded already":               {&have, 2, 5, events.SubscriptionChanged{Spec: spec("fast")}, &have},
		"of an earlier life":           {&have, 1, 9, events.SubscriptionChanged{Spec: spec("fast")}, &have},
		"deleted":                      {&have, 2, 6, events.SubscriptionDeleted{}, nil},
		"deleted in an earlier life":   {&have, 1, 9, events.SubscriptionDeleted{}, &have},
		"changed, and it is not there": {nil, 2, 6, events.SubscriptionChanged{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := decide.EvolveSubscription(c.from, decide.Event{
				Subject: "c/n/buoy", Incarnation: c.incarnation, Version: c.version, Created: 50, Correlation: "now",
				Payload: c.payload,
			})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestEvolveRevision: a failed poll leaves the revision before in service (R-CAT-99), and the next success ends the
// failure.
func TestEvolveRevision(t *testing.T) {
	t.Parallel()
	failed := decide.EvolveRevision(decide.CatalogRevision{Revision: "r1"},
		decide.Event{Payload: events.CatalogLoadFailed{Reason: "away"}})
	if want := (decide.CatalogRevision{Revision: "r1", Failed: true, Reason: "away"}); failed != want {
		t.Errorf("failed: %+v", failed)
	}
	if got := decide.EvolveRevision(failed, decide.Event{
		Payload: events.CatalogRevisionPublished{Revision: "r2"},
	}); got != (decide.CatalogRevision{Revision: "r2"}) {
		t.Errorf("published: %+v", got)
	}
}
