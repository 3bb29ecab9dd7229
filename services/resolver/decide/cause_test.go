package decide_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
)

// TestCauseOfProposal: a plan that moves the operator of a rollout belongs to that rollout, also where the subscription
// of somebody else, or one that an earlier rollout asked for, is planned with it: what comes of the plan is told to
// nobody else (ADR 0071).
func TestCauseOfProposal(t *testing.T) {
	t.Parallel()
	target := decide.Target{RolloutTarget: events.RolloutTarget{Package: "a", CSV: "a.v2", Version: "2.0.0"}}
	for _, c := range []struct {
		name       string
		own, other decide.Target
		want       string
	}{
		{"of a rollout", target, decide.Target{}, "asked"},
		{"beside one of a rollout before", target, target, "asked"},
		{"of people", decide.Target{}, decide.Target{}, "before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.Subscriptions[0].Correlation, s.Subscriptions[0].Target = "asked", c.own
			verdicts := s.assess(t)
			s.Subscriptions = append(s.Subscriptions, decide.Subscription{
				Name: "0", Correlation: "before", Target: c.other,
			})
			component := &verdicts[0].Component
			component.Subscriptions = append([]string{"0"}, component.Subscriptions...)
			d, err := decide.Decide(s.State, verdicts, map[string]decide.Rendered{component.Name: {
				Rendering: render.Semantics, Identity: decide.Identity{Plan: "plan-1", Name: "install-aaaaa"},
				Steps: []installplan.Step{{Resolving: "a", Kind: "Deployment", Name: "d"}},
			}})
			if err != nil || len(d.Proposals) != 1 || d.Proposals[0].Correlation != c.want {
				t.Errorf("proposed %+v, %v; want the correlation %q", d.Proposals, err, c.want)
			}
		})
	}
}
